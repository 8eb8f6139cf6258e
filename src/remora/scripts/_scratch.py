"""Files that one command sees and nobody keeps."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from remora.scripts._host_files import fits, text_of

MAX_FILES = 20


@contextmanager
def scratch(upper: Path, files: Any, moved: Mapping[str, bytes] | None = None) -> Iterator[Path]:
    """A folder that holds the agent's own files with `files` (texts by path) over them, gone afterwards.

    `moved` are there too: what someone saved since the agent read it, a command sees as the agent does.
    """
    given = {**(moved or {}), **_checked(files)}
    if not given:
        yield upper
        return
    with tempfile.TemporaryDirectory(prefix="remora-") as folder:
        over = Path(folder) / "over"
        if upper.is_dir():
            shutil.copytree(upper, over, symlinks=True)
        for path, data in given.items():
            (over / path).parent.mkdir(parents=True, exist_ok=True)
            (over / path).write_bytes(data)
        yield over


def _checked(files: Any) -> Mapping[str, bytes]:
    """The texts as bytes. Raises `TypeError` for what is no text, `PermissionError` for a path that leads outside."""
    if files is None:
        return {}
    if not isinstance(files, dict) or len(files) > MAX_FILES:
        raise TypeError(f"files: expected at most {MAX_FILES} texts by path")
    made: dict[str, bytes] = {}
    for path, text in files.items():
        parts = PurePosixPath(text_of(path, "path")).parts
        if not parts or ".." in parts or path.startswith("/") or "\0" in path:
            raise PermissionError(f"`{path:.200}` leads outside the project")
        made[path] = text_of(text, path[:80]).encode("utf-8")
        fits(path, made[path])
    return made
