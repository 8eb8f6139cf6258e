"""The Long Track of a turn as cards: one for each thing that happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora.analysis import Shown, describe_fit, is_telling, words_of
from remora.app import OutputWindow, Viewing, outputs_of
from remora.context.patterns import redact_patterns
from remora.context.text import counts_text, one_line
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentResumedEvent,
    AgentStartEvent,
    Call,
    EscalationEvent,
    Event,
    HubUpdateEvent,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UnknownEvent,
    UserInputEvent,
    readable,
)
from remora.view._words import Redact, bytes_text, clean, clean_after

FOLD = 6 * 1024
"""Bytes of an output that a card shows at first."""
LEAD = 20 * 1024
"""Bytes before a window that are read too, so that no secret is shown which begins before it."""
MAX_ARGS = 4000
"""Characters of one argument."""
_TONES = {"success": "good", "error": "bad", "unknown": "bad", "partial": "warn"}


@dataclass(frozen=True)
class Line:
    """A line of an output."""

    text: str
    seen: str = ""
    """The part of the next prompt that contains it; empty if none does."""
    is_short: bool = False
    """Whether it has too little in it to tell."""


@dataclass(frozen=True)
class Output:
    """A window of an output, with the lines that the model saw marked."""

    seq: int
    part: int
    window: OutputWindow
    lines: tuple[Line, ...]

    @property
    def seen(self) -> int:
        """Number of lines that the next prompt contains."""
        return sum(bool(line.seen) for line in self.lines)

    @property
    def more(self) -> int:
        """Bytes after this window."""
        return self.window.size - self.window.end


@dataclass(frozen=True)
class Card:
    """One thing that happened."""

    kind: str
    title: str
    seq: int
    ts: str = ""
    badges: Sequence[tuple[str, str]] = ()
    """Words and their tones."""
    text: str = ""
    args: Sequence[tuple[str, str]] = ()
    outputs: Sequence[Output] = ()
    effect: Sequence[tuple[str, str]] = ()
    """What it changed in the packet: the field and what became of it."""
    files: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class Cards:
    """Makes cards of events. `next_shown` is the prompt that follows, to mark what the model saw of an output."""

    def __init__(self, viewing: Viewing, next_shown: Shown | None, redact: Redact = redact_patterns) -> None:
        self._viewing, self._redact = viewing, redact
        self._next = next_shown

    def make(self, events: Sequence[Event]) -> list[Card]:
        """The cards of a turn. A call and its result are one."""
        answered = {event.call_id for event in events if isinstance(event, ToolResultEvent)}
        calls = {event.call_id: event for event in events if isinstance(event, ToolCallEvent)}
        found: list[Card] = []
        for event in events:
            if isinstance(event, ToolCallEvent) and event.call_id in answered:
                continue
            found.extend(self._card(event, calls))
        return found

    def _card(self, event: Event, calls: Mapping[str, ToolCallEvent]) -> Iterator[Card]:
        match event:
            case TurnStartEvent() | ModelRequestEvent():
                return
            case ToolResultEvent():
                yield self._result(event, calls.get(event.call_id))
            case ModelResponseEvent():
                yield self._reply(event)
            case ToolCallEvent():
                waiting = [("no result yet", "warn")]
                yield Card("call", event.tool, event.seq, event.ts, waiting, args=_args(event.args))
            case UserInputEvent():
                outputs = self._outputs(event)
                yield Card("user", "A person said", event.seq, event.ts, outputs=outputs, effect=effect_of(event))
            case AgentEndEvent():
                yield _end(event)
            case _:
                yield _other(event)

    def _result(self, event: ToolResultEvent, call: ToolCallEvent | None) -> Card:
        badges: list[tuple[str, str]] = [(event.outcome, _TONES.get(event.outcome, ""))]
        if event.purpose == "check":
            badges.append(("check: the model never sees it", "quiet"))
        outputs = self._outputs(event, mark=event.purpose != "check")
        size = sum(output.window.size for output in outputs)
        facts = {"took": f"{event.duration_ms:,.0f} ms"} if event.duration_ms else {}
        facts["size"] = bytes_text(size)
        if event.redactions:
            facts["secrets redacted"] = str(event.redactions)
        return Card(
            "result",
            event.tool,
            event.seq,
            event.ts,
            badges,
            args=_args(call.args) if call else (),
            outputs=outputs,
            effect=effect_of(event),
            files=[change.path for change in event.files],
            facts=facts,
        )

    def _reply(self, event: ModelResponseEvent) -> Card:
        calls = [(call.tool, _call_text(call)) for call in event.calls]
        facts = {name: f"{event.usage[name]:,}" for name in _USAGE if isinstance(event.usage.get(name), int)}
        if event.duration_ms:
            facts["took"] = f"{event.duration_ms:,.0f} ms"
        if event.fit:
            facts["asked"] = describe_fit(event.fit)
        outputs = self._outputs(event, mark=False)
        if event.calls and _is_only_call(event):
            outputs = outputs[1:]  # the text is the call itself
        badges = [(event.error, "bad")] if event.error else [(event.rule, "quiet")] if event.rule else []
        return Card(
            "reply",
            "A rule chose" if event.rule else "The model chose" if calls else "The model answered",
            event.seq,
            event.ts,
            badges,
            args=calls,
            outputs=outputs,
            effect=effect_of(event),
            facts=facts,
        )

    def _outputs(self, event: Event, *, mark: bool = True) -> list[Output]:
        return [
            self.output(event, part, 0, FOLD, mark=mark)
            for part, (_, value) in enumerate(outputs_of(event))
            if value not in ("", None)
        ]

    def output(self, event: Event, part: int, at: int, length: int, *, mark: bool = True) -> Output:
        """A window of an output, with the lines that the next prompt contains marked."""
        window = self._viewing.output(event, part, at, length)
        text = clean(window.text, self._redact)
        if window.start > 0:
            begin = max(window.start - LEAD, 0)
            lead = self._viewing.output(event, part, begin, window.start - begin, exact=True)
            text = clean_after(lead.text, window.text, self._redact)
        lines = tuple(self._line(line, mark=mark) for line in text.split("\n"))
        if lines and not lines[-1].text:
            lines = lines[:-1]
        return Output(event.seq, part, window, lines)

    def _line(self, text: str, *, mark: bool) -> Line:
        if self._next is None or not mark:
            return Line(text)
        words = words_of(text)
        return Line(text, self._next.part_with(words), not is_telling(words))


_USAGE = ("prompt_tokens", "completion_tokens")


def _is_only_call(event: ModelResponseEvent) -> bool:
    text = event.text.strip()
    return not text or (text.startswith("{") and text.endswith("}") and event.calls[0].tool in text)


def _call_text(call: Call) -> str:
    return ", ".join(f"{name}={one_line(_value(value), 160)}" for name, value in call.args.items())


def _args(args: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(str(name), _value(value)[:MAX_ARGS]) for name, value in args.items()]


def _value(value: Any) -> str:
    return value if isinstance(value, str) else readable(value)


def _end(event: AgentEndEvent) -> Card:
    check = event.check
    facts = {"reason": event.reason} if event.reason else {}
    if check:
        key = check.get("key", "problems")
        facts["check"] = f"{counts_text(check)} {key} by {check.get('tool', '')}"
    badges: list[tuple[str, str]] = [(event.outcome, _TONES.get(event.outcome, "bad"))]
    if event.verdict:
        badges.append((f"verdict {event.verdict}", "quiet"))
    return Card("end", "The agent ended", event.seq, event.ts, badges, text=event.summary, facts=facts)


def _other(event: Event) -> Card:
    kind, title, text, tone = _words(event)
    badges = [(tone, "bad" if kind == "error" else "warn" if kind == "notice" else "quiet")] if tone else []
    return Card(kind, title, event.seq, event.ts, badges, text=text, effect=effect_of(event))


def _words(event: Event) -> tuple[str, str, str, str]:
    """Kind, title, text and badge of an event."""
    match event:
        case AgentStartEvent(goal=goal):
            return "start", "The agent began", goal, ""
        case HubUpdateEvent(nodes=nodes):
            return "hub", "Facts from the Hub", ", ".join(nodes[:20]), ""
        case PacketUpdateEvent(source=source):
            return "hub", "The packet was changed", source, ""
        case SubmitResultEvent(result=result):
            return "end", "It said that it is done", _value(result.get("summary", result)), ""
        case AgentErrorEvent(code=code, message=message):
            return "error", "The agent was stopped", message, code
        case AgentResumedEvent(reason=reason):
            return "notice", "The run went on", reason, "resumed"
        case EscalationEvent():
            return "move", f"Moved {event.direction} to {event.target}", event.reason, event.rule
        case NoticeEvent(code=code, message=message):
            return "notice", "Notice", message, code
        case UnknownEvent(problem=problem):
            return "notice", event.type, problem, "unknown event"
        case _:
            return "other", event.type, "", ""


def effect_of(event: Event) -> list[tuple[str, str]]:
    """What an event changed in the packet, in words."""
    delta = event.delta
    if not isinstance(delta, PacketDelta):
        return [] if delta is None else [("packet", "this version cannot read its delta")]
    found: list[tuple[str, str]] = []
    if delta.action:
        found.append(("action", delta.action.summary))
    found += [("knowledge", f"{key} = {one_line(_value(item.value), 120)}") for key, item in delta.knowledge.items()]
    if delta.error and delta.error.set:
        found.append(("error", delta.error.set))
    found += [("diagnostic", text) for text in delta.diagnostics]
    found += [("excerpt", f"{item.label} from line {item.start_line}") for item in delta.excerpts if item.text]
    if delta.candidate_actions:
        found.append(("candidates", ", ".join(action.tool for action in delta.candidate_actions)))
    if delta.hub:
        found += [("hub", node) for node in delta.hub.set]
    if delta.evidence and delta.evidence.lines:
        found.append(("evidence", f"{len(delta.evidence.lines)} lines kept as evidence"))
    return found
