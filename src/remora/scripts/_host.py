"""What the host does for a script: files and code of its workspace, and the programs that its agent may run.

A script sees ordinary exceptions: `FileNotFoundError`, `PermissionError` for what it may not do, `ValueError` for what
cannot be, else `OSError`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remora.errors import ConfigError, ToolError, ToolLimitExceeded
from remora.nodes import CodeNode
from remora.ports import CodeReader, Spawner, Workspace
from remora.scripts._calls import HostFunction
from remora.scripts._host_code import HostCode
from remora.scripts._host_files import MAX_TEXT, HostFiles, fits, number, text_of
from remora.scripts._modules import SANDBOXED, ScriptFiles, is_readable
from remora.scripts._scratch import scratch

SIGNATURES: dict[str, tuple[tuple[str, ...], int]] = {
    "read_file": (("path",), 1),
    "write_file": (("path", "content"), 2),
    "file_exists": (("path",), 1),
    "list_dir": (("path",), 0),
    "search_files": (("pattern",), 1),
    "search_content": (("pattern", "glob"), 1),
    "run_command": (("argv", "stdin", "files", "seconds"), 1),
    "node_facts": (("path", "node"), 1),
    "edit_node": (("path", "part", "text", "node"), 3),
    "replace_lines": (("path", "first", "last", "text"), 4),
    "read_beside": (("name",), 1),
}
"""Parameters of every host function, and how many of them are required."""
COMMAND_S = 30
"""Seconds that a command may take."""
MAX_COMMAND_S = 90
"""The same where a script asks for more: all host calls of one tool have 120."""


MAX_COMMANDS = 200
"""Commands that one run of a script may start."""
MAX_HELD = 8 * 1024 * 1024
"""Bytes of commands' outputs that we hold for one run. The rest waits in a file without a name."""
_CHUNK = 256 * 1024


class _Rest:
    """A file without a name, closed with the last who reads from it."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115

    def __del__(self) -> None:
        self.file.close()


@dataclass(frozen=True)
class _Part:
    """A part of the file, read in chunks."""

    rest: _Rest
    start: int
    size: int

    def __iter__(self) -> Iterator[bytes]:
        at, end = self.start, self.start + self.size
        while at < end:
            self.rest.file.seek(at)
            chunk = self.rest.file.read(min(_CHUNK, end - at))
            at += len(chunk)
            yield chunk


class Outputs:
    """What the commands of one run said, the first of it in memory."""

    def __init__(self) -> None:
        self.all: list[tuple[str, bytes | Iterable[bytes]]] = []
        self._room = MAX_HELD
        self._rest: _Rest | None = None

    def add(self, name: str, said: bytes | Iterable[bytes]) -> None:
        """`said` is kept; what comes in chunks is in a file already."""
        if isinstance(said, bytes) and len(said) > self._room:
            said = self._put_away(said)
        elif isinstance(said, bytes):
            self._room -= len(said)
        self.all.append((name, said))

    def _put_away(self, said: bytes) -> _Part:
        self._rest = self._rest or _Rest()
        start = self._rest.file.seek(0, 2)
        self._rest.file.write(said)
        return _Part(self._rest, start, len(said))


class Host:
    """The host functions of one call, and the full outputs of the commands that it ran."""

    def __init__(
        self,
        workspace: Workspace,
        spawner: Spawner,
        *,
        commands: Collection[str],
        root: Path,
        node: CodeNode,
        code: CodeReader | None = None,
        script_files: ScriptFiles | None = None,
    ) -> None:
        self._workspace = workspace
        self._spawner = spawner
        self._commands = commands
        self._root = root
        self._script_files = script_files or ScriptFiles()
        self._files = HostFiles(workspace)
        self._code = HostCode(self._files, code, node)
        self._outputs = Outputs()
        self._ran = 0

    @property
    def outputs(self) -> list[tuple[str, bytes | Iterable[bytes]]]:
        """What the commands said, in order."""
        return self._outputs.all

    def functions(self) -> dict[str, HostFunction]:
        """All host functions by name."""
        owners = (self, self._files, self._code)
        return {name: next(getattr(own, name) for own in owners if hasattr(own, name)) for name in SIGNATURES}

    async def read_beside(self, name: str) -> str:
        """The text of a file beside the script, or of one in `sandboxed/`, such as one to give to `run_command`."""
        if not is_readable(text_of(name, "name")):
            expected = f"expected `NAME`, beside the script, or `{SANDBOXED}/NAME`"
            raise PermissionError(f"`{name:.200}` is not a file of the agent that a script may read: {expected}")
        try:
            data = self._script_files.read(name, MAX_TEXT)
        except ConfigError as error:
            raise PermissionError(error.message) from error
        if data is None:
            place = "in the agent's folder" if "/" in name else "beside the script"
            raise FileNotFoundError(f"there is no `{name:.200}` {place}")
        fits(name, data)
        return data.decode("utf-8")

    async def run_command(
        self, argv: Sequence[str], stdin: str = "", files: Any = None, seconds: int = COMMAND_S
    ) -> dict[str, Any]:
        """How the program ended and what it said. Only programs that the agent's definition lists are run.

        `files` (texts by path) are there for this one run; the workspace does not get them.
        """
        if not 1 <= number(seconds, "seconds") <= MAX_COMMAND_S:
            raise ValueError(f"seconds: expected 1 to {MAX_COMMAND_S}, got {seconds}")
        if not isinstance(argv, list | tuple) or not argv or not all(isinstance(part, str) for part in argv):
            raise TypeError("argv: expected a list of strings")
        if argv[0] not in self._commands:
            raise PermissionError(f"program `{argv[0]:.80}` is not among this agent's `commands`")
        if self._ran >= MAX_COMMANDS:
            raise OSError(f"program `{argv[0]:.80}` is one too many: a script can run {MAX_COMMANDS} in one run")
        self._ran += 1
        try:
            stdin_bytes = text_of(stdin, "stdin").encode("utf-8")
            moved = await asyncio.to_thread(self._workspace.moved)
            with scratch(self._workspace.upper, files, moved) as over:
                done = await self._spawner.run(
                    argv, cwd=self._root, stdin=stdin_bytes, limit_s=float(seconds), over=over
                )
        except ToolLimitExceeded as error:
            raise OSError(error.message) from error
        except ToolError as error:
            raise PermissionError(error.message) from error
        if done.sandbox:
            # What ran the project's code, or that nothing held it, is for the developer to see.
            self._outputs.add(f"{argv[0]} sandbox", done.sandbox.encode())
        for stream, head in (("stdout", done.stdout), ("stderr", done.stderr)):
            if head:
                self._outputs.add(f"{argv[0]} {stream}", done.full.get(stream, head))
        fits(f"{argv[0]} stdout", done.stdout)
        fits(f"{argv[0]} stderr", done.stderr)
        for name, data in done.artifacts.items():
            fits(name, data)
        return {
            "returncode": done.returncode,
            "stdout": done.stdout.decode("utf-8", "replace"),
            "stderr": done.stderr.decode("utf-8", "replace"),
            "artifacts": {name: data.decode("utf-8", "replace") for name, data in done.artifacts.items()},
        }
