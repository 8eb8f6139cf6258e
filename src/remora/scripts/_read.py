"""A script's text, within bounds."""

from __future__ import annotations

from pathlib import Path

from remora.scripts._problems import Problem

MAX_SOURCE = 256 * 1024


def read_script(path: Path) -> str | Problem:
    """The text of the script, or why there is none."""
    try:
        with path.open("rb") as file:
            return script_text(file.read(MAX_SOURCE + 1))
    except OSError as error:
        return Problem(1, 1, f"cannot be read: {error.strerror}", "name a file that you can read")


def script_text(data: bytes | None) -> str | Problem:
    """The text of a script's bytes, or why there is none. None stands for a file that is not there."""
    if data is None:
        return Problem(1, 1, "cannot be read: No such file or directory", "name a file that you can read")
    if len(data) > MAX_SOURCE:
        return Problem(1, 1, f"larger than {MAX_SOURCE // 1024} KiB", "split it into several tools")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")  # as text is read from the disk
    except UnicodeDecodeError:
        return Problem(1, 1, "not UTF-8", "save it as UTF-8")
