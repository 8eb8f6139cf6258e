"""What the host does for a script: files of its workspace, and the programs that its agent may run.

A script sees ordinary exceptions: `FileNotFoundError`, `PermissionError` for what it may not do, else `OSError`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from remora.errors import ToolError, ToolLimitExceeded, WorkspaceError
from remora.ports import Spawner, Workspace
from remora.scripts._calls import HostFunction

MAX_TEXT = 4 * 1024 * 1024
"""Bytes of one text that may enter a script: more would break its memory limit without saying why."""

SIGNATURES: dict[str, tuple[tuple[str, ...], int]] = {
    "read_file": (("path",), 1),
    "write_file": (("path", "content"), 2),
    "file_exists": (("path",), 1),
    "run_command": (("argv", "stdin"), 1),
}
"""Parameters of every host function, and how many of them are required."""


class Host:
    """The host functions of one call, and the full outputs of the commands that it ran."""

    def __init__(self, workspace: Workspace, spawner: Spawner, *, commands: Collection[str], root: Path) -> None:
        self._workspace = workspace
        self._spawner = spawner
        self._commands = commands
        self._root = root
        self.outputs: list[tuple[str, bytes | Iterable[bytes]]] = []

    def functions(self) -> dict[str, HostFunction]:
        """All host functions by name."""
        return {name: getattr(self, name) for name in SIGNATURES}

    async def read_file(self, path: str) -> str:
        """The file's text, its line ends as they are."""
        try:
            data = await self._workspace.read(_text(path, "path"))
        except WorkspaceError as error:
            raise PermissionError(error.message) from error
        _fits(path, data)
        return data.decode("utf-8")

    async def write_file(self, path: str, content: str) -> None:
        """Puts the text into the workspace, line ends as given."""
        data = _text(content, "content").encode("utf-8")
        _fits(path, data)
        try:
            await self._workspace.write(_text(path, "path"), data)
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def file_exists(self, path: str) -> bool:
        """Whether there is a file."""
        try:
            return await self._workspace.exists(_text(path, "path"))
        except WorkspaceError as error:
            raise PermissionError(error.message) from error

    async def run_command(self, argv: Sequence[str], stdin: str = "") -> dict[str, Any]:
        """How the program ended and what it said. Only programs that the agent's definition lists are run."""
        if not isinstance(argv, list | tuple) or not argv or not all(isinstance(part, str) for part in argv):
            raise TypeError("argv: expected a list of strings")
        if argv[0] not in self._commands:
            raise PermissionError(f"program `{argv[0]:.80}` is not among this agent's `commands`")
        try:
            done = await self._spawner.run(argv, cwd=self._root, stdin=_text(stdin, "stdin").encode("utf-8"))
        except ToolLimitExceeded as error:
            raise OSError(error.message) from error
        except ToolError as error:
            raise PermissionError(error.message) from error
        for stream, head in (("stdout", done.stdout), ("stderr", done.stderr)):
            if head:
                self.outputs.append((f"{argv[0]} {stream}", done.full.get(stream, head)))
        _fits(f"{argv[0]} stdout", done.stdout)
        _fits(f"{argv[0]} stderr", done.stderr)
        return {
            "returncode": done.returncode,
            "stdout": done.stdout.decode("utf-8", "replace"),
            "stderr": done.stderr.decode("utf-8", "replace"),
        }


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got `{type(value).__name__}`")
    return value


def _fits(what: str, data: bytes) -> None:
    if len(data) > MAX_TEXT:
        raise OSError(f"`{what:.200}` is too large: a script can take {MAX_TEXT:,} bytes")
