from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from remora.app import SystemClock
from remora.context.contracts import ToolSpec
from remora.errors import DecisionError, ReplyInvalid, TracePoisoned
from remora.events import (
    AgentEndEvent,
    Call,
    Event,
    FileChange,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolResultEvent,
    is_check,
)
from remora.inference import EstimatedCounter, ScriptedPolicy
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import AgentResult, Decision, Prompt, ToolOutput, Written
from remora.runner import AFTER, BEFORE, CheckResult, RunLimits, Runner, judge
from remora.subagent import NO_TOOL_FITS, SUBMIT_RESULT, CheckRule, DraftRule, SubagentDefinition
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, Memory, PromptSettings, TwoTrack, Wiring

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
        self.changes: list[Written] = []

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        if name == "apply_fix":
            self.changes.append(Written("a.py", b"%d" % self.left, b"%d" % (self.left - 1)))
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

    def take_changes(self) -> tuple[Written, ...]:
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


CHECK = ["tool_call", "tool_result"]
"""The records of the agent's check."""


class Stage:
    """One agent, with its parts in reach."""

    def __init__(
        self,
        policy: Any,
        writer: MemoryTrace | None = None,
        max_turns: int = 12,
        *,
        tools: Any = None,
        definition: SubagentDefinition = DEFINITION,
        past: Sequence[Event] = (),
        blobs: MemoryBlobs | None = None,
        memory: Memory = "packet",
        limit: int = 1000,
        offered: Sequence[ToolSpec] = (SUBMIT_RESULT,),
        drafts: Sequence[DraftRule] = (),
        **limits: Any,
    ) -> None:
        self.tools = tools or CountingTools()
        self.blobs = blobs or MemoryBlobs()
        self.writer = writer or MemoryTrace(clock=SystemClock())
        track = TwoTrack.of(
            Wiring(
                identity=Identity("01M7AGENT", "01M7RUN", "lint", NODE.node_id),
                goal="Fix a.py:f",
                tools=(*self.tools.specs, *offered),
                system_prompt="Fix it.",
                prompts=PromptSettings(limit, memory=memory, drafts=tuple(drafts)),
                writer=self.writer,
                blobs=self.blobs,
                counter=EstimatedCounter(),
                clock=SystemClock(),
            )
        )
        self.track = track
        self.runner = Runner(
            track,
            definition,
            NODE,
            policy=policy,
            tools=self.tools,
            workspace=self.tools,
            limits=RunLimits(max_turns, **limits),
            past=past,
        )

    async def run(self) -> AgentResult:
        return await self.runner.run()

    async def events(self) -> list[Event]:
        return [event async for event in self.writer.read("traces/01M7AGENT")]

    async def types(self) -> list[str]:
        return [event.type for event in await self.events()]


async def test_a_run_leaves_the_events_of_the_straight_line() -> None:
    stage = Stage(ScriptedPolicy(["run_linter", "submit_result"]))
    await stage.run()
    turn = ["turn_start", "model_request", "model_response"]
    assert await stage.types() == [
        "agent_start",
        *CHECK,
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


async def test_the_end_of_a_stream_names_the_records_that_prove_its_verdict() -> None:
    stage = Stage(ScriptedPolicy(["run_linter", "candidates", "submit_result"]))
    result = await stage.run()
    events = await stage.events()
    end = events[-1]
    assert isinstance(end, AgentEndEvent)
    assert (end.verdict, end.check) == ("clean", result.check)
    proofs = [events[seq] for seq in end.check["evidence"]]
    assert [(proof.call_id, proof.check["count"]) for proof in proofs if isinstance(proof, ToolResultEvent)] == [
        (BEFORE, 2),
        (AFTER, 0),
    ]
    assert all(proof.purpose == "check" and proof.delta is None for proof in proofs)


async def test_the_check_is_never_shown_to_the_model() -> None:
    for memory in ("packet", "history"):
        policy = Plays(DONE)
        stage = Stage(policy, memory=memory)
        await stage.run()
        assert "2 left" not in str(policy.prompts[0].messages)
        assert "2 left" in str([event for event in await stage.events() if is_check(event)])


async def test_recall_does_not_find_what_only_the_check_saw() -> None:
    stage = Stage(Plays(DONE))
    await stage.run()
    assert (await stage.runner.track.recall("left"))["knowledge_delta"] == {}


async def test_where_nothing_was_changed_the_check_runs_once() -> None:
    stage = Stage(ScriptedPolicy(["run_linter", "submit_result"]))
    result = await stage.run()
    assert [event.call_id for event in await stage.events() if is_check(event)] == [BEFORE, BEFORE]
    assert (result.verdict, result.check["evidence"]) == ("unchanged", [2])


class Breaking(CountingTools):
    """Tools with a defect in the one that checks."""

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        raise ZeroDivisionError("a defect")


async def test_a_check_that_raises_anything_leaves_a_sealed_stream_that_says_so() -> None:
    stage = Stage(Plays(DONE), tools=Breaking())
    result = await stage.run()
    assert (result.outcome, result.verdict) == ("success", "failed")
    end = (await stage.events())[-1]
    assert isinstance(end, AgentEndEvent)
    assert "ZeroDivisionError: a defect" in end.check["why"]


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


class Declines:
    """A policy that finds no tool that fits."""

    name = "declines"

    async def decide(self, prompt: Prompt) -> Decision:
        return Decision(calls=(Call(call_id="c", tool="no_tool_fits", args={"reason": "nothing books a table"}),))


async def test_an_agent_that_declines_ends_at_once_and_says_what_is_missing() -> None:
    stage = Stage(Declines(), offered=(NO_TOOL_FITS, SUBMIT_RESULT))
    result = await stage.run()
    said = "No tool fits: nothing books a table"
    assert (result.outcome, result.reason, result.summary) == ("partial", "no_tool_fits", said)
    cut = [event for event in await stage.events() if event.type != "agent_end"]
    again = await Stage(Waiting(), past=cut, blobs=stage.blobs, offered=(NO_TOOL_FITS, SUBMIT_RESULT)).run()
    assert (again.outcome, again.reason, again.summary) == ("partial", "no_tool_fits", said)


async def test_a_policy_without_a_valid_call_ends_the_run_with_a_typed_event() -> None:
    stage = Stage(ScriptedPolicy([]))
    result = await stage.run()
    assert (result.outcome, result.reason) == ("error", DecisionError.code)
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
    judged = judge(CheckRule(tool="run_linter", count="left"), CheckResult(before, seq=2), CheckResult(after, seq=9))
    assert (judged["verdict"], judged["evidence"]) == (verdict, [2, 9])


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


class Plays:
    """A policy that plays a list: a decision, or an error to raise."""

    name = "plays"

    def __init__(self, *play: Decision | Exception) -> None:
        self.play = list(play)
        self.prompts: list[Prompt] = []

    async def decide(self, prompt: Prompt) -> Decision:
        self.prompts.append(prompt)
        step = self.play.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


def calls(*tools: str, **args: Any) -> Decision:
    return Decision(tuple(Call(call_id=f"c{place}-{tool}", tool=tool, args=args) for place, tool in enumerate(tools)))


DONE = calls("submit_result", summary="done")


async def test_a_reply_that_is_no_call_is_recorded_told_to_the_model_and_asked_again() -> None:
    policy = Plays(ReplyInvalid("Nothing in the reply is a call", text="Sure! I will", finish="length"), DONE)
    stage = Stage(policy)
    result = await stage.run()
    assert result.outcome == "success"
    (said,) = [event for event in await stage.events() if isinstance(event, ModelResponseEvent) and event.error]
    assert (said.text, said.finish, said.error) == ("Sure! I will", "length", "reply_invalid")
    assert "Nothing in the reply is a call" in policy.prompts[1].messages[-1]["content"]


async def test_a_model_that_never_calls_is_asked_a_bounded_number_of_times() -> None:
    stage = Stage(Plays(*[ReplyInvalid("No call")] * 9), retries=2)
    result = await stage.run()
    assert (result.outcome, result.reason, result.turns) == ("error", "reply_invalid", 3)


async def test_failed_calls_in_a_row_stop_the_agent() -> None:
    stage = Stage(Plays(*[calls("no_such_tool")] * 9), max_errors=3, tools=FailingTools())
    result = await stage.run()
    assert (result.outcome, result.reason, result.turns) == ("partial", "error_limit", 3)


async def test_equal_calls_with_equal_results_stop_the_agent() -> None:
    result = await Stage(Plays(*[calls("run_linter")] * 9), max_repeats=4).run()
    assert (result.outcome, result.reason, result.turns) == ("partial", "repeat_limit", 4)


async def test_a_call_that_only_repeats_itself_is_no_longer_offered_until_files_change() -> None:
    policy = Plays(*[calls("run_linter")] * 3, calls("apply_fix", code="F401"), calls("run_linter"), DONE)
    stage = Stage(policy, max_repeats=9)
    await stage.run()
    offered = [[tool.name for tool in prompt.tools] for prompt in policy.prompts]
    assert ["run_linter" in names for names in offered] == [True, True, True, False, True, True]
    receipts = [event for event in await stage.events() if isinstance(event, ModelRequestEvent)]
    assert [list(event.offered) for event in receipts] == offered


class StubbornTools(CountingTools):
    """Tools of which one fails in the same way for the same arguments."""

    specs = (
        ToolSpec(name="run_linter", effects="none"),
        ToolSpec(name="apply_fix", effects="workspace", parameters={"properties": {"code": {"type": "string"}}}),
        ToolSpec(name="ask_ci", effects="outside", parameters={"properties": {"job": {"type": "string"}}}),
    )

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        if name == "run_linter":
            return await super().call(name, args)
        return ToolOutput({"summary": f"No {args}", "outcome": "error", "error": f"No {args}"})


async def test_a_tool_that_failed_twice_alike_is_not_offered_for_one_turn() -> None:
    same, other = calls("apply_fix", code="F401"), calls("apply_fix", code="E711")
    policy = Plays(same, same, calls("run_linter"), other, same, same, DONE)
    await Stage(policy, max_errors=9, tools=StubbornTools()).run()
    offered = ["apply_fix" in [tool.name for tool in prompt.tools] for prompt in policy.prompts]
    assert offered == [True, True, False, True, True, False, False]


async def test_a_tool_of_the_outside_world_may_be_tried_again_when_it_failed_alike() -> None:
    policy = Plays(*[calls("ask_ci", job="7")] * 3, DONE)
    await Stage(policy, max_errors=9, tools=StubbornTools()).run()
    assert all("ask_ci" in [tool.name for tool in prompt.tools] for prompt in policy.prompts)


async def test_a_deadline_ends_the_agent_and_seals_its_stream() -> None:
    stage = Stage(Waiting(), deadline_s=0.05)
    result = await stage.run()
    assert (result.outcome, result.reason) == ("partial", "deadline")
    assert (await stage.types())[-1] == "agent_end"


async def test_several_calls_of_one_turn_are_made_and_recorded_in_order() -> None:
    stage = Stage(Plays(calls("run_linter", "apply_fix"), DONE))
    await stage.run()
    events = await stage.events()
    results = [event for event in events if isinstance(event, ToolResultEvent) and not is_check(event)]
    assert [(event.tool, event.turn) for event in results] == [("run_linter", 1), ("apply_fix", 1)]


async def test_of_too_many_calls_in_one_reply_only_some_are_made() -> None:
    stage = Stage(Plays(calls(*["run_linter"] * 40), DONE), max_repeats=99)
    await stage.run()
    calls_made = [event for event in await stage.events() if event.type == "tool_call" and not is_check(event)]
    assert len(calls_made) == 16


async def test_what_gives_context_is_recorded_before_the_first_turn() -> None:
    definition = DEFINITION.model_copy(update={"context": ("run_linter",)})
    policy = Plays(DONE)
    stage = Stage(policy, definition=definition)
    await stage.run()
    assert (await stage.types())[:6] == ["agent_start", *CHECK, "tool_call", "tool_result", "turn_start"]
    assert "2 left" in policy.prompts[0].messages[-1]["content"]


async def test_without_the_packet_the_same_agent_gets_the_whole_chat() -> None:
    policy = Plays(calls("run_linter"), calls("apply_fix"), DONE)
    stage = Stage(policy, memory="history")
    await stage.run()
    said = [message["content"] for message in policy.prompts[2].messages]
    assert [message["role"] for message in policy.prompts[2].messages] == ["system", "user"] + ["assistant", "user"] * 2
    assert "2 left" in said[3]
    assert "1 left" in said[5]
    renderers = {event.renderer for event in await stage.events() if isinstance(event, ModelRequestEvent)}
    assert renderers == {"history-1"}


async def test_history_that_is_cut_keeps_the_goal_and_the_newest_within_the_limit() -> None:
    policy = Plays(*[calls("run_linter")] * 11, DONE)
    stage = Stage(policy, memory="cut history", limit=700, max_repeats=99, max_turns=20)
    assert (await stage.run()).reason == "submitted"
    receipts = [event for event in await stage.events() if isinstance(event, ModelRequestEvent)]
    assert all(event.tokens["total"] <= 700 for event in receipts)
    assert receipts[-1].left_out["messages"] > 0
    assert policy.prompts[-1].messages[1]["content"].startswith("Fix a.py:f")


class FailingTools(CountingTools):
    """Tools of which each call fails."""

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        if name == "run_linter":
            return await super().call(name, args)
        raise ZeroDivisionError("failed")
