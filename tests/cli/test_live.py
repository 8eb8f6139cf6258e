"""The live view of a run: how far it is, what runs now, how long it still takes."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from postgres import Server
from remora.app import SystemClock
from remora.cli import _live
from remora.cli._live import LiveRun
from remora.events import AgentEndEvent, ToolCallEvent
from remora.nodes import CodeNode
from remora.orchestrator import Plan
from remora.ports import AgentResult, Job
from remora.testing import make_node
from remora.trace import PostgresStore, PostgresTrace, parse_address

START = 1_800_000_000.0
STAMP = "2027-01-15T08:00:00Z"  # START


@pytest.fixture
def plan() -> Plan:
    return make_plan(*(("lint", f"src/a.py:f{n}") for n in range(8)))


def make_plan(*work: tuple[str, str]) -> Plan:
    jobs = tuple(Job("run", f"agent{n}", operation, _node(node)) for n, (operation, node) in enumerate(work))
    operations = tuple(dict.fromkeys(operation for operation, _ in work))
    return Plan("run", "/p", (), operations, "scripted", 1000, jobs)


def _node(node_id: str) -> CodeNode:
    return make_node(node_id=node_id)


def result(number: int, verdict: str = "clean", operation: str = "lint") -> AgentResult:
    return AgentResult(f"agent{number}", "src/a.py:f", operation, "success", verdict=verdict)


def begin(state: Path, number: int, *events: tuple[str, int, dict[str, object]]) -> None:
    folder = state / "traces"
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"type": kind, "turn": turn, "ts": STAMP, "data": data}) for kind, turn, data in events]
    (folder / f"agent{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def at(*seconds: float) -> Callable[[], float]:
    """A clock that shows these times one after another, and then the last one."""
    times = [START + each for each in seconds]
    return lambda: times.pop(0) if len(times) > 1 else times[0]


def test_the_view_names_each_running_agent_with_its_turn_its_tool_and_since_when(plan: Plan, tmp_path: Path) -> None:
    begin(tmp_path, 0, ("turn_start", 2, {}), ("tool_call", 2, {"tool": "run_linter"}))
    begin(tmp_path, 1, ("model_request", 1, {}))
    lines = LiveRun(plan, tmp_path, clock=at(0, 12)).lines(80)
    assert lines[0].endswith("0 of 8 agents · 0:12")
    assert [" ".join(line.split()) for line in lines[1:]] == [
        "now: lint src/a.py:f0 turn 2 run_linter 12 s",
        "lint src/a.py:f1 turn 1 asks the model 12 s",
    ]


def test_the_time_left_follows_the_agents_that_ended_and_is_not_guessed_from_two(plan: Plan, tmp_path: Path) -> None:
    live = LiveRun(plan, tmp_path, clock=at(0, 10, 20, 30))
    live.add(result(0))
    live.add(result(1, "failed"))
    assert live.seconds_left() is None
    live.add(result(2))
    assert live.seconds_left() == 50
    assert "about 50 s left" in live.lines(80)[0]
    assert live.lines(80)[1] == "ended: 2 clean, 1 failed"


def test_an_operation_that_no_agent_ended_makes_the_estimate_a_lower_bound(tmp_path: Path) -> None:
    plan = make_plan(*[("lint", "a.py:f")] * 4, ("test", "a.py:g"))
    live = LiveRun(plan, tmp_path, clock=at(0, 1, 2, 3))
    for number in range(3):
        live.add(result(number))
    assert "more than 2 s left" in live.lines(80)[0]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_a_long_path_keeps_its_end(width: int, tmp_path: Path) -> None:
    plan = make_plan(("docstring", f"src/{'deep/' * 60}file.py:name"))
    begin(tmp_path, 0, ("tool_call", 3, {"tool": "x" * 500}))
    lines = LiveRun(plan, tmp_path, clock=at(0, 99)).lines(width)
    assert all(len(line) <= max(width, 52) for line in lines)
    assert "py:name" in lines[1]


@pytest.mark.parametrize("line", [b"", b"{", b"[]\n", b'{"type": 1}\n', b"\xff\n", b'{"type":"tool_call","turn":1}\n'])
def test_a_stream_that_is_not_written_yet_or_damaged_shows_that_its_agent_starts(
    line: bytes, plan: Plan, tmp_path: Path
) -> None:
    begin(tmp_path, 0)
    (tmp_path / "traces" / "agent0.jsonl").write_bytes(line)
    assert "starts" in LiveRun(plan, tmp_path, clock=at(0)).lines(80)[1]


def test_escapes_of_a_stream_do_not_reach_the_terminal(plan: Plan, tmp_path: Path) -> None:
    begin(tmp_path, 0, ("tool_call", 1, {"tool": "\x1b[2Jgone"}))
    assert "\x1b" not in "".join(LiveRun(plan, tmp_path, clock=at(0)).lines(80))


def test_the_last_pass_adds_agents_beyond_the_plan(tmp_path: Path) -> None:
    live = LiveRun(make_plan(("lint", "a.py")), tmp_path, clock=at(0))
    live.add(result(0))
    live.add(result(9))
    assert "2 of 2 agents" in live.lines(80)[0]
    assert live.lines(80)[-1] == "now:   checks all changes together"


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_the_view_is_shown_only_at_a_terminal_and_never_beside_json(
    terminal: bool, quiet: bool, shown: bool, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = io.StringIO()
    monkeypatch.setattr(_live, "err", Console(file=told, force_terminal=terminal, width=80))
    with LiveRun(plan, tmp_path, quiet=quiet, clock=at(0)):
        pass
    assert ("0 of 8 agents" in told.getvalue()) == shown


def test_the_view_names_running_agents_whose_streams_are_in_a_store(
    plan: Plan, tmp_path: Path, postgres: Server
) -> None:
    url = postgres.new_url()

    async def begin_two() -> None:
        async with PostgresTrace(url, clock=SystemClock()) as trace:
            await trace.append("traces/agent1", [ToolCallEvent(call_id="1", tool="run_linter", turn=2)])
            await trace.append("traces/agent2", [ToolCallEvent(call_id="1", tool="read", turn=1), AgentEndEvent()])

    asyncio.run(begin_two())
    lines = LiveRun(plan, tmp_path, store=PostgresStore(parse_address(url), tmp_path)).lines(80)
    (now,) = (line for line in lines if line.startswith("now:"))
    assert "src/a.py:f1" in now and "turn 2" in now and "run_linter" in now
    assert not any("f2" in line for line in lines), "it has ended"


def test_a_store_that_cannot_be_asked_does_not_stop_the_view(plan: Plan, tmp_path: Path, postgres: Server) -> None:
    nowhere = PostgresStore(parse_address(postgres.new_url()), tmp_path)
    assert LiveRun(plan, tmp_path, store=nowhere).lines(80)[-1].startswith("now:")
