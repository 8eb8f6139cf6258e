"""The report on one agent: a fold over its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from remora.analysis._fork import inherited_seq
from remora.analysis._model_names import shared_model_name
from remora.analysis._rungs import BY_RULE
from remora.analysis._turns import fold_files
from remora.analysis.reporting.lost import LostWord, LostWords
from remora.analysis.reporting.places import Place, listed_problems
from remora.context.text import one_line
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    Event,
    FileChange,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    SubmitResultEvent,
    ToolResultEvent,
    UserInputEvent,
    canonical,
    is_check,
)

MAX_ARGS = 300
"""Characters of a call's arguments in a report."""
MAX_TEXT = 2000
"""Characters of a goal or of a person's words in a report."""
NOT_TAKEN = ("failed", "discarded")
"""Verdicts of work that did not help."""
FAILED = ("error", "degraded")
IMPORTED = "imported"
"""Why the stream of an imported log ended."""
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Tokens of a prompt that Anthropic counts beside `input_tokens`."""

REPORTED = (
    "agent_start", "user_input", "model_request", "model_response", "tool_result", "packet_update", "notice",
    "submit_result", "agent_error", "agent_end",
)  # fmt: skip
"""The event types that `report_agent` reads. Others can be left out."""

Status = Literal["done", "partial", "unchanged", "failed", "unsealed", "imported"]
"""`imported`: a log of another program, which does not say whether its agent was right."""
Decision = Literal["open", "accepted", "rejected"]


@dataclass(frozen=True, slots=True)
class Step:
    """One call and its result."""

    turn: int
    seq: int
    """The event of the result."""
    tool: str
    args: str
    outcome: str
    summary: str
    duration_ms: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was not carried out, and why."""

    turn: int
    seq: int
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ModelUse:
    """The requests to one model."""

    model: str
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    duration_ms: float = 0.0
    counted: Literal["server", "receipt", "both"] = "receipt"
    """Who counted the tokens of the prompts."""


@dataclass(frozen=True)
class FileReport:
    """One changed file."""

    path: str
    change: FileChange
    decision: Decision = "open"
    diff: str = ""
    """A unified diff; empty if it was not asked for."""


@dataclass(frozen=True)
class AgentReport:
    """What one agent was asked, what it did, and how it was judged."""

    agent_id: str = ""
    run_id: str = ""
    operation: str = ""
    node_id: str = ""
    node: Mapping[str, Any] = field(default_factory=dict)
    goal: str = ""
    said: tuple[str, ...] = ()
    """What people said to it."""
    parent: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""
    ended: str = ""
    outcome: str = "unsealed"
    reason: str = ""
    summary: str = ""
    """The agent's own words."""
    verdict: str = ""
    check: Mapping[str, Any] = field(default_factory=dict)
    """The counts of its check, and `evidence`: the seqs of the results that prove them."""
    problems: tuple[Mapping[str, Any], ...] = ()
    """What the last check still found, if its result lists it: `code`, `message`, `row`, `column`.

    With a place also `line`: the line in the file as it is now, None if it changed since."""
    turns: int = 0
    inherited: int = 0
    """Turns that it inherited from its parent. They are not counted in steps, tokens or time."""
    steps: tuple[Step, ...] = ()
    refused: tuple[Refusal, ...] = ()
    models: tuple[ModelUse, ...] = ()
    by_rule: int = 0
    """Decisions that rules made."""
    files: tuple[FileReport, ...] = ()
    place: Place | None = None
    """Where its node is now. None if nobody looked: lines are then those that it saw."""
    lost: tuple[LostWord, ...] = ()
    notices: tuple[str, ...] = ()
    damage: str = ""
    """Why the rest of its stream cannot be read."""

    @property
    def status(self) -> Status:
        """How it ended, in one word, judged by the files where there is a check."""
        if self.outcome == "unsealed":
            return "unsealed"
        if self.reason == IMPORTED:
            return "imported"
        if self.outcome in (*FAILED, "cancelled") or self.verdict in NOT_TAKEN:
            return "failed"
        before, left = self.check.get("before"), self.check.get("after")
        if isinstance(left, int) and left > 0:
            return "unchanged" if left == before else "partial"
        return "partial" if self.outcome == "partial" else "done"

    @property
    def word(self) -> str:
        """The verdict, else the outcome."""
        return self.verdict or (IMPORTED if self.reason == IMPORTED else self.outcome)

    @property
    def why(self) -> str:
        """Why it did not do everything; empty if it did."""
        if self.outcome in (*FAILED, "partial", "cancelled"):
            return one_line(f"{self.reason}: {self.summary}" if self.summary else self.reason)
        return one_line(str(self.check.get("why", "")))

    @property
    def prompt_tokens(self) -> int:
        return sum(use.prompt_tokens for use in self.models)

    @property
    def output_tokens(self) -> int:
        return sum(use.output_tokens for use in self.models)

    @property
    def model(self) -> str:
        """The models that decided, first one first."""
        return ", ".join(use.model for use in self.models)

    @property
    def decided_by(self) -> str:
        """The models that decided; `by rule` if only rules did, and nothing if a program did."""
        return self.model or (BY_RULE if self.by_rule else "")

    @property
    def duration_s(self) -> float:
        """Seconds from its first own event to its last."""
        return seconds_between(self.started, self.ended)


def report_agent(
    events: Iterable[Event],
    *,
    system: Callable[[ModelRequestEvent], str] = lambda _: "",
    raw_text: Callable[[ToolResultEvent], str] | None = None,
) -> AgentReport:
    """Fold a stream into a report. Without `raw_text`, lost words are not searched."""
    reading = _Reading(LostWords(system, raw_text) if raw_text else None)
    for event in events:
        reading.take(event)
    return reading.report()


def seconds_between(first: str, last: str) -> float:
    """Seconds between two timestamps of events; 0 if one is missing, or if the clock was set back."""
    try:
        return max(0.0, (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


class _Reading:
    """The report as far as it was read."""

    def __init__(self, lost: LostWords | None) -> None:
        self._lost = lost
        self._head: dict[str, Any] = {}
        self._said: list[str] = []
        self._steps: list[Step] = []
        self._refused: list[Refusal] = []
        self._notices: list[str] = []
        self._changes: list[FileChange] = []
        self._models: dict[str, ModelUse] = {}
        self._by_rule = 0
        self._args: dict[str, dict[str, Any]] = {}
        self._asked: ModelRequestEvent | None = None
        self._problems: tuple[Mapping[str, Any], ...] = ()
        self._policy, self._turn, self._inherited_seq, self._inherited = "", 0, -1, 0
        self._started = self._ended = ""
        self._imported = False

    def report(self) -> AgentReport:
        return AgentReport(
            **self._head,
            started=self._started,
            ended="" if self._imported else self._ended,
            said=tuple(self._said),
            problems=self._problems,
            turns=self._turn,
            inherited=self._inherited,
            steps=tuple(self._steps),
            refused=tuple(self._refused),
            models=tuple(self._models.values()),
            by_rule=self._by_rule,
            files=tuple(FileReport(change.path, change) for change in fold_files(self._changes)),
            lost=tuple(self._lost.found) if self._lost else (),
            notices=tuple(self._notices),
        )

    def take(self, event: Event) -> None:
        self._turn = max(self._turn, event.turn)
        if isinstance(event, ToolResultEvent):
            self._changes.extend(event.files)
        if self._inherited_seq >= event.seq > 0:
            self._inherited = self._turn
            if self._lost and isinstance(event, ToolResultEvent) and not is_check(event):
                self._lost.take_result(event)
            return
        self._ended = event.ts
        self._started = self._started or event.ts
        self._take_own(event)

    def _take_own(self, event: Event) -> None:
        match event:
            case AgentStartEvent():
                self._start(event)
            case UserInputEvent(text=text):
                self._said.append(text[:MAX_TEXT])
            case ModelRequestEvent():
                self._asked = event
                if self._lost:
                    self._lost.take_prompt(event)
            case ModelResponseEvent():
                self._response(event)
            case ToolResultEvent():
                self._result(event)
            case PacketUpdateEvent(source="model_response", delta=PacketDelta(error=error)) if error and error.set:
                self._refuse(event, "a call of the reply", error.set)
            case NoticeEvent(code="too_many_calls" | "no_result" as code, message=message):
                self._refuse(event, code.replace("_", " "), message)
            case NoticeEvent(message=message):
                self._notices.append(one_line(message))
            case SubmitResultEvent(result=result):
                self._head["summary"] = one_line(str(result.get("summary", "")))
            case AgentErrorEvent(code=code, message=message):
                self._head |= {"reason": code, "summary": one_line(message)}
            case AgentEndEvent(outcome=outcome, reason=reason, summary=summary):
                self._head |= {"outcome": outcome, "reason": reason, "summary": one_line(summary)}
                self._head |= {"verdict": event.verdict, "check": event.check}
            case _:
                pass

    def _start(self, event: AgentStartEvent) -> None:
        self._inherited_seq = inherited_seq(event)
        self._imported = "sha256" in (event.parent or {}) and event.operation == "import"
        if self._imported:  # it took place at another time than its recording
            self._started = str((event.parent or {}).get("started") or "")
        self._policy = str(event.model.get("name") or event.model.get("model") or event.model.get("policy") or "")
        self._head |= {
            "agent_id": event.agent_id,
            "run_id": event.run_id,
            "operation": event.operation,
            "node_id": event.node_id,
            "node": event.node,
            "goal": event.goal[:MAX_TEXT],
            "parent": event.parent or {},
        }

    def _response(self, event: ModelResponseEvent) -> None:
        if event.rule:  # no model was asked
            self._by_rule += 1
            self._args |= {call.call_id: call.args for call in event.calls}
            return
        asked, self._asked = self._asked, None
        name = shared_model_name(event.model or self._policy or "unknown")
        use = self._models.get(name, ModelUse(name))
        served, came = _count(event.usage, "prompt_tokens"), _count(event.usage, "completion_tokens")
        if self._imported:  # the prompts of its packets were never sent
            asked = None
            served, came = _sum(event.usage, "input_tokens", *_CACHED), _count(event.usage, "output_tokens")
        counted: Any = "server" if served is not None else "receipt"
        self._models[name] = ModelUse(
            name,
            use.requests + 1,
            use.prompt_tokens + (served if served is not None else _total(asked)),
            use.output_tokens + (came or 0),
            use.duration_ms + (event.duration_ms or 1000 * seconds_between(asked.ts if asked else "", event.ts)),
            counted if use.counted == counted or not use.requests else "both",
        )
        self._args |= {call.call_id: call.args for call in event.calls}
        if event.error:
            delta = event.delta if isinstance(event.delta, PacketDelta) else None
            told = delta.error.set if delta and delta.error and delta.error.set else event.error
            self._refuse(event, "the reply", told)
        if self._lost:
            self._lost.take_calls(event.calls, event.turn)

    def _result(self, event: ToolResultEvent) -> None:
        args = self._args.pop(event.call_id, {})
        if is_check(event):
            self._problems = listed_problems(event.raw)
            return
        delta = event.delta if isinstance(event.delta, PacketDelta) else None
        told = delta.action.summary if delta and delta.action else ""
        if event.outcome in ("error", "unknown") and delta and delta.error and delta.error.set:
            told = delta.error.set
        self._steps.append(
            Step(event.turn, event.seq, event.tool, _args_text(args), event.outcome, one_line(told), event.duration_ms)
        )
        if self._lost:
            self._lost.take_result(event)

    def _refuse(self, event: Event, what: str, why: str) -> None:
        self._refused.append(Refusal(event.turn, event.seq, what, one_line(why)))


def _args_text(args: Mapping[str, Any]) -> str:
    if not args:
        return ""
    try:
        return one_line(canonical(args).decode(), MAX_ARGS)
    except TypeError:  # nested deeper than the encoder allows
        return one_line(repr(args)[: MAX_ARGS * 2], MAX_ARGS)


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _sum(usage: Mapping[str, Any], *names: str) -> int | None:
    found = [count for name in names if (count := _count(usage, name)) is not None]
    return sum(found) if found else None


def _total(asked: ModelRequestEvent | None) -> int:
    return asked.tokens.get("total", 0) if asked else 0
