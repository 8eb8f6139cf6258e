"""Host functions for a script: files and code of its workspace, and the programs that its agent may run.

A script gets ordinary exceptions: `FileNotFoundError`, `PermissionError` if something is not allowed, `ValueError` if
it is not valid, else `OSError`.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remora.errors import ConfigError, ToolError, ToolLimitExceeded, WorkspaceError
from remora.nodes import CodeNode
from remora.ports import CodeReader, Completed, Spawner, Workspace
from remora.scripts._calls import HostFunction
from remora.scripts._host_code import HostCode
from remora.scripts._host_files import MAX_TEXT, HostFiles, check_size, require_int, require_text
from remora.scripts._modules import SANDBOXED, ScriptFiles, is_readable
from remora.scripts._scratch import scratch
from remora.scripts._survey import Survey, Totals

SIGNATURES: dict[str, tuple[tuple[str, ...], int]] = {
    "read_file": (("path",), 1),
    "write_file": (("path", "content"), 2),
    "file_exists": (("path",), 1),
    "list_dir": (("path",), 0),
    "search_files": (("pattern",), 1),
    "search_content": (("pattern", "glob"), 1),
    "run_command": (("argv", "stdin", "files", "seconds"), 1),
    "node_facts": (("path", "node"), 1),
    "node_behaviour": (("path", "node"), 1),
    "docstring_habits": (("path", "node"), 1),
    "proven_changes": (("path", "about", "without"), 2),
    "edit_node": (("path", "part", "text", "node"), 3),
    "replace_lines": (("path", "first", "last", "text"), 4),
    "read_beside": (("name",), 1),
    "linter_totals": (("flags", "under"), 1),
}
"""Parameters of every host function, and how many of them are required."""
COMMAND_S = 30
"""Default seconds for a command."""
MAX_COMMAND_S = 90
"""Most seconds for a command: all host calls of one tool call have 120 together."""


MAX_COMMANDS = 200
"""Commands that one run of a script may start."""
MAX_HELD = 8 * 1024 * 1024
"""Bytes of command output kept in memory for one run. The rest goes to an unnamed file."""
_CHUNK = 256 * 1024


class _SpillFile:
    """An unnamed file, closed when nothing reads from it any more."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115

    def __del__(self) -> None:
        self.file.close()


@dataclass(frozen=True)
class _Part:
    """A part of the file, read in chunks."""

    spill_file: _SpillFile
    start: int
    size: int

    def __iter__(self) -> Iterator[bytes]:
        at, end = self.start, self.start + self.size
        while at < end:
            self.spill_file.file.seek(at)
            chunk = self.spill_file.file.read(min(_CHUNK, end - at))
            at += len(chunk)
            yield chunk


class Outputs:
    """The command outputs of one run, the first of them in memory."""

    def __init__(self) -> None:
        self.all: list[tuple[str, bytes | Iterable[bytes]]] = []
        self._room = MAX_HELD
        self._spill_file: _SpillFile | None = None

    def add(self, name: str, output: bytes | Iterable[bytes]) -> None:
        """Keep an output. An output that comes in chunks is already in a file."""
        if isinstance(output, bytes) and len(output) > self._room:
            output = self._spill(output)
        elif isinstance(output, bytes):
            self._room -= len(output)
        self.all.append((name, output))

    def _spill(self, output: bytes) -> _Part:
        self._spill_file = self._spill_file or _SpillFile()
        start = self._spill_file.file.seek(0, 2)
        self._spill_file.file.write(output)
        return _Part(self._spill_file, start, len(output))


class Host:
    """The host functions of one call, and the full outputs of its commands."""

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
        ended: dict[str, Completed] | None = None,
        survey: Survey | None = None,
    ) -> None:
        """`ended` are commands that this agent has run, by what they depend on: they are not run again."""
        self._workspace = workspace
        self._spawner = spawner
        self._commands = commands
        self._root = root
        self._script_files = script_files or ScriptFiles()
        self._files = HostFiles(workspace)
        self._code = HostCode(self._files, code, node)
        self._outputs = Outputs()
        self._ended = {} if ended is None else ended
        self._survey = survey
        self._ran = 0

    @property
    def outputs(self) -> list[tuple[str, bytes | Iterable[bytes]]]:
        """The outputs of the commands, in order."""
        return self._outputs.all

    def functions(self) -> dict[str, HostFunction]:
        """All host functions by name."""
        owners = (self, self._files, self._code)
        return {name: next(getattr(own, name) for own in owners if hasattr(own, name)) for name in SIGNATURES}

    async def read_beside(self, name: str) -> str:
        """The text of a file beside the script, or of one in `sandboxed/`, such as one to give to `run_command`."""
        if not is_readable(require_text(name, "name")):
            expected = f"expected `NAME`, beside the script, or `{SANDBOXED}/NAME`"
            raise PermissionError(f"`{name:.200}` is not a file of the agent that a script may read: {expected}")
        try:
            data = self._script_files.read(name, MAX_TEXT)
        except ConfigError as error:
            raise PermissionError(error.message) from error
        if data is None:
            place = "in the agent's folder" if "/" in name else "beside the script"
            raise FileNotFoundError(f"there is no `{name:.200}` {place}")
        check_size(name, data)
        return data.decode("utf-8")

    async def run_command(
        self, argv: Sequence[str], stdin: str = "", files: Any = None, seconds: int = COMMAND_S
    ) -> dict[str, Any]:
        """Run a program and return how it ended and its output. Only programs in the agent's definition may run.

        `files` (texts by path) exist for this one run; they are not added to the workspace.
        """
        if not 1 <= require_int(seconds, "seconds") <= MAX_COMMAND_S:
            raise ValueError(f"seconds: expected 1 to {MAX_COMMAND_S}, got {seconds}")
        if not isinstance(argv, list | tuple) or not argv or not all(isinstance(part, str) for part in argv):
            raise TypeError("argv: expected a list of strings")
        if argv[0] not in self._commands:
            raise PermissionError(f"program `{argv[0]:.80}` is not among this agent's `commands`")
        if self._ran >= MAX_COMMANDS:
            raise OSError(f"program `{argv[0]:.80}` is one command too many: the limit is {MAX_COMMANDS} per run")
        self._ran += 1
        try:
            stdin_bytes = require_text(stdin, "stdin").encode("utf-8")
            done = await self._run(list(argv), stdin_bytes, files, seconds)
        except ToolLimitExceeded as error:
            raise OSError(error.message) from error
        except ToolError as error:
            raise PermissionError(error.message) from error
        if done.sandbox:
            # The developer should see which sandbox ran the project's code, or that none did.
            self._outputs.add(f"{argv[0]} sandbox", done.sandbox.encode())
        for stream, head in (("stdout", done.stdout), ("stderr", done.stderr)):
            if head:
                self._outputs.add(f"{argv[0]} {stream}", done.full.get(stream, head))
        check_size(f"{argv[0]} stdout", done.stdout)
        check_size(f"{argv[0]} stderr", done.stderr)
        for name, data in done.artifacts.items():
            check_size(name, data)
        return {
            "returncode": done.returncode,
            "stdout": done.stdout.decode("utf-8", "replace"),
            "stderr": done.stderr.decode("utf-8", "replace"),
            "artifacts": {name: data.decode("utf-8", "replace") for name, data in done.artifacts.items()},
        }

    async def linter_totals(self, flags: Sequence[str], under: str = "") -> dict[str, Any]:
        """How many Python files there are at and below a folder, and which rules each breaks how often, on the disk.

        Of the project's `code`, and of what is `beside` it: tests, documents, examples, scripts.

        Without errors if the settings ask for every rule (`operations.*.strict`), or if ruff cannot check them.
        """
        if "ruff" not in self._commands:
            raise PermissionError("program `ruff` is not among this agent's `commands`")
        if not isinstance(flags, list | tuple) or not all(isinstance(part, str) for part in flags):
            raise TypeError("flags: expected a list of strings")
        if self._survey is None:
            return Totals().groups()
        try:
            found = await self._survey.totals(flags, require_text(under, "under"), self._workspace.files)
        except WorkspaceError as error:
            raise PermissionError(error.message) from error
        return found.groups()

    async def _run(self, argv: list[str], stdin: bytes, files: Any, seconds: int) -> Completed:
        """Run a program, or return how it ended before with the same files: a check is often followed by its tool."""
        moved = await asyncio.to_thread(self._workspace.moved)
        with scratch(self._workspace.upper, files, moved) as over:
            key = await asyncio.to_thread(_command_key, argv, stdin, over)
            if key not in self._ended:
                done = await self._spawner.run(argv, cwd=self._root, stdin=stdin, limit_s=float(seconds), over=over)
                if done.full:  # too large to hold
                    return done
                self._ended[key] = done
            return self._ended[key]


def _command_key(argv: list[str], stdin: bytes, over: Path | None) -> str:
    """What a command depends on beside the project: its arguments, its input, and the files laid over the project."""
    digest = hashlib.sha256(repr((argv, stdin)).encode())
    for path in sorted(over.rglob("*")) if over else []:
        if path.is_file() and not path.is_symlink():
            digest.update(repr((path.relative_to(over).as_posix() if over else "", path.read_bytes())).encode())
    return digest.hexdigest()
