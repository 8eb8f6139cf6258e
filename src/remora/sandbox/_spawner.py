"""The one place that starts programs: by argument list, without a shell, in a clean environment, within limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.errors import ToolFailed, ToolLimitExceeded
from remora.ports import Completed
from remora.sandbox._allow import RUNS_PROJECT_CODE, allowed, find_program, rules_of
from remora.sandbox._environment import ENVIRONMENT
from remora.sandbox._hidden import Hidden
from remora.sandbox._jail._watch import end_descendants
from remora.sandbox._plan import Limits
from remora.sandbox._probe import SandboxReport, probe
from remora.sandbox._project import run_walled
from remora.sandbox._ruff_settings import check_settings
from remora.sandbox._spool import Spool

MB = 1024 * 1024
MAX_OUTPUT = 4 * 1024 * MB
"""Bytes that a program may say before it is stopped. They go to the disk, so this guards the disk."""
MAX_MEMORY = 8 * 1024 * MB
"""Address space of a child. Generous, as allocators reserve far more than they use."""
KILL_S = 2.0
LIMITS = Limits()
_ROOT = Path("/")


@dataclass(frozen=True)
class Start:
    """How a command is named where it is told about, and how its child is started."""

    name: str
    keep: tuple[int, ...] = ()
    """Descriptors that the child has too."""
    walled: bool = False
    """Whether the child takes all that it started along when it dies."""


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
        """`allow_unsandboxed` is the user's word alone. `report` is what works here; by default it is tried out.

        `extra` are Python modules that may be run too, always inside the sandbox, with the flags of each.
        """
        self._extra = {name: rules_of(flags) for name, flags in (extra or {}).items()}
        self._max_output = max_output
        self._limits = limits
        self._allow_unsandboxed = allow_unsandboxed
        self._report = report
        self._hidden: dict[Path, Hidden] = {}

    async def run(
        self, argv: Sequence[str], *, cwd: Path, stdin: bytes = b"", limit_s: float = 30.0, over: Path | None = None
    ) -> Completed:
        """Run an allowed program to its end. Raises `ToolError` if it is not allowed or reaches a limit.

        What runs the project's code sees `cwd` with the files below `over` in their places, and writes to neither.
        """
        words = allowed(argv, self._extra)
        if argv[0] in RUNS_PROJECT_CODE or argv[0] in self._extra:
            return await self._run_walled(argv[0], words, cwd=cwd, stdin=stdin, limit_s=limit_s, over=over)
        await asyncio.to_thread(check_settings, words, cwd)
        return await self.execute([str(find_program(argv[0])), *words], cwd=cwd, stdin=stdin, limit_s=limit_s)

    async def _run_walled(
        self, module: str, words: Sequence[str], *, cwd: Path, stdin: bytes, limit_s: float, over: Path | None
    ) -> Completed:
        async def execute(command: Sequence[str], keep: tuple[int, ...], walled: bool) -> Completed:
            start = Start(module, keep=keep, walled=walled)
            return await self.execute(command, cwd=_ROOT, stdin=stdin, limit_s=limit_s, start=start)

        root = cwd.resolve()
        return await run_walled(
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
        """Run this very program to its end. For callers inside this package: nothing is checked any more."""
        start = start or Start(Path(argv[0]).name)
        child = _Child(asyncio.get_running_loop().create_future(), self._max_output, walled=start.walled)
        starting = asyncio.ensure_future(_start(child, argv, cwd, start.keep))
        try:
            transport = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio would kill the child alone, then wait for whoever holds its pipes. A start is short: let it be.
            await _end(child, await starting)
            raise
        _limit(transport.get_pid())
        return await _completed(child, transport, (start.name, *argv[1:]), stdin, limit_s)


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
    """What one child says, up to a limit, and when it has ended and closed its mouth."""

    def __init__(self, ended: asyncio.Future[None], max_output: int, *, walled: bool) -> None:
        self.ended = ended
        self.max_output = max_output
        self.room = max_output
        self.said = {1: Spool(), 2: Spool()}
        self.waiting = {"exit", "1", "2"}
        self.pid: int | None = None
        self.walled = walled

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.pid = transport.get_pid() if isinstance(transport, asyncio.SubprocessTransport) else None

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.room -= len(data)
        if self.room < 0:
            self.kill()
        else:
            self.said[fd].add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.one_less(str(fd))

    def process_exited(self) -> None:
        self.one_less("exit")

    def one_less(self, what: str) -> None:
        self.waiting.discard(what)
        if not self.waiting and not self.ended.done():
            self.ended.set_result(None)

    def kill(self) -> None:
        """Ends the whole group, and those who left it while the child lives: they would otherwise live on."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if not self.walled and "exit" in self.waiting and sys.platform == "linux":
                    # Stopped first: it might end with the one it waits for, and its others would be nobody's.
                    os.kill(self.pid, signal.SIGSTOP)
                    end_descendants(self.pid)
                os.killpg(self.pid, signal.SIGKILL)


async def _completed(
    child: _Child, transport: asyncio.SubprocessTransport, argv: Sequence[str], stdin: bytes, limit_s: float
) -> Completed:
    """How the child ended. Whatever happens here, cancellation too, it and its group are gone afterwards."""
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
    stdout, stderr = child.said[1], child.said[2]
    full = {name: spool for name, spool in (("stdout", stdout), ("stderr", stderr)) if spool.is_large}
    return Completed(tuple(argv), transport.get_returncode() or 0, stdout.head(), stderr.head(), full)


async def _end(child: _Child, transport: asyncio.SubprocessTransport) -> None:
    """The child's group is dead and its pipes are closed, even if someone who left the group still holds them."""
    child.kill()
    await asyncio.wait({child.ended}, timeout=KILL_S)
    transport.close()


def _feed(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    """A child may end without reading everything: its exit status then says more than our broken pipe."""
    pipe = transport.get_pipe_transport(0)
    if isinstance(pipe, asyncio.WriteTransport):
        pipe.write(data)
        pipe.close()


def _limit(pid: int) -> None:
    """Bounds memory and forbids core dumps. From outside, so a moment after the start: enough against growth."""
    if sys.platform != "linux":
        return
    import resource

    for kind, bound in ((resource.RLIMIT_AS, MAX_MEMORY), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            resource.prlimit(pid, kind, (bound, bound))
