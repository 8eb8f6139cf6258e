"""Writes shown entries as chat messages: people's words, the agent's words, and calls with their results.

Models are trained on calls in this form: given the same evidence as one text, they repeat calls more often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson

from remora.context.evidence._calls import filled_args
from remora.context.evidence._text import Shown
from remora.context.text import message_text

Message = dict[str, Any]

MESSAGE_OVERHEAD = 8
"""Tokens that a chat template adds around each message: an upper estimate."""
CALL_OVERHEAD, RESULT_OVERHEAD = 12, 16
"""The same for a message with a call, and for one with its result."""


def chat_messages(opening: str, parts: Sequence[Shown], *, calls_in_text: bool) -> list[Message]:
    """A user message with `opening`, then the entries, oldest first. Roles alternate as chat templates want them."""
    messages: list[Message] = [{"role": "user", "content": opening}] if opening else []
    for part in parts:
        for message in _messages(part, calls_in_text=calls_in_text):
            append_message(messages, message)
    return messages


def append_message(messages: list[Message], message: Message) -> None:
    """Append the message, or join it with the last one if both are of one role."""
    last = messages[-1] if messages else {}
    if last.get("role") != message["role"] or message["role"] == "tool" or "tool_calls" in last:
        messages.append(message)
        return
    content = "\n".join(text for text in (last["content"], message["content"]) if text)
    messages[-1] = last | message | {"content": content}


def chat_tokens(messages: Sequence[Message], count: Callable[[str], int]) -> int:
    """Tokens of the messages, without the template's tokens around the first one."""
    return sum(count(message_text(message)) for message in messages) + sum(map(_overhead, messages[1:]))


def _overhead(message: Message) -> int:
    if message["role"] == "tool":
        return RESULT_OVERHEAD
    return CALL_OVERHEAD if "tool_calls" in message else MESSAGE_OVERHEAD


def _messages(part: Shown, *, calls_in_text: bool) -> Iterator[Message]:
    entry = part.entry
    if entry.speaker == "user":
        yield {"role": "user", "content": part.said}
    elif entry.speaker == "agent":
        yield {"role": "assistant", "content": part.said}
    elif entry.made is not None:
        name, args = entry.made[0], filled_args(entry.made[1], part.given)
        if calls_in_text:
            yield {"role": "assistant", "content": orjson.dumps({"tool": name, "args": args}).decode()}
            yield {"role": "user", "content": f"{name} returned:\n{_result(part)}"}
        else:
            id_ = f"call_{entry.seq}"
            function = {"name": name, "arguments": orjson.dumps(args).decode()}
            yield {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": id_, "type": "function", "function": function}],
            }
            yield {"role": "tool", "tool_call_id": id_, "content": _result(part)}


def _result(part: Shown) -> str:
    """The shown output of a call. If some of it is hidden, the last line names the event, for `recall`."""
    entry = part.entry
    lines: Iterable[str] = [entry.brief] if entry.brief else part.lines
    beside = [f"has {part.known}"] if part.known else []
    shown = [*lines, *beside]
    hidden = [f"[#{entry.seq} {'…' if shown else 'is left out'}]"] if part.gone or entry.omitted else []
    text = "\n".join([*shown, *hidden]) or "nothing"
    return f"Failed: {text}" if entry.failed else text
