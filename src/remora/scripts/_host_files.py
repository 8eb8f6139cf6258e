"""Host functions for files: read, write, list and search, within bounds."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from typing import Any

from remora.errors import MissingExtra, WorkspaceError
from remora.ports import Workspace

MAX_TEXT = 4 * 1024 * 1024
"""Bytes of one text that may enter a script: more would break its memory limit without saying why."""
MAX_WRITTEN = 64 * 1024 * 1024
"""Bytes that one run of a script may write, the same file again counted again."""
MAX_PATHS = 1000
"""Paths that one answer holds at most: the first in order."""
MAX_HITS = 200
MAX_HIT = 200
"""Characters of a found line that are given."""
MAX_SEARCHED = 1024 * 1024
"""Bytes of the largest file that is searched; a larger one is data, not code."""
MAX_PATTERN = 1000
SEARCH_S = 5.0
BINARY = b"\0"
_LINE_END = re.compile(rb"\r\n|\r|\n")


class HostFiles:
    """What a script may do with the files of its workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._written = 0

    async def read_file(self, path: str) -> str:
        """The file's text, its line ends as they are."""
        data = await self.read_bytes(path)
        fits(path, data)
        return data.decode("utf-8")

    async def write_file(self, path: str, content: str) -> None:
        """Puts the text into the workspace, line ends as given."""
        await self.write_bytes(path, text_of(content, "content").encode("utf-8"))

    async def file_exists(self, path: str) -> bool:
        """Whether there is a file."""
        try:
            return await self._workspace.exists(text_of(path, "path"))
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def list_dir(self, path: str = "") -> list[str]:
        """Names in a folder, in order, those of folders with a `/` at the end; the first 1,000."""
        try:
            return list(await self._workspace.list_dir(text_of(path, "path")))[:MAX_PATHS]
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def search_files(self, pattern: str) -> list[str]:
        """Paths that fit a glob such as `tests/**/test_*.py`, in order; the first 1,000."""
        return (await self._matching(pattern))[:MAX_PATHS]

    async def search_content(self, pattern: str, glob: str = "") -> list[dict[str, Any]]:
        """Lines that a regular expression finds: `path`, `line`, `text`; the first 200, in order of path.

        RE2 syntax, which takes time in proportion to the text: no look-around and no back-references. Binary files
        and those over 1 MiB are passed over. Raises `OSError` when the search takes longer than 5 s.
        """
        find = _compiled(text_of(pattern, "pattern"))
        paths = await self._matching(text_of(glob, "glob") or "**")
        hits: list[dict[str, Any]] = []
        ends = time.monotonic() + SEARCH_S
        for path in paths:
            data = await self._searchable(path)
            hits += await asyncio.to_thread(_hits, find, path, data, MAX_HITS - len(hits), ends)
            if len(hits) >= MAX_HITS:
                break
        return hits

    async def read_bytes(self, path: str) -> bytes:
        """The file as it is. Raises `PermissionError` for a path that no agent may read."""
        try:
            return await self._workspace.read(text_of(path, "path"))
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def write_bytes(self, path: str, data: bytes) -> None:
        """The file is in the workspace. Raises `PermissionError` for a path that no agent may write."""
        fits(path, data)
        if self._written + len(data) > MAX_WRITTEN:
            raise OSError(f"`{path:.200}` is too much: a script can write {MAX_WRITTEN:,} bytes in one run")
        self._written += len(data)
        try:
            await self._workspace.write(text_of(path, "path"), data)
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def _matching(self, pattern: str) -> list[str]:
        fits_glob = _glob(text_of(pattern, "pattern"))
        return [path for path in await self._workspace.files() if fits_glob.fullmatch(path.encode())]

    async def _searchable(self, path: str) -> bytes:
        """The file's bytes; nothing for one that is not text, too large, or gone since it was listed."""
        try:
            data = await asyncio.to_thread(self._workspace.look, path)
        except (OSError, WorkspaceError):
            return b""
        return b"" if len(data) > MAX_SEARCHED or BINARY in data[:8192] else data


def text_of(value: Any, name: str) -> str:
    """The value, if it is text. Raises `TypeError` that names it."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got `{type(value).__name__}`")
    return value


def number(value: Any, name: str) -> int:
    """The value, if it is a whole number. Raises `TypeError` that names it."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: expected a whole number, got `{type(value).__name__}`")
    return value


def fits(what: str, data: bytes) -> None:
    """Returns if a script can take the bytes. Raises `OSError` that names what is too large."""
    if len(data) > MAX_TEXT:
        raise OSError(f"`{what:.200}` is too large: a script can take {MAX_TEXT:,} bytes")


def _glob(pattern: str) -> Any:
    """`*` and `?` stay within a name, `**` goes through folders. Without a `/`, a pattern fits names at any depth."""
    whole = pattern.removeprefix("./")
    if not whole:
        raise ValueError("pattern: expected a glob such as `*.py`")
    whole = whole if "/" in whole else f"**/{whole}"
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", whole)
    return _compiled("".join(_GLOB.get(part, re.escape(part)) for part in parts))


_GLOB = {"**/": r"(?:[^/]+/)*", "**": r"(?s:.*)", "*": r"[^/]*", "?": r"[^/]"}


def _compiled(pattern: str) -> Any:
    """The expression, compiled. Raises `ValueError` for one that is not RE2's."""
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
        raise ValueError(f"pattern: {_said(error)}; expected an expression that RE2 takes") from None


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _hits(find: Any, path: str, data: bytes, room: int, ends: float) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line, text in _lines(data):
        if line % 1000 == 1 and time.monotonic() > ends:
            raise OSError(f"The search took longer than {SEARCH_S:g} s: narrow it with `glob`")
        if find.search(text):
            found.append({"path": path, "line": line, "text": text.decode("utf-8", "replace")[:MAX_HIT]})
            if len(found) >= room:
                break
    return found


def _lines(data: bytes) -> Iterable[tuple[int, bytes]]:
    """Lines with their numbers, counted as Python counts them."""
    return enumerate(_LINE_END.split(data), start=1)
