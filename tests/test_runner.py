from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from remora.app import SystemClock
from remora.context.contracts import ToolSpec
from remora.errors import DecisionError, TracePoisoned
from remora.events import Event, FileChange
from remora.inference import EstimatedCounter, ScriptedPolicy
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import AgentResult, Decision, Prompt, ToolOutput
from remora.runner import Runner, judge
from remora.subagent import SUBMIT_RESULT, CheckRule, SubagentDefinition
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, TwoTrack

DEFINITION = SubagentDefinition(
    name="lint",
    goal="Fix {node}",
    system_prompt="Fix it.",
    tools=[{"name": "run_linter", "effects": "none"}, {"name": "apply_fix", "effects": "workspace"}],
    check={"tool": "run_linter", "count": "left"},
)
NODE = CodeNode(
    node_id="a.py:f",
    node_type=NodeType.FUNCTION,
    name="f",
    file_path=Path("a.py"),
    lines=LineRange(first=1, last=2),
    owned=(LineRange(first=1, last=2),),
    text="def f():\n    pass\n",
)


class CountingTools:
    """A linter that finds two errors, and a fix that takes one away each time."""

    specs = (ToolSpec(name="run_linter", effects="none"), ToolSpec(name="apply_fix", effects="workspace"))

    def __init__(self) -> None:
        self.left = 2
        self.changes: list[tuple[str, bytes | None, bytes | None]] = []

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        if name == "apply_fix":
            self.changes.append(("a.py", b"%d" % self.left, b"%d" % (self.left - 1)))
            self.left -= 1
        more = [{"tool": "apply_fix"}] if self.left else []
        return ToolOutput(
            {"summary": f"{self.left} left", "knowledge_delta": {"left": self.left}, "candidate_actions": more}
        )

    async def read(self, path: str) -> bytes:
        return b""

    async def write(self, path: str, data: bytes) -> None:
        raise AssertionError("not used here")

    async def exists(self, path: str) -> bool:
        return True

    def take_changes(self) -> tuple[tuple[str, bytes | None, bytes | None], ...]:
        taken, self.changes = tuple(self.changes), []
        return taken


class Waiting:
    """A policy that never answers."""

    name = "waiting"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def decide(self, prompt: Prompt) -> Decision:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


class Says:
    """A policy that answers in words."""

    name = "says"

    async def decide(self, prompt: Prompt) -> Decision:
        return Decision(calls=(), text="I am done")


class BrokenDisk(MemoryTrace):
    """A writer whose disk fails at the first tool call."""

    async def append(self, stream_id: str, drafts: Sequence[Event]) -> Sequence[Event]:
        if any(draft.type == "tool_call" for draft in drafts):
            raise TracePoisoned("The disk failed")
        return await super().append(stream_id, drafts)


class Stage:
    """One agent, with its parts in reach."""

    def __init__(self, policy: Any, writer: MemoryTrace | None = None, max_turns: int = 12) -> None:
        self.tools = CountingTools()
        self.writer = writer or MemoryTrace(clock=SystemClock())
        track = TwoTrack(
            Identity("01M7AGENT", "01M7RUN", "lint", NODE.node_id),
            goal="Fix a.py:f",
            tools=(*self.tools.specs, SUBMIT_RESULT),
            system_prompt="Fix it.",
            limit=1000,
            writer=self.writer,
            blobs=MemoryBlobs(),
            counter=EstimatedCounter(),
            clock=SystemClock(),
        )
        self.runner = Runner(
            track, DEFINITION, NODE, policy=policy, tools=self.tools, workspace=self.tools, max_turns=max_turns
        )

    async def run(self) -> AgentResult:
        return await self.runner.run()

    async def types(self) -> list[str]:
        return [event.type async for event in self.writer.read("traces/01M7AGENT")]


async def test_a_run_leaves_the_events_of_the_straight_line() -> None:
    stage = Stage(ScriptedPolicy(["run_linter", "submit_result"]))
    await stage.run()
    turn = ["turn_start", "model_request", "model_response"]
    assert await stage.types() == [
        "agent_start",
        *turn,
        "tool_call",
        "tool_result",
        *turn,
        "submit_result",
        "agent_end",
    ]


async def test_the_files_decide_and_not_the_agents_word() -> None:
    result = await Stage(ScriptedPolicy(["run_linter", "candidates", "submit_result"])).run()
    assert (result.outcome, result.verdict, result.check["before"], result.check["after"]) == ("success", "clean", 2, 0)
    boasting = await Stage(ScriptedPolicy(["submit_result"])).run()
    assert (boasting.outcome, boasting.verdict) == ("success", "unchanged")


async def test_changes_of_several_calls_are_one_change_a_file() -> None:
    result = await Stage(ScriptedPolicy(["run_linter", "candidates", "submit_result"])).run()
    (change,) = result.files
    assert isinstance(change, FileChange)
    assert change.path == "a.py"
    assert change.before != change.after


async def test_an_agent_that_never_submits_stops_at_its_turn_limit() -> None:
    result = await Stage(ScriptedPolicy(["run_linter"] * 9), max_turns=3).run()
    assert (result.outcome, result.reason, result.turns) == ("partial", "max_turns", 3)


async def test_an_answer_without_a_call_is_a_result() -> None:
    result = await Stage(Says()).run()
    assert (result.outcome, result.reason, result.summary) == ("success", "answered", "I am done")


async def test_a_policy_without_a_valid_call_ends_the_run_with_a_typed_event() -> None:
    stage = Stage(ScriptedPolicy([]))
    result = await stage.run()
    assert (result.outcome, result.reason) == ("error", DecisionError.__name__)
    assert (await stage.types())[-2:] == ["agent_error", "agent_end"]


async def test_a_cancelled_run_is_sealed_before_it_goes() -> None:
    policy = Waiting()
    stage = Stage(policy)
    task = asyncio.create_task(stage.run())
    await policy.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await stage.types())[-1] == "agent_end"


async def test_a_run_whose_disk_fails_is_degraded_and_runs_no_tool() -> None:
    stage = Stage(ScriptedPolicy(["apply_fix", "submit_result"]), BrokenDisk(clock=SystemClock()))
    result = await stage.run()
    assert (result.outcome, result.head) == ("degraded", "")
    assert stage.tools.left == 2


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(2, 0, "clean"), (0, 0, "clean"), (3, 1, "partial"), (3, 3, "unchanged"), (1, 2, "failed"), (None, 0, "failed")],
)
def test_the_verdict_compares_the_files_before_and_after(before: int | None, after: int, verdict: str) -> None:
    assert judge(CheckRule(tool="run_linter", count="left"), before, after)["verdict"] == verdict


class Defective:
    """A policy with a defect."""

    name = "defective"

    async def decide(self, prompt: Prompt) -> Decision:
        raise ZeroDivisionError("a defect")


async def test_a_defect_in_a_policy_seals_the_stream_all_the_same() -> None:
    stage = Stage(Defective())
    result = await stage.run()
    assert (result.outcome, result.reason) == ("error", "internal_error")
    assert (await stage.types())[-2:] == ["agent_error", "agent_end"]
