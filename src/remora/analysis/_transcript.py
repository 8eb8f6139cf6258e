"""A run as a conversation: each prompt as sent, each reply, call and result, in order.

Computed from the stream on demand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from remora.errors import TraceError
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentResumedEvent,
    AgentStartEvent,
    BlobRef,
    Call,
    EscalationEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    UserInputEvent,
    canonical,
    is_check,
    readable,
    unpack,
)

MAX_SHOWN = 2000
"""Characters of a result that are shown by default. Prompts and replies are always complete."""

Blobs = Callable[[str], Awaitable[bytes]]
Kind = Literal["start", "user", "prompt", "reply", "call", "result", "output", "submit", "notice", "error", "end"]


@dataclass(frozen=True)
class Entry:
    """One message, call or result."""

    turn: int
    seq: int
    kind: Kind
    who: str
    """The role in a prompt, the model in a reply, the tool in a call or result."""
    text: str
    left_out: int = 0
    """Characters that were left out of the text."""


class LlmConversationLogger:
    """The specification's name for the transcript of a stream. Large values are read from `blobs`.

    With `full`, results are complete. `clean` is called with each whole text.
    """

    def __init__(self, blobs: Blobs, *, full: bool = False, clean: Callable[[str], str] = str) -> None:
        self._blobs, self._clean = blobs, clean
        self._limit = None if full else MAX_SHOWN
        self._system: str | None = None

    async def entries(self, events: Iterable[Event]) -> AsyncIterator[Entry]:
        """Yield the entries in order. A prompt's system text is shown only where it changes."""
        for event in events:
            async for kind, who, whole in self._of(event):
                text = self._clean(whole)
                shown = text if kind in ("prompt", "reply", "user") else text[: self._limit]
                yield Entry(event.turn, event.seq, kind, who, shown, len(text) - len(shown))

    async def _of(self, event: Event) -> AsyncIterator[tuple[Kind, str, str]]:
        match event:
            case ModelRequestEvent():
                async for role, text in self._prompt(event):
                    yield "prompt", role, text
            case ModelResponseEvent():
                yield "reply", event.model, await self._reply(event)
            case ToolResultEvent():
                who = f"check by {event.tool}" if is_check(event) else event.tool
                yield "result", f"{who}: {event.outcome}", await self._raw(event)
                for item in event.attachments:
                    yield "output", str(item.get("name", "")), await self._kept(item.get("ref"), "")
            case UserInputEvent():
                yield "user", "", await self._kept(event.text_ref, event.text)
            case _:
                for line in _plain(event):
                    yield line

    async def _prompt(self, event: ModelRequestEvent) -> AsyncIterator[tuple[str, str]]:
        for message in event.messages:
            role, text = str(message.get("role", "")), await self._message(message)
            if role == "system":
                if text == self._system:
                    continue
                self._system = text
            yield role, text

    async def _message(self, message: Mapping[str, Any]) -> str:
        content = message.get("content")
        said = content if isinstance(content, str) else readable(content) if content else ""
        parts = [await self._kept(message.get("content_ref"), said)]
        parts += [readable(call) for call in message.get("tool_calls") or ()]
        return "\n".join(part for part in parts if part)

    async def _reply(self, event: ModelResponseEvent) -> str:
        decided = f"[by rule: {event.rule}]" if event.rule else ""
        parts = [decided, f"[{event.error}]" if event.error else "", await self._kept(event.text_ref, event.text)]
        parts.append(f"[{describe_fit(event.fit)}]" if event.fit else "")
        return "\n".join([*(part for part in parts if part), *map(_call, event.calls)])

    async def _raw(self, event: ToolResultEvent) -> str:
        if event.raw_ref is None:
            return readable(event.raw)
        try:
            return readable(unpack(await self._blobs(event.raw_ref.blob), event.raw_ref.encoding))
        except TraceError as error:
            return _gone(error)

    async def _kept(self, reference: object, said: str) -> str:
        """All of a text that may be in a blob."""
        if not reference:
            return said
        try:
            ref = reference if isinstance(reference, BlobRef) else BlobRef.model_validate(reference)
            return (await self._blobs(ref.blob)).decode(errors="backslashreplace")
        except (TraceError, ValidationError) as error:
            return _gone(error)


def describe_fit(fit: Mapping[str, Any]) -> str:
    """Whether a proposed call does what was asked, as the model answered."""
    proposed = fit.get("proposed")
    tool = proposed.get("tool") if isinstance(proposed, Mapping) else None
    odds = f" (log odds of Yes {fit['log_odds']}, at least {fit.get('least')} needed)" if "log_odds" in fit else ""
    return f"does {tool} do what was asked? {fit.get('answer')}{odds}"


async def transcript(
    events: Iterable[Event], blobs: Blobs, *, full: bool = False, clean: Callable[[str], str] = str
) -> list[Entry]:
    """The stream as a conversation, each text as `clean` returns it. Pruned values are named in their place."""
    return [entry async for entry in LlmConversationLogger(blobs, full=full, clean=clean).entries(events)]


def _plain(event: Event) -> Iterable[tuple[Kind, str, str]]:
    """Entries of events that need no blob."""
    match event:
        case AgentStartEvent(goal=goal, model=model):
            yield "start", str(model.get("policy", "")), goal
        case ToolCallEvent(tool=tool, args=args):
            yield "call", f"check by {tool}" if is_check(event) else tool, canonical(args).decode()
        case SubmitResultEvent(result=result):
            yield "submit", "", canonical(result).decode()
        case NoticeEvent(code=code, message=message):
            yield "notice", code, message
        case EscalationEvent(direction=direction, source=source, target=target, reason=reason):
            yield "notice", f"escalation {direction}", f"{source} → {target}: {reason}"
        case AgentErrorEvent(code=code, message=message):
            yield "error", code, message
        case AgentResumedEvent(reason=reason):
            yield "notice", "resumed", reason
        case AgentEndEvent(outcome=outcome, reason=reason, summary=summary):
            yield "end", outcome, summary or reason
        case _:
            pass


def _call(call: Call) -> str:
    return f"→ {call.tool} {canonical(call.args).decode()}"


def _gone(error: Exception) -> str:
    return f"[cannot be shown: {getattr(error, 'message', 'not a reference')}]"
