"""What tests share: a clock that ticks, drafts, a stream file of some length, and the figures of faults at the end."""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings

from cli.warm import WarmCommand
from postgres import Server, make_server
from remora.events import AgentEndEvent, AgentStartEvent, Event, ToolResultEvent
from remora.trace import FileTrace

STREAM = "traces/01TEST"

# Runs decide without a model unless a test says otherwise: what the embedded one does is slow, and its own to decide.
os.environ.setdefault("REMORA_SERVER__SERVER", "scripted")

# Tests of runs ask their policy at every turn: they are about asking. Tests of rules turn them on (`by_rule`).
os.environ.setdefault("REMORA_RUNNER__BY_RULE", "false")

# Tests start hundreds of commands, each of which would compile our modules again without its bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The user's own state lies outside every project: for tests, in a folder of their own. Workers share their parent's.
if "REMORA_TESTS" not in os.environ:
    os.environ["REMORA_TESTS"] = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="remora-tests-")
    atexit.register(shutil.rmtree, os.environ["REMORA_TESTS"], ignore_errors=True)

# A shell lets its background jobs ignore Ctrl-C, and their children inherit that. Tests send it to commands they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more about the machine than about us: speed belongs in benchmarks/.
settings.register_profile("remora", deadline=None)
# Where a change is judged, the same examples every time; new ones are looked for at home.
settings.register_profile("remora-ci", deadline=None, derandomize=True)
settings.load_profile("remora-ci" if os.environ.get("CI") else "remora")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without collecting garbage: everything that is imported and collected stays to the end."""
    gc.disable()
    with _first_compiles() if "PYTEST_XDIST_WORKER" in os.environ else nullcontext():
        result = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    return result


@contextmanager
def _first_compiles() -> Iterator[None]:
    """Let one worker collect first. The others then read the tests that it compiled, which takes most of the time."""
    with Path(os.environ["REMORA_TESTS"], "compiled").open("a") as compiled:
        fcntl.flock(compiled, fcntl.LOCK_EX)
        if os.fstat(compiled.fileno()).st_size:
            fcntl.flock(compiled, fcntl.LOCK_UN)
        yield
        compiled.write("yes")


class TickingClock:
    """One microsecond later every time it is asked."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 15, 18, 20, 45, tzinfo=UTC)

    def now(self) -> datetime:
        self.time += timedelta(microseconds=1)
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


@pytest.fixture
def by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules decide where nothing is to decide, as for users."""
    monkeypatch.setenv("REMORA_RUNNER__BY_RULE", "true")


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / ".agentfs"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A Postgres server for all tests of this process. Each test takes a `new_url`."""
    server = make_server()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmCommand]:
    """The `remora` command, imported once for all tests of this process."""
    command = WarmCommand()
    yield command
    command.close()


@pytest.fixture
def draft() -> Callable[..., Event]:
    def make(raw: object = "done", **more: object) -> Event:
        return ToolResultEvent(call_id="c1", tool="read_file", outcome="success", raw=raw, **more)

    return make


@pytest.fixture
def make_stream(state_dir: Path, clock: TickingClock, draft: Callable[..., Event]) -> Callable[..., Awaitable[Path]]:
    """Writes a stream of `events` events, the last being `agent_end` if it is to be sealed, and gives its file."""

    async def make(events: int = 5, *, sealed: bool = False, stream_id: str = STREAM, goal: str = "g") -> Path:
        drafts: list[Event] = [AgentStartEvent(format=1, goal=goal)]
        drafts += [draft(f"result {number}") for number in range(events - 1 - sealed)]
        drafts += [AgentEndEvent()] * sealed
        async with FileTrace(state_dir, clock=clock, sync="off") as trace:
            for each in drafts:
                await trace.append(stream_id, [each])
            return trace.path(stream_id)

    return make


@pytest.fixture
def strange_stream(state_dir: Path, clock: TickingClock) -> Callable[[int], Awaitable[Path]]:
    """Writes a sealed stream of `events` events whose bytes could mean the same in another case of letters."""

    async def make(events: int) -> Path:
        strange = {"escape": "\x1b[31m\x0b", "number": 1e300, "text": "é\u2028"}
        results = [ToolResultEvent(call_id="c", tool="t", outcome="success", raw=strange) for _ in range(events - 2)]
        async with FileTrace(state_dir, clock=clock, sync="off") as trace:
            await trace.append(STREAM, [AgentStartEvent(format=1), *results, AgentEndEvent()])
            return trace.path(STREAM)

    return make


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each row of `reliability.md` that was run, with its figure."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    rows = [row for report in reports for row in report.user_properties if str(row[0]).startswith("row ")]
    if rows:
        terminalreporter.section("reliability")
    for name, figure in sorted(rows, key=lambda row: int(str(row[0]).split()[1])):
        terminalreporter.line(f"{name}: {figure}")
