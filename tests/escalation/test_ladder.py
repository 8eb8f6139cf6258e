"""An agent on a ladder of scripted models: every rule, up and down, limits, crashes and rungs that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remora.analysis import replay
from remora.app import SystemClock
from remora.config import EscalationConfig
from remora.context.contracts import ToolSpec
from remora.errors import ConfigError, CountingFailed, DecisionError, ReplyInvalid, ServerUnreachable
from remora.escalation import Meter, Price, Rung
from remora.events import (
    EscalationEvent,
    Event,
    ModelRequestEvent,
    NoticeEvent,
    ToolCallEvent,
    ToolResultEvent,
    is_check,
)
from remora.inference import EstimatedCounter
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import AgentResult, Decision, Prompt, ToolOutput, Written
from remora.runner import RunLimits, Runner
from remora.subagent import ESCALATE, SUBMIT_RESULT, SubagentDefinition
from remora.testing import ScriptedModel
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

CHECKED = SubagentDefinition(
    name="lint",
    goal="Fix {node}",
    system_prompt="Fix it.",
    tools=[{"name": "look", "effects": "none"}, {"name": "fix", "effects": "workspace"}],
    check={"tool": "look", "count": "left"},
)
PLAIN = CHECKED.model_copy(update={"check": None})
NODE = CodeNode(
    node_id="a.py:f",
    node_type=NodeType.FUNCTION,
    name="f",
    file_path=Path("a.py"),
    lines=LineRange(first=1, last=2),
    owned=(LineRange(first=1, last=2),),
    text="def f():\n    pass\n",
)
LOOK, FIX, BREAK = ("look", {}), ("fix", {"how": "well"}), ("fix", {"how": "badly"})
SUBMIT, ASK = ("submit_result", {"summary": "Done"}), ("escalate", {"reason": "Too hard for me"})
NO_CALL = ReplyInvalid("The reply is not a call")
PROPERTIES = {"type": "object", "properties": {"how": {"type": "string"}}}


class Shop:
    """Two problems. `fix` takes one away; `fix badly` fails; `look` says how many are left, in many lines."""

    specs = (
        ToolSpec(name="look", effects="none", parameters=PROPERTIES),
        ToolSpec(name="fix", effects="workspace", parameters=PROPERTIES),
    )

    def __init__(self) -> None:
        self.left = 2
        self.called: list[str] = []
        self.changes: list[Written] = []

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        self.called.append(name)
        if args.get("how") == "badly":
            return ToolOutput({"outcome": "error", "error": f"No such fix, try {len(self.called)}"})
        if name == "fix":
            self.changes.append(Written("a.py", b"%d" % self.left, b"%d" % (self.left - 1)))
            self.left -= 1
        lines = [f"a.py:{number}: problem number {number}" for number in range(self.left)]
        return ToolOutput({"summary": f"{self.left} left", "knowledge_delta": {"left": self.left}, "result": lines})

    def take_changes(self) -> tuple[Written, ...]:
        taken, self.changes = tuple(self.changes), []
        return taken


class Failing(ScriptedModel):
    """A scripted model whose steps may also be errors."""

    async def decide(self, prompt: Prompt) -> Decision:
        if self._steps and isinstance(self._steps[0], DecisionError):
            self.prompts.append(prompt)
            raise self._steps.pop(0)  # type: ignore[misc]
        return await super().decide(prompt)


class DeadCounter(EstimatedCounter):
    """A server's counter that answers a few times."""

    def __init__(self, answers: int) -> None:
        self._left = answers

    def count(self, text: str) -> int:
        self._left -= 1
        if self._left < 0:
            raise CountingFailed("The server did not count tokens")
        return super().count(text)


class Rungs:
    """A ladder of scripted models. `None` is a model that cannot be opened."""

    def __init__(self, models: Mapping[str, Any], meter: Meter | None = None, price: Price | None = None) -> None:
        self.names = tuple(models)
        self.meter = meter or Meter()
        self.opened: list[str] = []
        self.counters: dict[str, Any] = {}
        self._models = models
        self._price = price or Price()

    async def open(self, name: str) -> Rung:
        self.opened.append(name)
        if self._models[name] is None:
            raise ConfigError(f"`{name}` does not respond")
        tools = (*Shop.specs, *([] if name == self.names[-1] else [ESCALATE]), SUBMIT_RESULT)
        return Rung(
            name=name,
            policy=self._models[name],
            prompts=PromptSettings(4000, rung=name),
            counter=self.counters.get(name, EstimatedCounter()),
            tools=tools,
            model={"model": name},
            reply_tokens=100,
            price=self._price,
        )


class Stage:
    """One agent on a ladder. The first model is `small`."""

    def __init__(
        self,
        small: Sequence[Any],
        *larger: Sequence[Any] | None,
        definition: SubagentDefinition = PLAIN,
        rules: EscalationConfig | None = None,
        past: Sequence[Event] = (),
        before: Stage | None = None,
        meter: Meter | None = None,
        price: Price | None = None,
        max_turns: int = 20,
    ) -> None:
        names = ("large", "largest")
        self.models = {"small": Failing(*small)}
        self.models |= {name: Failing(*steps) for name, steps in zip(names, larger, strict=False) if steps is not None}
        every = {name: self.models.get(name) for name in ("small", *names[: len(larger)])}
        self.ladder = Rungs(every, meter, price)
        self.shop = Shop() if before is None else before.shop
        self.writer = MemoryTrace(clock=SystemClock()) if before is None else before.writer
        self.blobs = MemoryBlobs() if before is None else before.blobs
        self.track = TwoTrack.of(
            Wiring(
                identity=Identity("01M2AGENT", "01M2RUN", "lint", NODE.node_id),
                goal="Fix a.py:f",
                tools=(*Shop.specs, ESCALATE, SUBMIT_RESULT),
                system_prompt="Fix it.",
                prompts=PromptSettings(1500, rung="small"),
                writer=self.writer,
                blobs=self.blobs,
                counter=EstimatedCounter(),
                clock=SystemClock(),
            )
        )
        self.runner = Runner(
            self.track,
            definition,
            NODE,
            policy=self.models["small"],
            tools=self.shop,
            workspace=self.shop,  # type: ignore[arg-type]
            limits=RunLimits(max_turns),
            ladder=self.ladder,
            rules=rules or EscalationConfig(),
            past=past,
        )

    async def run(self) -> AgentResult:
        result = await self.runner.run()
        self.events = [event async for event in self.writer.read("traces/01M2AGENT")]
        assert replay(self.events).first_difference is None
        return result

    @property
    def moves(self) -> list[tuple[str, str, str]]:
        """Every recorded move: direction, target, rule."""
        return [(e.direction, e.target, e.rule) for e in self.events if isinstance(e, EscalationEvent)]

    @property
    def asked(self) -> list[str]:
        """The rung of every prompt, as recorded."""
        return [event.rung for event in self.events if isinstance(event, ModelRequestEvent)]

    @property
    def notices(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, NoticeEvent)]


@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        ([NO_CALL, NO_CALL], "undecided"),
        ([LOOK, LOOK, LOOK], "repeats"),
        ([BREAK, BREAK, BREAK], "errors"),
        ([ASK], "ask"),
    ],
)
async def test_a_rule_moves_the_agent_up_and_a_good_call_moves_it_down(steps: list[Any], rule: str) -> None:
    stage = Stage([*steps, SUBMIT], [FIX])
    result = await stage.run()
    assert stage.moves == [("up", "large", rule), ("down", "small", "done")]
    assert stage.asked == ["small"] * len(steps) + ["large", "small"]
    assert (result.outcome, result.reason) == ("success", "submitted")
    assert "escalate" not in stage.shop.called


async def test_a_check_that_does_not_get_better_moves_it_up_until_it_does() -> None:
    looks = [("look", {"how": f"way {number}"}) for number in range(4)]
    stage = Stage([*looks, SUBMIT], [("look", {"how": "again"}), FIX], definition=CHECKED)
    result = await stage.run()
    assert stage.moves == [("up", "large", "no_progress"), ("down", "small", "done")]
    assert stage.asked == ["small"] * 4 + ["large"] * 2 + ["small"]
    assert result.check["before"] == 2
    assert result.check["after"] == 1


async def test_a_submission_without_any_progress_is_handed_on_instead() -> None:
    stage = Stage([SUBMIT], [FIX, FIX, SUBMIT], definition=CHECKED, rules=EscalationConfig(max_moves=1))
    result = await stage.run()
    assert stage.moves[0] == ("up", "large", "no_progress")
    assert stage.shop.left == 1
    assert [event.type for event in stage.events].count("submit_result") <= 1
    assert result.outcome in ("success", "error")


async def test_a_submission_is_taken_once_the_check_got_better() -> None:
    stage = Stage([FIX, SUBMIT], [], definition=CHECKED)
    result = await stage.run()
    assert stage.moves == []
    assert (result.outcome, result.verdict) == ("success", "partial")


async def test_a_larger_model_that_is_stuck_too_moves_further_up() -> None:
    stage = Stage([ASK, SUBMIT], [BREAK, BREAK, BREAK], [FIX])
    await stage.run()
    assert stage.moves == [("up", "large", "ask"), ("up", "largest", "errors"), ("down", "small", "done")]


async def test_a_rule_that_is_off_moves_nothing() -> None:
    off = EscalationConfig(undecided=0, repeats=0, errors=0, no_progress=0)
    stage = Stage([BREAK, BREAK, BREAK, BREAK, LOOK, LOOK, LOOK, LOOK, SUBMIT], [], rules=off, definition=CHECKED)
    await stage.run()
    assert stage.moves == []
    assert stage.ladder.opened == []


async def test_the_larger_model_reads_the_raw_results_and_the_event_names_them() -> None:
    stage = Stage([LOOK, ASK, SUBMIT], [FIX])
    await stage.run()
    small, large = stage.models["small"].prompts, stage.models["large"].prompts
    assert "problem number 1" not in str(small[1].messages)
    assert "problem number 1" in str(large[0].messages)
    up = next(event for event in stage.events if isinstance(event, EscalationEvent))
    (result,) = [e for e in stage.events if isinstance(e, ToolResultEvent) and e.seq < up.seq and not is_check(e)]
    assert up.handed == {"limit": 4000, "results": 1, "seqs": [result.seq], "dropped": 0}
    assert up.model == {"model": "large"}
    assert up.reason == "Too hard for me"
    assert "Taken over from small" in str(large[0].messages)


async def test_the_last_rung_cannot_ask_for_a_larger_one() -> None:
    stage = Stage([ASK, SUBMIT], [FIX])
    await stage.run()
    offered = {e.rung: e.offered for e in stage.events if isinstance(e, ModelRequestEvent)}
    assert "escalate" in offered["small"]
    assert "escalate" not in offered["large"]
    assert "escalate" not in str(stage.models["large"].prompts[0].messages[0])


async def test_asking_when_nobody_may_be_asked_is_told_to_the_model() -> None:
    stage = Stage([ASK, SUBMIT], [FIX], rules=EscalationConfig(max_moves=0))
    result = await stage.run()
    assert stage.moves == []
    assert "No larger model can be asked" in str(stage.models["small"].prompts[1].messages)
    assert result.reason == "submitted"


async def test_an_agent_moves_up_at_most_as_often_as_the_limit_says() -> None:
    stage = Stage([ASK, ASK, ASK, SUBMIT], [FIX, FIX], rules=EscalationConfig(max_moves=2))
    await stage.run()
    assert [move[0] for move in stage.moves] == ["up", "down", "up", "down"]
    assert any("after 2 moves up" in message for message in stage.notices)


async def test_the_number_of_larger_decisions_is_limited() -> None:
    wandering = [("look", {"how": str(number)}) for number in range(9)]
    rules = EscalationConfig(max_decisions=2)
    stage = Stage([SUBMIT, SUBMIT], wandering, definition=CHECKED, rules=rules)
    await stage.run()
    assert stage.moves == [("up", "large", "no_progress"), ("down", "small", "max_decisions")]
    assert stage.asked.count("large") == 2


async def test_the_number_of_larger_decisions_of_a_run_is_limited() -> None:
    meter = Meter(max_decisions=1)
    first = Stage([ASK, SUBMIT], [FIX], meter=meter)
    await first.run()
    second = Stage([ASK, SUBMIT], [FIX], meter=meter)
    await second.run()
    assert [move[0] for move in first.moves] == ["up", "down"]
    assert second.moves == []
    assert any("1 decisions of larger models" in message for message in second.notices)


async def test_nothing_is_asked_that_could_cost_more_than_the_limit() -> None:
    price = Price(prompt=1000.0, reply=0.0)  # a prompt of at most 4,000 tokens costs at most 4
    too_low = Stage([ASK, SUBMIT], [FIX], meter=Meter(max_price=3.9), price=price)
    await too_low.run()
    assert too_low.moves == []
    enough = Stage([ASK, ASK, SUBMIT], [Decision((), usage={})], meter=Meter(max_price=4.0), price=price)
    enough.models["large"]._steps = [_fix_for(prompt_tokens=500)]
    await enough.run()
    assert [move[0] for move in enough.moves] == ["up", "down"]
    assert enough.ladder.meter.price == pytest.approx(0.5)
    assert any("3.5 of 4 is left" in message for message in enough.notices)


def _fix_for(prompt_tokens: int) -> Decision:
    from remora.events import Call

    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 10}
    return Decision((Call(call_id="1", tool="fix", args={"how": "well"}),), usage=usage)


async def test_a_rung_that_cannot_be_opened_is_recorded_and_the_next_one_is_used() -> None:
    stage = Stage([ASK, ASK, SUBMIT], None, [FIX, FIX])
    await stage.run()
    assert [move[:2] for move in stage.moves] == [("up", "largest"), ("down", "small")] * 2
    assert [
        message for message in stage.notices if "`large` cannot be used" in message and "does not respond" in message
    ]
    assert stage.ladder.opened.count("large") == 1


async def test_without_any_larger_rung_the_run_goes_on_with_the_first() -> None:
    stage = Stage([BREAK, BREAK, BREAK, SUBMIT], None)
    result = await stage.run()
    assert stage.moves == []
    assert result.reason == "submitted"
    assert any("`large` cannot be used" in message for message in stage.notices)


async def test_a_larger_model_that_stops_answering_is_left_for_the_first() -> None:
    stage = Stage([ASK, ASK, SUBMIT], [ServerUnreachable("Nobody is there")])
    result = await stage.run()
    assert stage.moves == [("up", "large", "ask"), ("down", "small", "unreachable")]
    assert result.reason == "submitted"


async def test_a_server_that_stops_counting_is_left_for_the_first() -> None:
    stage = Stage([ASK, SUBMIT], [FIX])
    stage.ladder.counters["large"] = DeadCounter(6)
    result = await stage.run()
    assert stage.moves[-1][0] in ("down",)
    assert result.reason == "submitted"


async def test_a_first_model_that_stops_answering_is_replaced_for_good() -> None:
    stage = Stage([ServerUnreachable("It crashed")], [FIX, FIX, SUBMIT])
    result = await stage.run()
    assert stage.moves == [("up", "large", "unreachable")]
    assert result.reason == "submitted"


async def test_the_same_run_without_a_ladder_fails_there() -> None:
    stage = Stage([ServerUnreachable("It crashed")])
    assert (await stage.run()).outcome == "error"


@pytest.mark.parametrize("at", range(4, 40))
async def test_a_run_cut_after_any_event_ends_with_the_same_moves(at: int) -> None:
    small, large = [LOOK, BREAK, BREAK, BREAK, SUBMIT], [("look", {"how": "new"})]
    whole = Stage(small, large)
    await whole.run()
    past = whole.events[:at]
    if len(past) == len(whole.events):
        return
    cut = Stage(small, large)
    cut.writer = MemoryTrace(clock=SystemClock())
    await cut.writer.append("traces/01M2AGENT", [event.model_copy(update={"seq": -1}) for event in past])
    answered = [event.rung for event in past if isinstance(event, ModelRequestEvent)]
    if past[-1].type in ("model_request", "turn_start"):
        answered = answered[:-1] if past[-1].type == "model_request" else answered
    resumed = Stage(
        small[answered.count("small") :],
        large[answered.count("large") :],
        past=[event async for event in cut.writer.read("traces/01M2AGENT")],
        before=cut,
    )
    await resumed.run()
    assert resumed.moves == whole.moves


async def test_a_crash_between_the_escalation_and_the_next_prompt_keeps_the_rung() -> None:
    whole = Stage([ASK, SUBMIT], [FIX])
    await whole.run()
    at = next(place for place, event in enumerate(whole.events) if isinstance(event, EscalationEvent))
    cut = Stage([], [])
    await cut.writer.append(
        "traces/01M2AGENT", [event.model_copy(update={"seq": -1}) for event in whole.events[: at + 1]]
    )
    resumed = Stage([SUBMIT], [FIX], past=[e async for e in cut.writer.read("traces/01M2AGENT")], before=cut)
    await resumed.run()
    assert resumed.asked == ["small", "large", "small"]
    assert resumed.moves == whole.moves
    assert resumed.models["large"].prompts[0].messages == whole.models["large"].prompts[0].messages


async def test_a_rung_that_is_gone_at_the_resume_is_recorded() -> None:
    cut = Stage([ASK], [FIX])
    event = EscalationEvent(direction="up", source="small", target="another", rule="ask")
    started = Stage([SUBMIT], [])
    await started.run()
    past = [*started.events[:4], event]
    await cut.writer.append("traces/01M2AGENT", [each.model_copy(update={"seq": -1}) for each in past])
    resumed = Stage([SUBMIT], [], past=[e async for e in cut.writer.read("traces/01M2AGENT")], before=cut)
    result = await resumed.run()
    assert result.reason == "submitted"
    assert any("`another` is not a rung of this ladder" in message for message in resumed.notices)


async def test_the_check_of_a_rule_stays_hidden_from_every_model() -> None:
    stage = Stage([FIX, *[("look", {"how": str(n)}) for n in range(4)], SUBMIT], [FIX], definition=CHECKED)
    await stage.run()
    checks = [event for event in stage.events if isinstance(event, ToolCallEvent) and is_check(event)]
    assert len(checks) >= 3
    assert all(event.delta is None for event in stage.events if is_check(event))


def test_a_move_up_comes_before_the_limit_that_would_end_the_agent() -> None:
    from remora.runner import within_limits

    rules = within_limits(EscalationConfig(errors=9, repeats=9, undecided=9), RunLimits(5, max_errors=2, retries=0))
    assert (rules.errors, rules.repeats, rules.undecided) == (2, 5, 1)
    assert replace(RunLimits(5), max_errors=1).max_errors == 1
