"""Host functions for files: read, write, list and search, within limits."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from typing import Any

from remora.errors import MissingExtra, WorkspaceError
from remora.ports import Workspace

MAX_TEXT = 4 * 1024 * 1024
"""Bytes of one text that may enter a script: more would exceed its memory limit without a clear error."""
MAX_WRITTEN = 64 * 1024 * 1024
"""Bytes that one run of a script may write, counting every write."""
MAX_PATHS = 1000
"""Most paths in one answer: the first in sorted order."""
MAX_HITS = 200
MAX_HIT = 200
"""Characters of a matching line to return."""
MAX_SEARCHED = 1024 * 1024
"""Bytes of the largest file to search. Larger files are data, not code."""
MAX_PATTERN = 1000
SEARCH_S = 5.0
BINARY = b"\0"
_LINE_END = re.compile(rb"\r\n|\r|\n")


class HostFiles:
    """Access to the files of the workspace for a script."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._written = 0

    async def read_file(self, path: str) -> str:
        """Read a text file. Line ends stay as they are."""
        data = await self.read_bytes(path)
        check_size(path, data)
        return data.decode("utf-8")

    async def write_file(self, path: str, content: str) -> None:
        """Write a text file to the workspace. Line ends stay as given."""
        await self.write_bytes(path, require_text(content, "content").encode("utf-8"))

    async def file_exists(self, path: str) -> bool:
        """Whether the file exists."""
        try:
            return await self._workspace.exists(require_text(path, "path"))
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def list_dir(self, path: str = "") -> list[str]:
        """The first 1,000 names in a folder, sorted; folders end with `/`."""
        try:
            return list(await self._workspace.list_dir(require_text(path, "path")))[:MAX_PATHS]
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def search_files(self, pattern: str) -> list[str]:
        """The first 1,000 paths that match a glob such as `tests/**/test_*.py`, sorted."""
        return (await self._matching(pattern))[:MAX_PATHS]

    async def search_content(self, pattern: str, glob: str = "") -> list[dict[str, Any]]:
        """The first 200 lines that match a regular expression: `path`, `line`, `text`, sorted by path.

        RE2 syntax, which runs in linear time: no look-around and no back-references. Binary files and those over 1 MiB
        are skipped. Raises `OSError` if the search takes longer than 5 s.
        """
        find = _compile_re2(require_text(pattern, "pattern"))
        paths = await self._matching(require_text(glob, "glob") or "**")
        hits: list[dict[str, Any]] = []
        ends = time.monotonic() + SEARCH_S
        for path in paths:
            data = await self.peek(path)
            hits += await asyncio.to_thread(_hits, find, path, data, MAX_HITS - len(hits), ends)
            if len(hits) >= MAX_HITS:
                break
        return hits

    async def read_bytes(self, path: str) -> bytes:
        """Read a file. Raises `PermissionError` for a path that agents may not read."""
        try:
            return await self._workspace.read(require_text(path, "path"))
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file to the workspace. Raises `PermissionError` for a path that agents may not write."""
        check_size(path, data)
        if self._written + len(data) > MAX_WRITTEN:
            raise OSError(f"`{path:.200}` is too large: a script can write {MAX_WRITTEN:,} bytes in total per run")
        self._written += len(data)
        try:
            await self._workspace.write(require_text(path, "path"), data)
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def peek(self, path: str) -> bytes:
        """The bytes of a listed file, for a search; empty if it is binary, too large, or gone since it was listed."""
        try:
            data = await asyncio.to_thread(self._workspace.look, path)
        except (OSError, WorkspaceError):
            return b""
        return b"" if len(data) > MAX_SEARCHED or BINARY in data[:8192] else data

    async def every_path(self) -> list[str]:
        """All paths of the project, for a proof that must not miss one."""
        return list(await self._workspace.files())

    async def _matching(self, pattern: str) -> list[str]:
        fits_glob = _compile_glob(require_text(pattern, "pattern"))
        return [path for path in await self._workspace.files() if fits_glob.fullmatch(path.encode())]


def require_text(value: Any, name: str) -> str:
    """Return the value if it is text. Raises `TypeError` naming it."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got `{type(value).__name__}`")
    return value


def require_int(value: Any, name: str) -> int:
    """Return the value if it is an integer. Raises `TypeError` naming it."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: expected a whole number, got `{type(value).__name__}`")
    return value


def check_size(what: str, data: bytes) -> None:
    """Raises `OSError` if the data is too large for a script."""
    if len(data) > MAX_TEXT:
        raise OSError(f"`{what:.200}` is too large: the limit for a script is {MAX_TEXT:,} bytes")


def _compile_glob(pattern: str) -> Any:
    """Compile a glob.

    `*` and `?` match within a name, `**` across folders. A pattern without `/` matches at any depth.
    """
    whole = pattern.removeprefix("./")
    if not whole:
        raise ValueError("pattern: expected a glob such as `*.py`")
    whole = whole if "/" in whole else f"**/{whole}"
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", whole)
    return _compile_re2("".join(_GLOB.get(part, re.escape(part)) for part in parts))


_GLOB = {"**/": r"(?:[^/]+/)*", "**": r"(?s:.*)", "*": r"[^/]*", "?": r"[^/]"}


def _compile_re2(pattern: str) -> Any:
    """Compile an RE2 expression. Raises `ValueError` if it is not valid."""
    try:
        import re2
    except ImportError as error:
        raise MissingExtra("google-re2, which searches files,", extra="agents") from error
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ValueError(f"pattern: expected 1 to {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        raise ValueError(f"pattern: {_error_text(error)}; expected RE2 syntax") from None


def _error_text(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


def _hits(find: Any, path: str, data: bytes, room: int, ends: float) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = []
    for line, text in _lines(data):
        if line % 1000 == 1 and time.monotonic() > ends:
            raise OSError(f"The search took longer than {SEARCH_S:g} s: narrow it with `glob`")
        if find.search(text):
            hits.append({"path": path, "line": line, "text": text.decode("utf-8", "replace")[:MAX_HIT]})
            if len(hits) >= room:
                break
    return hits


def _lines(data: bytes) -> Iterable[tuple[int, bytes]]:
    """Lines with their numbers, counted as Python counts them."""
    return enumerate(_LINE_END.split(data), start=1)
