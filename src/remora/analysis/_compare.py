"""Comparing two agents or two runs: where they diverged, and what each saw, chose and got."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from remora.analysis.reporting.agent import AgentReport
from remora.context.text import one_line
from remora.events import (
    AgentErrorEvent,
    Call,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    PacketDelta,
    SubmitResultEvent,
    ToolResultEvent,
    UserInputEvent,
    canonical,
    digest,
    is_check,
)

Part = Literal["saw", "chose", "got"]
MAX_SHOWN = 40
"""Lines of the difference between two prompts."""


@dataclass(frozen=True)
class TurnView:
    """One turn of one agent."""

    turn: int
    saw: str = ""
    """The prompt without its constant system text."""
    tokens: int = 0
    said: str = ""
    """What a person said before it."""
    chose: tuple[str, ...] = ()
    """The calls of the reply, or its text."""
    got: tuple[str, ...] = ()
    """The summaries of the results."""
    digests: tuple[str, ...] = ()
    """Of the results, to compare them without their sizes."""
    error: str = ""


@dataclass(frozen=True)
class TurnPair:
    """The same turn of both agents."""

    turn: int
    left: TurnView | None
    right: TurnView | None
    differs: tuple[Part, ...] = ()


@dataclass(frozen=True)
class AgentComparison:
    """Two agents side by side."""

    left: AgentReport
    right: AgentReport
    turns: tuple[TurnPair, ...]
    parted: int | None
    """The first turn that differs; None if there is none."""
    first: Part | None = None
    """What differed first in it."""
    seen: tuple[str, ...] = ()
    """The difference between both prompts of that turn, as lines of a unified diff."""
    same_files: bool = True


@dataclass(frozen=True)
class AgentPair:
    """The agents of both runs on one node."""

    operation: str
    node_id: str
    left: AgentReport | None
    right: AgentReport | None

    @property
    def differs(self) -> bool:
        """Whether one is missing, or ended otherwise, or left other files."""
        if self.left is None or self.right is None:
            return True
        return _end(self.left) != _end(self.right)


@dataclass(frozen=True)
class RunComparison:
    """Two runs side by side."""

    left: str
    right: str
    pairs: tuple[AgentPair, ...] = field(default_factory=tuple)


def view_turns(events: Iterable[Event]) -> list[TurnView]:
    """The turns of a stream, each with what the model saw, chose and got."""
    turns: dict[int, dict[str, Any]] = {}
    said = ""
    for event in events:
        if isinstance(event, UserInputEvent):
            said = one_line(f"{said} {event.text}".strip())
        if not event.turn or is_check(event):
            continue
        turn = turns.setdefault(event.turn, {"turn": event.turn, "chose": (), "got": (), "digests": ()})
        match event:
            case ModelRequestEvent(messages=messages, tokens=tokens):
                shown = [str(message.get("content") or "") for message in messages if message.get("role") != "system"]
                turn |= {"saw": "\n".join(shown), "tokens": tokens.get("total", 0), "said": said}
                said = ""
            case ModelResponseEvent(calls=calls, text=text, error=error):
                turn["chose"] = tuple(map(_call, calls)) or ((one_line(text, 400),) if text else ())
                turn["error"] = error
            case ToolResultEvent():
                turn["got"] = (*turn["got"], _result(event))
                turn["digests"] = (*turn["digests"], _digest(event))
            case SubmitResultEvent(result=result):
                turn["got"] = (*turn["got"], f"submitted: {one_line(str(result.get('summary', '')))}")
            case AgentErrorEvent(code=code, message=message):
                turn["got"] = (*turn["got"], f"failed: {code}: {one_line(message)}")
            case _:
                pass
    return [TurnView(**turn) for _, turn in sorted(turns.items())]


def compare(
    left: AgentReport, left_turns: Sequence[TurnView], right: AgentReport, right_turns: Sequence[TurnView]
) -> AgentComparison:
    """Compare two agents turn by turn."""
    mine, theirs = ({turn.turn: turn for turn in turns} for turns in (left_turns, right_turns))
    pairs = tuple(_pair(number, mine.get(number), theirs.get(number)) for number in sorted(mine | theirs))
    parted = next((pair for pair in pairs if pair.differs), None)
    return AgentComparison(
        left=left,
        right=right,
        turns=pairs,
        parted=parted.turn if parted else None,
        first=parted.differs[0] if parted else None,
        seen=_seen(parted) if parted else (),
        same_files=_contents(left) == _contents(right),
    )


def compare_runs(
    left: str, left_agents: Sequence[AgentReport], right: str, right_agents: Sequence[AgentReport]
) -> RunComparison:
    """Pair the agents of two runs by operation and node. Those that differ come first."""
    mine, theirs = _keyed(left_agents), _keyed(right_agents)
    pairs = [AgentPair(key[0], key[1], mine.get(key), theirs.get(key)) for key in dict.fromkeys([*mine, *theirs])]
    return RunComparison(left, right, tuple(sorted(pairs, key=lambda pair: not pair.differs)))


def _keyed(agents: Sequence[AgentReport]) -> dict[tuple[str, str, int], AgentReport]:
    """By operation, node and how many agents worked on it before: a node can have several."""
    found: dict[tuple[str, str, int], AgentReport] = {}
    for agent in agents:
        number = sum(key[:2] == (agent.operation, agent.node_id) for key in found) if _has(found, agent) else 0
        found[agent.operation, agent.node_id, number] = agent
    return found


def _has(found: dict[tuple[str, str, int], AgentReport], agent: AgentReport) -> bool:
    return (agent.operation, agent.node_id, 0) in found


def _pair(number: int, left: TurnView | None, right: TurnView | None) -> TurnPair:
    if left is None or right is None:
        return TurnPair(number, left, right, ("chose",))
    same: list[tuple[Part, bool]] = [
        ("saw", left.saw == right.saw),
        ("chose", (left.chose, left.error) == (right.chose, right.error)),
        ("got", (left.got, left.digests) == (right.got, right.digests)),
    ]
    return TurnPair(number, left, right, tuple(part for part, equal in same if not equal))


def _seen(pair: TurnPair) -> tuple[str, ...]:
    if pair.left is None or pair.right is None or pair.left.saw == pair.right.saw:
        return ()
    lines = difflib.unified_diff(_lines(pair.left.saw), _lines(pair.right.saw), lineterm="", n=1)
    return tuple(list(lines)[2 : 2 + MAX_SHOWN])


def _lines(prompt: str) -> list[str]:
    """The prompt as lines. A packet in JSON is one line: its values are put on lines of their own."""
    try:
        value = orjson.loads(prompt)
    except orjson.JSONDecodeError:
        return prompt.splitlines()
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode().splitlines()


def _call(call: Call) -> str:
    try:
        args = canonical(call.args).decode() if call.args else ""
    except TypeError:  # nested deeper than the encoder allows
        args = repr(call.args)[:400]
    return one_line(f"{call.tool} {args}".strip(), 400)


def _result(event: ToolResultEvent) -> str:
    delta = event.delta if isinstance(event.delta, PacketDelta) else None
    told = delta.action.summary if delta and delta.action else ""
    return one_line(f"{event.outcome}: {told}" if told else event.outcome)


def _digest(event: ToolResultEvent) -> str:
    if event.raw_ref is not None:
        return event.raw_ref.blob
    try:
        return digest(canonical(event.raw))
    except TypeError:
        return digest(repr(event.raw).encode())


def _contents(agent: AgentReport) -> dict[str, str | None]:
    return {file.path: file.change.after for file in agent.files}


def _end(agent: AgentReport) -> tuple[Any, ...]:
    return agent.word, agent.check.get("after"), sorted(_contents(agent).items(), key=str)
