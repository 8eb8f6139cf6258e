"""A script's text from the disk, within bounds."""

from __future__ import annotations

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
