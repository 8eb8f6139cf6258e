"""Recorded runs as chat messages in OpenAI's shape, and plain rules that shorten them to a number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from benchmarks.evidence.data import output_text
from benchmarks.evidence.rows import KEPT_OUTPUTS, MASK, TASK_SHARE, Count, cut_middle
from remora.analysis import AssistantTurn, UserMessage

Message = dict[str, Any]
Shorten = Callable[[Sequence[Message], int, Count], list[Message]]
"""Messages that begin with the task, a budget and a counter: the messages to send."""


def step_messages(step: UserMessage | AssistantTurn, number: int) -> list[Message]:
    """A step as messages. `number` makes the ids of its calls unique."""
    if isinstance(step, UserMessage):
        return [{"role": "user", "content": step.text}]
    ids = [f"call_{number}_{index}" for index in range(len(step.calls))]
    said: Message = {"role": "assistant", "content": own_words(step)}
    if step.calls:
        said["tool_calls"] = [
            {"id": name, "type": "function", "function": {"name": call.tool, "arguments": _json(call.args)}}
            for name, call in zip(ids, step.calls, strict=True)
        ]
    results = [
        {"role": "tool", "tool_call_id": ids[index], "name": step.calls[index].tool, "content": output_text(result)}
        for index, result in sorted(step.results.items())
    ]
    return [said, *results]


def own_words(step: AssistantTurn) -> str:
    """What the agent said, without a call that it wrote as text."""
    words = step.text
    for call in step.calls if step.by_text else ():
        words = words.replace(f"```\n{str(call.args.get('command', '')).strip()}\n```", "")
    return words.strip()


def message_text(message: Message) -> str:
    """The text of a message: what it says and what it calls."""
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls") or ()]
    return "\n".join(part for part in (message.get("content") or "", *calls) if part)


def whole(messages: Sequence[Message], budget: int, count: Count) -> list[Message]:
    """All messages, whatever they take."""
    return list(messages)


def task_only(messages: Sequence[Message], budget: int, count: Count) -> list[Message]:
    """The first message."""
    return _newest(messages[:1], budget, count)


def newest(messages: Sequence[Message], budget: int, count: Count) -> list[Message]:
    """The task and the newest messages that fit, whole."""
    return _newest(messages, budget, count)


def masked(messages: Sequence[Message], budget: int, count: Count) -> list[Message]:
    """Older outputs replaced by a short text; if that is still too much, the oldest messages go."""
    outputs = [index for index, message in enumerate(messages) if message["role"] == "tool"]
    shown = list(messages)
    for kept in range(KEPT_OUTPUTS, 0, -1):
        hidden = set(outputs[:-kept])
        shown = [message | {"content": MASK} if index in hidden else message for index, message in enumerate(messages)]
        if sum(count(message_text(message)) for message in shown) <= budget:
            break
    return _newest(shown, budget, count)


def closed(messages: Sequence[Message]) -> list[Message]:
    """Messages that a server accepts: a result without its call becomes a person's message that names the tool."""
    known: set[str] = set()
    found = []
    for message in messages:
        known |= {call["id"] for call in message.get("tool_calls") or ()}
        if message["role"] == "tool" and message["tool_call_id"] not in known:
            message = {"role": "user", "content": f"Output of `{message['name']}`:\n{message['content']}"}
        found.append(message)
    return found


def _newest(messages: Sequence[Message], budget: int, count: Count) -> list[Message]:
    task = cut_middle(message_text(messages[0]), budget, int(budget * TASK_SHARE), count)
    room, kept = budget - count(task), []
    for message in reversed(messages[1:]):
        tokens = count(message_text(message))
        if tokens > room:
            break
        room -= tokens
        kept.append(message)
    return [messages[0] | {"content": task}, *reversed(kept)]


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
