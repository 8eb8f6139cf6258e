"""Reading a script's text, within limits."""

from __future__ import annotations

from pathlib import Path

from remora.scripts._problems import Problem

MAX_SOURCE = 256 * 1024


def read_script(path: Path) -> str | Problem:
    """The text of the script, or the problem."""
    try:
        with path.open("rb") as file:
            return script_text(file.read(MAX_SOURCE + 1))
    except OSError as error:
        return Problem(1, 1, f"cannot be read: {error.strerror}", "name a file that you can read")


def script_text(data: bytes | None) -> str | Problem:
    """The text of a script's bytes, or the problem. None means that there is no file."""
    if data is None:
        return Problem(1, 1, "cannot be read: No such file or directory", "name a file that you can read")
    if len(data) > MAX_SOURCE:
        return Problem(1, 1, f"larger than {MAX_SOURCE // 1024} KiB", "split it into several tools")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")  # like text mode
    except UnicodeDecodeError:
        return Problem(1, 1, "not UTF-8", "save it as UTF-8")
