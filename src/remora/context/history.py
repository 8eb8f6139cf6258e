"""A run as plain chat history: the baseline for comparing the packet.

It is built from the same events, the way most agents do it: all messages, calls and full results, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from remora.context.contracts import ToolSpec
from remora.context.evidence import MESSAGE_OVERHEAD
from remora.context.render import Calling, fixed_tokens, system_text
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
    """A prompt made of history, with its token counts."""

    messages: tuple[Message, ...]
    tokens: dict[str, int]
    left_out: dict[str, int]


class History:
    """The chat history of one run."""

    def __init__(self, calling: Calling, counter: TokenCounter) -> None:
        self._native = calling == "native"
        self._counter = counter
        self._counted: list[tuple[Message, int]] = []

    @property
    def messages(self) -> list[Message]:
        """All messages except the system message."""
        return [message for message, _ in self._counted]

    def take(self, event: Event, raw: str = "") -> None:
        """Append the event to the chat, unless it belongs to the check. `raw` is the full result of a tool."""
        message = None if is_check(event) else self._message(event, raw)
        if message is not None:
            self._append(message)
        if isinstance(event, ModelResponseEvent) and event.error and not (self._native and event.calls):
            # Servers refuse two messages of one role in a row, and the model must read what was wrong.
            self._append(_user(_reply_error(event)))

    def _append(self, message: Message) -> None:
        text = canonical(message).decode() if "tool_calls" in message else str(message["content"])
        self._counted.append((message, self._counter.count(text) + MESSAGE_OVERHEAD))

    def prompt(
        self, system_prompt: str, tools: Sequence[ToolSpec], *, calling: Calling, limit: int | None, cut: bool
    ) -> Chat:
        """The whole history, or with `cut` the goal and the newest messages that fit. Raises `BudgetError` if over."""
        system = system_text(system_prompt, tools, calling)
        fixed = fixed_tokens(system, self._counter, tools if calling == "native" else ())
        kept, gone = self._counted, 0
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

    def _without_oldest(self, messages: list[tuple[Message, int]]) -> list[tuple[Message, int]]:
        """Drop the oldest message after the goal, and the results of its calls."""
        rest = messages[2:]
        while rest and rest[0][0]["role"] == "tool":
            rest = rest[1:]
        return [messages[0], *rest]

    def _message(self, event: Event, raw: str) -> Message | None:
        match event:
            case AgentStartEvent(goal=goal, node=node):
                return _user("\n".join(filter(None, [goal, str(node.get("summary", ""))])))
            case UserInputEvent(text=text):
                return _user(text)
            case ModelResponseEvent(text=text, calls=calls):
                return self._assistant(text, calls)
            case ToolResultEvent() if self._native:
                return {"role": "tool", "tool_call_id": event.call_id, "content": raw}
            case ToolResultEvent():
                return _user(f"{event.tool} returned:\n{raw}")
            case PacketUpdateEvent(delta=PacketDelta(diagnostics=lines)) if lines:
                return _user("\n".join(lines))
        return None

    def _assistant(self, text: str, calls: Sequence[Call]) -> Message:
        if self._native and calls:
            return {"role": "assistant", "content": text, "tool_calls": [_openai(call) for call in calls]}
        written = [canonical({"tool": call.tool, "args": call.args}).decode() for call in calls]
        return {"role": "assistant", "content": text or "\n".join(written)}


def _reply_error(event: ModelResponseEvent) -> str:
    """The error that the packet shows for a reply without a valid call."""
    error = event.delta.error.set if isinstance(event.delta, PacketDelta) and event.delta.error else None
    return error or f"That is no call that can be made: {event.error}"


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _openai(call: Call) -> dict[str, Any]:
    arguments = canonical(call.args).decode()
    return {"id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def _tokens(messages: Sequence[tuple[Message, int]]) -> int:
    return sum(tokens for _, tokens in messages)
