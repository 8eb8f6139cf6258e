"""Host functions that know code: facts about a definition, and edits by its position.

They work on the file as the workspace has it now. Python files only.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from remora.nodes import CodeNode
from remora.ports import CodeReader
from remora.scripts._host_files import HostFiles, number, text_of

PYTHON = (".py", ".pyi")
MAX_CODE = 2 * 1024 * 1024
"""Bytes of the largest file that is read as code."""
MAX_TOKENS = 80_000
"""Words and signs of the largest file that is read as code: each takes about a kilobyte of our memory meanwhile."""
_TOKEN = re.compile(rb"\w+|[^\w\s]")


class HostCode:
    """What a script may ask about code, and change in it."""

    def __init__(self, files: HostFiles, code: CodeReader | None, node: CodeNode) -> None:
        self._files = files
        self._given = code
        self._node = node
        # One at a time: what reading code takes is bounded for one file only.
        self._turn = asyncio.Lock()

    async def node_facts(self, path: str, node: str = "") -> dict[str, Any]:
        """What stands in a definition: kind, lines, signature, parameters, docstring and so on."""
        name = self._name(path, node)
        async with self._turn:
            source = await self._source(path)
            facts = await asyncio.to_thread(self._code.facts, source, name)
        return {"node_id": f"{path}:{name}" if name else path, **facts}

    async def edit_node(self, path: str, part: str, text: str, node: str = "") -> None:
        """Replaces a definition's `docstring` (given as plain text), its `body`, or the `whole` of it."""
        name, content = self._name(path, node), _content(text)
        await self._change(path, content, lambda source: self._code.edit(source, name, text_of(part, "part"), content))

    async def replace_lines(self, path: str, first: int, last: int, text: str) -> None:
        """Replaces lines `first` to `last` of a Python file; `last = first - 1` inserts before `first`."""
        lines, content = (number(first, "first"), number(last, "last")), _content(text)
        await self._change(path, content, lambda source: self._code.replace_lines(source, *lines, content))

    @property
    def _code(self) -> CodeReader:
        if self._given is None:
            raise OSError("Nothing here reads code: `node_facts`, `edit_node` and `replace_lines` are not available")
        return self._given

    def _name(self, path: str, node: str) -> str:
        """The part of the node's id after the colon. Without a node it is the agent's own, if this is its file."""
        text_of(path, "path")
        own = self._node.file_path.as_posix()
        wanted = text_of(node, "node") or (self._node.node_id if path == own else "")
        if not wanted:
            raise ValueError(
                f"node: expected the name of a definition in `{path:.200}`, as it is not this agent's file"
            )
        return "" if wanted == path else wanted.removeprefix(f"{path}:")

    async def _source(self, path: str, more: str = "") -> bytes:
        """The file, if it can be read as code with `more` in it."""
        if not path.endswith(PYTHON):
            raise ValueError(f"`{path:.200}` is not a Python file")
        source = await self._files.read_bytes(path)
        if len(source) > MAX_CODE:
            raise OSError(f"`{path:.200}` is too large: at most {MAX_CODE:,} bytes are read as code")
        if _tokens(source) + _tokens(more.encode()) > MAX_TOKENS:
            raise OSError(f"`{path:.200}` is too large: at most {MAX_TOKENS:,} words and signs are read as code")
        return source

    async def _change(self, path: str, content: str, change: Callable[[bytes], bytes]) -> None:
        async with self._turn:
            source = await self._source(text_of(path, "path"), content)
            changed = await asyncio.to_thread(change, source)
            if changed != source:
                await self._files.write_bytes(path, changed)


def _tokens(source: bytes) -> int:
    """How many words and signs it has; of more than the most that may be, just more."""
    return sum(1 for _ in islice(_TOKEN.finditer(source), MAX_TOKENS + 1))


def _content(text: Any) -> str:
    """The text, if a file can hold it."""
    text_of(text, "text").encode()
    return str(text)
