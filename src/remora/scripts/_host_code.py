"""Host functions that know code: facts about a definition, and edits by its position.

They work on the file as the workspace has it now. Python files only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from remora.nodes import CodeNode
from remora.ports import CodeReader
from remora.scripts._host_files import HostFiles, number, text_of

PYTHON = (".py", ".pyi")
MAX_CODE = 2 * 1024 * 1024
"""Bytes of the largest file that is read as code."""


class HostCode:
    """What a script may ask about code, and change in it."""

    def __init__(self, files: HostFiles, code: CodeReader | None, node: CodeNode) -> None:
        self._files = files
        self._given = code
        self._node = node

    async def node_facts(self, path: str, node: str = "") -> dict[str, Any]:
        """What stands in a definition: kind, lines, signature, parameters, docstring and so on."""
        name = self._name(path, node)
        source = await self._source(path)
        facts = await asyncio.to_thread(self._code.facts, source, name)
        return {"node_id": f"{path}:{name}" if name else path, **facts}

    async def edit_node(self, path: str, part: str, text: str, node: str = "") -> None:
        """Replaces a definition's `docstring` (given as plain text), its `body`, or the `whole` of it."""
        name = self._name(path, node)
        await self._change(path, lambda source: self._code.edit(source, name, text_of(part, "part"), _content(text)))

    async def replace_lines(self, path: str, first: int, last: int, text: str) -> None:
        """Replaces lines `first` to `last` of a Python file; `last = first - 1` inserts before `first`."""
        lines = number(first, "first"), number(last, "last")
        await self._change(path, lambda source: self._code.replace_lines(source, *lines, _content(text)))

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

    async def _source(self, path: str) -> bytes:
        if not path.endswith(PYTHON):
            raise ValueError(f"`{path:.200}` is not a Python file")
        source = await self._files.read_bytes(path)
        if len(source) > MAX_CODE:
            raise OSError(f"`{path:.200}` is too large: at most {MAX_CODE:,} bytes are read as code")
        return source

    async def _change(self, path: str, change: Callable[[bytes], bytes]) -> None:
        source = await self._source(text_of(path, "path"))
        changed = await asyncio.to_thread(change, source)
        if changed != source:
            await self._files.write_bytes(path, changed)


def _content(text: Any) -> str:
    """The text, if a file can hold it."""
    text_of(text, "text").encode()
    return str(text)
