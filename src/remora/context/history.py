"""A run as plain chat history: the baseline that the packet is compared with.

The same events, told the way most agents do it: all that was said, called and returned, in order and in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from remora.context.contracts import ToolSpec
from remora.context.render import MESSAGE_OVERHEAD, Calling, fixed_tokens, system_text
from remora.errors import BudgetError
from remora.events import (
    AgentStartEvent,
    Call,
    Event,
    ModelResponseEvent,
    PacketDelta,
    PacketUpdateEvent,
    ToolResultEvent,
    UserInputEvent,
    canonical,
    is_check,
)
from remora.ports import TokenCounter

HISTORY = "history-1"
"""The version of this rendering, as receipts name it."""

Message = dict[str, Any]


@dataclass(frozen=True)
class Chat:
    """A prompt made of history, and where its tokens went."""

    messages: tuple[Message, ...]
    tokens: dict[str, int]
    left_out: dict[str, int]


class History:
    """What was said so far in one run."""

    def __init__(self, calling: Calling, counter: TokenCounter) -> None:
        self._native = calling == "native"
        self._counter = counter
        self._said: list[tuple[Message, int]] = []

    @property
    def messages(self) -> list[Message]:
        """All of it, without the system message."""
        return [message for message, _ in self._said]

    def take(self, event: Event, raw: str = "") -> None:
        """Append the event to the chat, unless it belongs to the check. `raw` is what a tool returned, in full."""
        message = None if is_check(event) else self._message(event, raw)
        if message is not None:
            self._say(message)
        if isinstance(event, ModelResponseEvent) and event.error and not (self._native and event.calls):
            # A chat in which one side speaks twice is refused by servers, and a model must learn what was wrong.
            self._say(_user(_told_wrong(event)))

    def _say(self, message: Message) -> None:
        text = canonical(message).decode() if "tool_calls" in message else str(message["content"])
        self._said.append((message, self._counter.count(text) + MESSAGE_OVERHEAD))

    def prompt(
        self, system_prompt: str, tools: Sequence[ToolSpec], *, calling: Calling, limit: int | None, cut: bool
    ) -> Chat:
        """All of it, or with `cut` as much of the newest as fits beside the goal. Raises `BudgetError` if none does."""
        system = system_text(system_prompt, tools, calling)
        fixed = fixed_tokens(system, self._counter, tools if calling == "native" else ())
        kept, gone = self._said, 0
        while cut and limit is not None and len(kept) > 2 and fixed + _tokens(kept) > limit:
            kept, gone = self._without_oldest(kept), gone + 1
        total = fixed + _tokens(kept)
        if limit is not None and total > limit:
            raise BudgetError(
                f"Chat history takes {total:,} tokens: the limit is {limit:,}",
                hint="This is the baseline without a packet; with `runner.memory.enabled: true` prompts stay small",
            )
        first = {"role": "system", "content": system}
        tokens = {"system": fixed, "history": _tokens(kept), "total": total}
        return Chat((first, *(message for message, _ in kept)), tokens, {"messages": gone} if gone else {})

    def _without_oldest(self, said: list[tuple[Message, int]]) -> list[tuple[Message, int]]:
        """The goal stays; a result never stays without the call that it answers."""
        rest = said[2:]
        while rest and rest[0][0]["role"] == "tool":
            rest = rest[1:]
        return [said[0], *rest]

    def _message(self, event: Event, raw: str) -> Message | None:
        match event:
            case AgentStartEvent(goal=goal, node=node):
                return _user("\n".join(filter(None, [goal, str(node.get("summary", ""))])))
            case UserInputEvent(text=text):
                return _user(text)
            case ModelResponseEvent(text=text, calls=calls):
                return self._answer(text, calls)
            case ToolResultEvent() if self._native:
                return {"role": "tool", "tool_call_id": event.call_id, "content": raw}
            case ToolResultEvent():
                return _user(f"{event.tool} returned:\n{raw}")
            case PacketUpdateEvent(delta=PacketDelta(diagnostics=told)) if told:
                return _user("\n".join(told))
        return None

    def _answer(self, text: str, calls: Sequence[Call]) -> Message:
        if self._native and calls:
            return {"role": "assistant", "content": text, "tool_calls": [_openai(call) for call in calls]}
        written = [canonical({"tool": call.tool, "args": call.args}).decode() for call in calls]
        return {"role": "assistant", "content": text or "\n".join(written)}


def _told_wrong(event: ModelResponseEvent) -> str:
    """What the packet says of an answer without a call that can be made."""
    error = event.delta.error.set if isinstance(event.delta, PacketDelta) and event.delta.error else None
    return error or f"That is no call that can be made: {event.error}"


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _openai(call: Call) -> dict[str, Any]:
    arguments = canonical(call.args).decode()
    return {"id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def _tokens(said: Sequence[tuple[Message, int]]) -> int:
    return sum(tokens for _, tokens in said)
