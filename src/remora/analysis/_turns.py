"""Summaries of a stream for people: per turn, what the model saw, what it chose, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora.analysis._fork import inherited_seq
from remora.analysis._rungs import RungRow, RungTally
from remora.context.text import number
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    Call,
    EscalationEvent,
    Event,
    FileChange,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    PacketDelta,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UnknownEvent,
    UserInputEvent,
    canonical,
)
from remora.ports import TokenCounter
from remora.subagent import RESERVED_TOOLS, SUBMIT_RESULT_TOOL

_NOT_CALLED = frozenset(RESERVED_TOOLS) - {SUBMIT_RESULT_TOOL}
"""Choices that no event follows. An agent that is continued leaves out the result that it had submitted."""


@dataclass(frozen=True)
class CallRow:
    """One call and its result."""

    tool: str
    args: dict[str, Any]
    outcome: str
    summary: str
    raw_bytes: int
    """Bytes in the Long Track: the raw result, prints and command outputs."""
    seq: int


@dataclass(frozen=True)
class TurnRow:
    """One turn on both tracks."""

    turn: int
    prompt_tokens: int = 0
    rung: str = ""
    """The rung of the ladder that decided; empty without a ladder."""
    rule: str = ""
    """Why no model was asked; empty if one was."""
    limit: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    news: str = ""
    """What was new in the packet."""
    calls: tuple[CallRow, ...] = ()
    submitted: str | None = None
    answer: str = ""
    """What the model wrote in a turn without a call."""
    problems: tuple[str, ...] = ()
    """Why the turn has no call, or no result: a call that cannot be made, a reply that was cut, an error."""
    last_seq: int = -1


@dataclass(frozen=True)
class StreamSummary:
    """A summary of an agent's stream."""

    agent_id: str = ""
    run_id: str = ""
    operation: str = ""
    node_id: str = ""
    goal: str = ""
    name: str = ""
    started: str = ""
    policy: str = ""
    tools: int = 0
    events: int = 0
    outcome: str = "unsealed"
    """How it ended; `unsealed` while there is no `agent_end`."""
    reason: str = ""
    summary: str = ""
    verdict: str = ""
    """What the agent's check says about the files; empty where it has none."""
    check: Mapping[str, Any] = field(default_factory=dict)
    """The check's counts, and the seqs of the records that prove them."""
    turns: tuple[TurnRow, ...] = ()
    files: tuple[FileChange, ...] = ()
    notices: tuple[str, ...] = ()
    """Problems at the start, and events that this version does not know."""
    decisions: tuple[RungRow, ...] = ()
    """Who decided what, by rung."""
    moves: tuple[str, ...] = ()
    """Every move between rungs, in a sentence."""

    @property
    def largest_prompt(self) -> int:
        return max((row.prompt_tokens for row in self.turns), default=0)


class _Reading:
    """Collects the summary of a stream."""

    def __init__(self) -> None:
        self.head: dict[str, Any] = {}
        self.turns: dict[int, dict[str, Any]] = {}
        self.open_calls: dict[str, dict[str, Any]] = {}
        self.files: list[FileChange] = []
        self.notices: list[str] = []
        self.chosen: dict[str, tuple[Event, Call]] = {}
        """By id, the calls of replies that were not started, with their reply."""
        self.news = ""
        self.error = ""
        """What stopped the agent. Its end need not repeat it."""
        self.tally = RungTally()
        self.moves: list[str] = []
        self.inherited_seq = -1

    def take(self, event: Event) -> None:
        turn = self.turns.setdefault(event.turn, {"turn": event.turn, "calls": ()}) if event.turn else {}
        turn["last_seq"] = event.seq
        self.tally.take(event)
        match event:
            case AgentStartEvent():
                self._start(event)
            case TurnStartEvent():
                turn["news"] = self.news
                self.news = ""
            case ModelRequestEvent(tokens=tokens):
                turn |= {"prompt_tokens": tokens.get("total", 0), "limit": event.limit, "left_out": event.left_out}
                turn["rung"] = event.rung
            case EscalationEvent():
                self.moves.append(_move(event))
            case UnknownEvent(problem=problem):
                self.notices.append(f"seq {event.seq} is kept and skipped: {problem}")
            case UserInputEvent(text=str(text)):
                before = f"{self.news}, " if self.news.startswith(("goal", "last error")) else ""
                self.news = f'{before}user "{text}"'
            case NoticeEvent(code="escalation", message=message):
                self.moves.append(f"after turn {event.turn}: {message}, seq {event.seq}")
            case NoticeEvent(message=message) if not event.turn:
                self.notices.append(message)
            case NoticeEvent(code=code, message=message):
                self._problem(turn, f"{code}: {message}")
            case ModelResponseEvent(calls=calls, rule=rule) if rule or calls:
                turn["rule"] = rule
                self.chosen.update({call.call_id: (event, call) for call in calls if call.tool not in _NOT_CALLED})
            case ModelResponseEvent(calls=(), text=text, error=error):
                turn["answer"] = text
                if error:
                    self._problem(turn, error)
            case ToolResultEvent(purpose="check", files=files):
                self.files.extend(files)
            case ToolCallEvent(purpose="check"):
                pass
            case ToolCallEvent(call_id=call_id, args=args):
                self.chosen.pop(call_id, None)
                self.open_calls[call_id] = args
                waiting = CallRow(event.tool, args, "none", "no result is recorded", 0, event.seq)
                turn["calls"] = (*turn.get("calls", ()), waiting)
            case ToolResultEvent():
                self._replace_call(turn, self._result(event))
            case SubmitResultEvent(result=result):
                self.chosen.pop(event.call_id, None)
                turn["submitted"] = str(result.get("summary", ""))
            case AgentErrorEvent(code=code, message=message):
                self.head |= {"reason": code, "summary": message}
                self.error = message
            case AgentEndEvent(outcome=outcome, reason=reason, summary=summary):
                self.head |= {"outcome": outcome, "reason": reason, "summary": summary or self.error}
                self.head |= {"verdict": event.verdict, "check": event.check}
            case _:
                pass

    def add_not_started(self) -> None:
        """Give every call that a reply chose and nobody started a row in its turn."""
        for event, call in self.chosen.values():
            row = CallRow(call.tool, call.args, "none", self._not_started(event, call), 0, event.seq)
            turn = self.turns.get(event.turn)
            if turn is not None and not any(each.tool == call.tool for each in turn["calls"]):
                turn["calls"] = (*turn["calls"], row)

    def _not_started(self, event: Event, call: Call) -> str:
        if call.tool == SUBMIT_RESULT_TOOL and event.seq <= self.inherited_seq:
            return "submitted; the agent went on after it"
        return "the call was not started"

    @staticmethod
    def _problem(turn: dict[str, Any], problem: str) -> None:
        turn["problems"] = (*turn.get("problems", ()), problem)

    @staticmethod
    def _replace_call(turn: dict[str, Any], row: CallRow) -> None:
        """Put a result in the place of the first open call of its tool."""
        calls = list(turn.get("calls", ()))
        at = next((n for n, call in enumerate(calls) if call.outcome == "none" and call.tool == row.tool), len(calls))
        turn["calls"] = (*calls[:at], row, *calls[at + 1 :])

    def _start(self, event: AgentStartEvent) -> None:
        self.inherited_seq = inherited_seq(event)
        self.head |= {
            "agent_id": event.agent_id,
            "run_id": event.run_id,
            "operation": event.operation,
            "node_id": event.node_id,
            "goal": event.goal,
            "name": _name(event),
            "started": event.ts,
            "policy": str(event.model.get("policy", "")),
            "tools": len(event.tools),
        }
        self.news = f"goal, {number(len(event.tools), 'tool')}"

    def _result(self, event: ToolResultEvent) -> CallRow:
        action = event.delta.action if isinstance(event.delta, PacketDelta) else None
        summary = action.summary if action else ""
        self.news = "last error" if event.outcome == "error" else f'"{summary}"'
        self.files.extend(event.files)
        args = self.open_calls.pop(event.call_id, {})
        return CallRow(event.tool, args, event.outcome, summary, recorded_bytes(event), event.seq)


def _name(event: AgentStartEvent) -> str:
    """The name that the run was given, or the title that its log has."""
    given = (event.model_extra or {}).get("name") or getattr(event, "name", "")
    return str(given or (event.parent or {}).get("title") or "")


def summarize(events: Iterable[Event]) -> StreamSummary:
    """Summarize a stream, with its turns."""
    reading, count = _Reading(), 0
    for event in events:
        reading.take(event)
        count += 1
    reading.add_not_started()
    turns = tuple(TurnRow(**row) for _, row in sorted(reading.turns.items()))
    return StreamSummary(
        **reading.head,
        events=count,
        turns=turns,
        files=fold_files(reading.files),
        notices=tuple(reading.notices),
        decisions=reading.tally.rows,
        moves=tuple(reading.moves),
    )


def _move(event: EscalationEvent) -> str:
    handed = event.handed.get("results")
    with_results = f", with {number(handed, 'result')} of the Long Track" if isinstance(handed, int) and handed else ""
    return (
        f"after turn {event.turn}: {event.direction} to {event.target} by `{event.rule}` "
        f"({event.reason}){with_results}, seq {event.seq}"
    )


def recorded_bytes(event: ToolResultEvent) -> int:
    """Bytes of one result in the Long Track."""
    raw = event.raw_ref.size if event.raw_ref else _length(event.raw)
    return raw + sum(map(_size, event.attachments))


def _length(raw: Any) -> int:
    try:
        return len(canonical(raw))
    except TypeError:  # nested deeper than the encoder allows
        return len(repr(raw))


def _size(attachment: dict[str, Any]) -> int:
    """The size of an attachment; 0 if the stream gives none."""
    reference = attachment.get("ref")
    size = reference.get("size") if isinstance(reference, dict) else None
    return size if isinstance(size, int) else 0


def fold_files(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """One change per path, from its first content to its last. Files with their first content again are left out."""
    folded: dict[str, FileChange] = {}
    for change in changes:
        first = folded.get(change.path, change)
        folded[change.path] = change.model_copy(update={"before": first.before})
    return tuple(change for change in folded.values() if change.before != change.after)


def history_tokens(
    events: Sequence[Event], system: str, raw_text: Callable[[ToolResultEvent], str], counter: TokenCounter
) -> dict[int, int]:
    """By turn, the tokens that the same run would have sent as chat history: all messages, calls and results."""
    total, by_turn = counter.count(system), {}
    for event in events:
        match event:
            case ToolCallEvent(purpose="check") | ToolResultEvent(purpose="check"):
                pass  # no agent would send it
            case AgentStartEvent(goal=goal):
                total += counter.count(goal)
            case TurnStartEvent():
                by_turn[event.turn] = total
            case UserInputEvent(text=text) | ModelResponseEvent(text=text):
                total += counter.count(text)
            case ToolCallEvent(tool=tool, args=args):
                total += counter.count(tool) + counter.count(canonical(args).decode())
            case ToolResultEvent():
                total += counter.count(raw_text(event))
            case _:
                pass
    return by_turn
