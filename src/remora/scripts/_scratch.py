"""Temporary files for one command."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from remora.scripts._host_files import check_size, require_text

MAX_FILES = 20


@contextmanager
def scratch(upper: Path, files: Any, moved: Mapping[str, bytes] | None = None) -> Iterator[Path]:
    """A temporary folder with the agent's own files and `files` (texts by path) on top, deleted afterwards.

    `moved` are added too, so that a command sees files as the agent read them, even if someone saved them since.
    """
    given = {**(moved or {}), **_check_files(files)}
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


def _check_files(files: Any) -> Mapping[str, bytes]:
    """The texts as bytes. Raises `TypeError` if one is not text, `PermissionError` for a path that leads outside."""
    if files is None:
        return {}
    if not isinstance(files, dict) or len(files) > MAX_FILES:
        raise TypeError(f"files: expected at most {MAX_FILES} texts by path")
    contents: dict[str, bytes] = {}
    for path, text in files.items():
        parts = PurePosixPath(require_text(path, "path")).parts
        if not parts or ".." in parts or path.startswith("/") or "\0" in path:
            raise PermissionError(f"`{path:.200}` leads outside the project")
        contents[path] = require_text(text, path[:80]).encode("utf-8")
        check_size(path, contents[path])
    return contents
