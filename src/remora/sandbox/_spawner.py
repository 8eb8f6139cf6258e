"""Starts programs: by argument list, without a shell, in a clean environment, within limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from remora.errors import ToolFailed, ToolLimitExceeded
from remora.ports import Completed
from remora.sandbox._allow import RUNS_PROJECT_CODE, check_arguments, find_program, make_rules
from remora.sandbox._environment import ENVIRONMENT
from remora.sandbox._hidden import Hidden
from remora.sandbox._jail._watch import end_descendants
from remora.sandbox._plan import Limits
from remora.sandbox._probe import SandboxReport, probe
from remora.sandbox._project import run_sandboxed
from remora.sandbox._ruff_settings import check_settings
from remora.sandbox._spool import Spool

MB = 1024 * 1024
MAX_OUTPUT = 4 * 1024 * MB
"""Bytes of output before a program is stopped. They go to disk, so this protects the disk."""
MAX_MEMORY = 8 * 1024 * MB
"""Address space of a child. Generous, because allocators reserve far more than they use."""
KILL_S = 2.0
LIMITS = Limits()
_ROOT = Path("/")


@dataclass(frozen=True)
class Start:
    """The name of a command in error messages, and how its child is started."""

    name: str
    keep: tuple[int, ...] = ()
    """Descriptors that the child inherits."""
    sandboxed: bool = False
    """Whether killing the child kills all its descendants."""


class LocalSpawner:
    """Starts allowed programs on this machine."""

    def __init__(
        self,
        *,
        max_output: int = MAX_OUTPUT,
        limits: Limits = LIMITS,
        allow_unsandboxed: bool = False,
        report: SandboxReport | None = None,
        extra: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`allow_unsandboxed` must come from the user. `report` says which sandbox works; by default it is probed.

        `extra` maps further Python modules to their allowed flags. They always run inside the sandbox.
        """
        self._extra = {name: make_rules(flags) for name, flags in (extra or {}).items()}
        self._max_output = max_output
        self._limits = limits
        self._allow_unsandboxed = allow_unsandboxed
        self._report = report
        self._hidden: dict[Path, Hidden] = {}

    async def run(
        self, argv: Sequence[str], *, cwd: Path, stdin: bytes = b"", limit_s: float = 30.0, over: Path | None = None
    ) -> Completed:
        """Run an allowed program to completion. Raises `ToolError` if it is not allowed or reaches a limit.

        Programs that execute project code see `cwd` overlaid with the files of `over`, and write to neither.
        """
        words = check_arguments(argv, self._extra)
        if argv[0] in RUNS_PROJECT_CODE or argv[0] in self._extra:
            return await self._run_sandboxed(argv[0], words, cwd=cwd, stdin=stdin, limit_s=limit_s, over=over)
        await asyncio.to_thread(check_settings, words, cwd)
        return await self.execute([str(find_program(argv[0])), *words], cwd=cwd, stdin=stdin, limit_s=limit_s)

    async def check_files(
        self, flags: Sequence[str], files: Sequence[str], *, cwd: Path, limit_s: float = 60.0
    ) -> Completed:
        """Run `ruff check` on these files of the project. A link out of the project is left out.

        Raises `ToolError` for flags or settings that are not allowed, and at the limit.
        """
        words = [word for word in check_arguments(["ruff", "check", *flags]) if word != "-"]
        root = cwd.resolve()
        inside = [name for name in files if (root / name).is_file() and (root / name).resolve().is_relative_to(root)]
        folders = {PurePosixPath(name).parent.as_posix() for name in inside}
        await asyncio.to_thread(check_settings, [f"--stdin-filename={folder}/x" for folder in folders], cwd)
        if not inside:
            return Completed((), 0, b"", b"")
        argv = [str(find_program("ruff")), *words, *(f"./{name}" for name in inside)]
        return await self.execute(argv, cwd=cwd, stdin=b"", limit_s=limit_s)

    async def describe_rules(self, *, cwd: Path, limit_s: float = 60.0) -> Completed:
        """Run `ruff rule --all`, which prints JSON and reads no file. Raises `ToolError` at the limit."""
        argv = [str(find_program("ruff")), "rule", "--all", "--output-format=json"]
        return await self.execute(argv, cwd=cwd, stdin=b"", limit_s=limit_s)

    async def _run_sandboxed(
        self, module: str, words: Sequence[str], *, cwd: Path, stdin: bytes, limit_s: float, over: Path | None
    ) -> Completed:
        async def execute(command: Sequence[str], keep: tuple[int, ...], sandboxed: bool) -> Completed:
            start = Start(module, keep=keep, sandboxed=sandboxed)
            return await self.execute(command, cwd=_ROOT, stdin=stdin, limit_s=limit_s, start=start)

        root = cwd.resolve()
        return await run_sandboxed(
            module,
            words,
            root=root,
            hidden=self._hidden.setdefault(root, Hidden(root)),
            over=over,
            report=await asyncio.to_thread(probe) if self._report is None else self._report,
            allow_unsandboxed=self._allow_unsandboxed,
            limits=self._limits,
            execute=execute,
        )

    async def execute(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        stdin: bytes,
        limit_s: float,
        start: Start | None = None,
    ) -> Completed:
        """Run this program to completion. For callers inside this package: the allow-list is not checked."""
        start = start or Start(Path(argv[0]).name)
        child = _Child(asyncio.get_running_loop().create_future(), self._max_output, sandboxed=start.sandboxed)
        starting = asyncio.ensure_future(_start(child, argv, cwd, start.keep))
        try:
            transport = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio would kill only the child, then wait for any process that holds its pipes. A start is short: let
            # it finish.
            await _end(child, await starting)
            raise
        _limit(transport.get_pid())
        return await _wait_for(child, transport, (start.name, *argv[1:]), stdin, limit_s)


async def _start(child: _Child, argv: Sequence[str], cwd: Path, keep: tuple[int, ...]) -> asyncio.SubprocessTransport:
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *argv,
            cwd=cwd,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=keep,
        )
    except OSError as error:
        raise ToolFailed(f"`{Path(argv[0]).name}` could not be started: {error.strerror}") from error
    return transport


class _Child(asyncio.SubprocessProtocol):
    """The output of one child, up to a limit, and when it has exited and closed its pipes."""

    def __init__(self, ended: asyncio.Future[None], max_output: int, *, sandboxed: bool) -> None:
        self.ended = ended
        self.max_output = max_output
        self.room = max_output
        self.output = {1: Spool(), 2: Spool()}
        self.waiting = {"exit", "1", "2"}
        self.pid: int | None = None
        self.sandboxed = sandboxed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.pid = transport.get_pid() if isinstance(transport, asyncio.SubprocessTransport) else None

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.room -= len(data)
        if self.room < 0:
            self.kill()
        else:
            self.output[fd].add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._mark_closed(str(fd))

    def process_exited(self) -> None:
        self._mark_closed("exit")

    def _mark_closed(self, what: str) -> None:
        self.waiting.discard(what)
        if not self.waiting and not self.ended.done():
            self.ended.set_result(None)

    def kill(self) -> None:
        """Kill the process group, and descendants that left it."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if not self.sandboxed and "exit" in self.waiting and sys.platform == "linux":
                    # Stop it first. Otherwise it could exit meanwhile, and its other children would be orphaned.
                    os.kill(self.pid, signal.SIGSTOP)
                    end_descendants(self.pid)
                os.killpg(self.pid, signal.SIGKILL)


async def _wait_for(
    child: _Child, transport: asyncio.SubprocessTransport, argv: Sequence[str], stdin: bytes, limit_s: float
) -> Completed:
    """Wait for the child. In any case, also when cancelled, it and its process group are gone afterwards."""
    name = argv[0]
    try:
        _feed(transport, stdin)
        await asyncio.wait({child.ended}, timeout=limit_s)
        late = not child.ended.done()
    finally:
        await _end(child, transport)
    if late:
        raise ToolLimitExceeded(name, limit=f"{limit_s:g} s")
    if child.room < 0:
        raise ToolLimitExceeded(name, limit=f"{child.max_output / MB:g} MB of output")
    stdout, stderr = child.output[1], child.output[2]
    full = {name: spool for name, spool in (("stdout", stdout), ("stderr", stderr)) if spool.is_large}
    return Completed(tuple(argv), transport.get_returncode() or 0, stdout.head(), stderr.head(), full)


async def _end(child: _Child, transport: asyncio.SubprocessTransport) -> None:
    """Kill the child's process group and close its pipes, even if a process outside the group still holds them."""
    child.kill()
    await asyncio.wait({child.ended}, timeout=KILL_S)
    transport.close()


def _feed(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    """Write the input. A child may exit without reading it all: its exit status then says more than a broken pipe."""
    pipe = transport.get_pipe_transport(0)
    if isinstance(pipe, asyncio.WriteTransport):
        pipe.write(data)
        pipe.close()


def _limit(pid: int) -> None:
    """Limit memory and forbid core dumps. Set from outside just after the start, which is early enough."""
    if sys.platform != "linux":
        return
    import resource

    for kind, bound in ((resource.RLIMIT_AS, MAX_MEMORY), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            resource.prlimit(pid, kind, (bound, bound))
