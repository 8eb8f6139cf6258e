"""A script's text from the disk, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from remora.scripts._problems import Problem

MAX_SOURCE = 256 * 1024


def read_script(path: Path) -> str | Problem:
    """The text of the script, or why there is none."""
    try:
        if path.stat().st_size > MAX_SOURCE:
            return Problem(1, 1, f"larger than {MAX_SOURCE // 1024} KiB", "split it into several tools")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        return Problem(1, 1, f"cannot be read: {error.strerror}", "name a file that you can read")
    except UnicodeDecodeError:
        return Problem(1, 1, "not UTF-8", "save it as UTF-8")


def read_beside(script: Path) -> Callable[[str], str | None]:
    """Gives the text of a module that lies beside the script by its name; None for one that cannot be taken in."""

    def read(name: str) -> str | None:
        path = script.parent / f"{name}.py"
        text = read_script(path) if name.isidentifier() and path.is_file() and not path.is_symlink() else None
        return text if isinstance(text, str) else None

    return read
