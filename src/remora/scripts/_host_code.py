"""Host functions for code: facts about a definition, and edits by its position.

They work on the file as the workspace has it now. Python files only.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any

from remora.nodes import CodeNode
from remora.ports import CodeReader
from remora.scripts._host_files import HostFiles, require_int, require_text

PYTHON = (".py", ".pyi")
MAX_CODE = 2 * 1024 * 1024
"""Bytes of the largest file that is parsed."""
MAX_TOKENS = 80_000
"""Tokens of the largest file that is parsed: each takes about a kilobyte of memory meanwhile."""
MAX_FILES = 400
"""Files whose docstrings show a project's habits: the first in sorted order."""
MAX_PROJECT = 24 * 1024 * 1024
"""Bytes of all texts that one proof reads."""
_TOKEN = re.compile(rb"\w+|[^\w\s]")


class _TooLarge(OSError):
    """A file or a project is over a limit."""


class HostCode:
    """Reads and edits code for a script."""

    def __init__(self, files: HostFiles, code: CodeReader | None, node: CodeNode) -> None:
        self._files = files
        self._reader = code
        self._node = node
        # One at a time: memory for parsing is bounded for one file only.
        self._turn = asyncio.Lock()

    async def node_facts(self, path: str, node: str = "") -> dict[str, Any]:
        """Facts about a definition: kind, lines, signature, parameters, docstring and so on."""
        name = self._name(path, node)
        async with self._turn:
            source = await self._source(path)
            facts = await asyncio.to_thread(self._code.facts, source, name)
        return {"node_id": f"{path}:{name}" if name else path, **facts}

    async def node_behaviour(self, path: str, node: str = "") -> dict[str, Any]:
        """What a function does as far as its syntax proves it: errors, results, changed arguments; empty for others."""
        name = self._name(path, node)
        async with self._turn:
            source = await self._source(path)
            return await asyncio.to_thread(self._code.behaviour, source, name)

    async def docstring_habits(self, path: str, node: str = "") -> dict[str, Any]:
        """How the project writes docstrings: whether most functions have one, the style, what it says elsewhere."""
        name = self._name(path, node)
        async with self._turn:
            sources = {path: await self._source(path)}
            for other in (await self._files.search_files("**/*.py"))[:MAX_FILES]:
                if other != path:
                    sources[other] = await self._files.peek(other)
            return await asyncio.to_thread(self._code.habits, sources, path, name)

    async def proven_changes(self, path: str, about: str, without: Any = ()) -> dict[str, Any]:
        """What is provably dead, missing or false about a file, by all texts of the project, and the mended texts.

        `problem` says why nothing can be proven: the file or the project is too large. Otherwise it is empty.
        """
        keys = [require_text(key, "without") for key in without]
        async with self._turn:
            try:
                files = await self._project_texts(require_text(path, "path"))
            except _TooLarge as error:
                return {"findings": [], "files": {}, "problem": f"Nothing can be proven here: {error}"}
            found = await asyncio.to_thread(self._code.proven, require_text(about, "about"), files, path, keys)
        return {**found, "problem": ""}

    async def _project_texts(self, path: str) -> dict[str, bytes]:
        """All texts of the project, the file first. Raises `_TooLarge`."""
        files = {path: await self._source(path)}
        size = 0
        for other in await self._files.every_path():
            if other == path:
                continue
            data = await self._files.peek(other)
            # The words of a file that is too large to parse still count.
            files[other if _count_tokens(data) <= MAX_TOKENS else f"{other} (text)"] = data
            size += len(data)
            if size > MAX_PROJECT:
                raise _TooLarge(f"the project is too large: the limit is {MAX_PROJECT:,} bytes of text")
        return files

    async def edit_node(self, path: str, part: str, text: str, node: str = "") -> None:
        """Replace a definition's `docstring` (given as plain text), its `body`, or the `whole` definition."""
        name, content = self._name(path, node), _check_text(text)
        await self._change(
            path, content, lambda source: self._code.edit(source, name, require_text(part, "part"), content)
        )

    async def replace_lines(self, path: str, first: int, last: int, text: str) -> None:
        """Replace lines `first` to `last` of a Python file; `last = first - 1` inserts before `first`."""
        lines, content = (require_int(first, "first"), require_int(last, "last")), _check_text(text)
        await self._change(path, content, lambda source: self._code.replace_lines(source, *lines, content))

    @property
    def _code(self) -> CodeReader:
        if self._reader is None:
            raise OSError("No code reader is configured: functions that read or edit code are not available")
        return self._reader

    def _name(self, path: str, node: str) -> str:
        """The part of the node's id after the colon. Without a node: the agent's own node, if this is its file."""
        require_text(path, "path")
        own = self._node.file_path.as_posix()
        wanted = require_text(node, "node") or (self._node.node_id if path == own else "")
        if not wanted:
            raise ValueError(
                f"node: expected the name of a definition in `{path:.200}`, as it is not this agent's file"
            )
        return "" if wanted == path else wanted.removeprefix(f"{path}:")

    async def _source(self, path: str, more: str = "") -> bytes:
        """Read the file. Raises if it is too large to parse together with `more`."""
        if not path.endswith(PYTHON):
            raise ValueError(f"`{path:.200}` is not a Python file")
        source = await self._files.read_bytes(path)
        if len(source) > MAX_CODE:
            raise _TooLarge(f"`{path:.200}` is too large to parse: the limit is {MAX_CODE:,} bytes")
        if _count_tokens(source) + _count_tokens(more.encode()) > MAX_TOKENS:
            raise _TooLarge(f"`{path:.200}` is too large to parse: the limit is {MAX_TOKENS:,} tokens")
        return source

    async def _change(self, path: str, content: str, change: Callable[[bytes], bytes]) -> None:
        async with self._turn:
            source = await self._source(require_text(path, "path"), content)
            changed = await asyncio.to_thread(change, source)
            if changed != source:
                await self._files.write_bytes(path, changed)


@lru_cache(maxsize=32)
def _count_tokens(source: bytes) -> int:
    """Number of tokens, counted up to just above the limit."""
    return sum(1 for _ in islice(_TOKEN.finditer(source), MAX_TOKENS + 1))


def _check_text(text: Any) -> str:
    """Check that the text can be encoded."""
    require_text(text, "text").encode()
    return str(text)
