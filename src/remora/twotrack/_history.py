"""Reads a growing chat history: what in it is new, as replies, results and people's words.

Messages are dicts or objects: OpenAI chat messages, items of OpenAI's Responses API, and Anthropic messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from remora.context.calls import get, text_of
from remora.events import canonical, digest, readable


@dataclass(frozen=True)
class Said:
    """A person's message."""

    text: str


@dataclass(frozen=True)
class Replied:
    """The model's message."""

    text: str
    calls: tuple[Any, ...] = ()
    """Its calls as written."""


@dataclass(frozen=True)
class Returned:
    """The result of a call."""

    call_id: str
    value: Any
    failed: bool = False
    tool: str = ""


Item = Said | Replied | Returned


def read_history(messages: Iterable[Any]) -> tuple[str, list[Item]]:
    """The system text, and everything else in order. Parts of one reply are joined."""
    system: list[str] = []
    items: list[Item] = []
    for message in messages:
        if get(message, "role") in ("system", "developer"):
            system.append(text_of(get(message, "content")))
            continue
        for item in _items(message):
            last = items[-1] if items else None
            if isinstance(item, Replied) and isinstance(last, Replied):
                text = "\n".join(filter(None, (last.text, item.text)))
                items[-1] = replace(last, text=text, calls=(*last.calls, *item.calls))
            else:
                items.append(item)
    return "\n".join(system), items


def _items(message: Any) -> Iterator[Item]:
    kind, role, content = get(message, "type"), get(message, "role"), get(message, "content")
    blocks = content if isinstance(content, list | tuple) else ()
    if kind == "function_call":
        yield Replied("", (message,))
    elif kind == "function_call_output":
        yield Returned(text_of(get(message, "call_id")), get(message, "output"))
    elif role in ("tool", "function"):
        failed = get(message, "status") == "error"
        value = content if isinstance(content, str) or not blocks else text_of(content)
        yield Returned(text_of(get(message, "tool_call_id")), value, failed, text_of(get(message, "name")))
    elif role == "assistant":
        uses = tuple(block for block in blocks if get(block, "type") == "tool_use")
        yield Replied(text_of(content), tuple(get(message, "tool_calls") or ()) + uses)
    elif role == "user":
        for block in blocks:
            if get(block, "type") == "tool_result":
                value = get(block, "content")
                text = value if isinstance(value, str) else text_of(value)
                yield Returned(text_of(get(block, "tool_use_id")), text, bool(get(block, "is_error")))
        if text := text_of(content):
            yield Said(text)


def fingerprint(item: Item) -> str:
    """The same for the same item in a later history."""
    match item:
        case Said(text=text):
            parts: Any = ["user", text]
        case Replied(text=text, calls=calls):
            parts = ["assistant", text, [_call_key(call) for call in calls]]
        case Returned():
            parts = ["tool", item.call_id, readable(item.value)]
    return digest(canonical(parts))


def _call_key(call: Any) -> str:
    return text_of(get(call, "call_id") or get(call, "id"))


class Seen:
    """What of a history is recorded already."""

    def __init__(self) -> None:
        self._keys: list[str] = []

    def news(self, items: Sequence[Item]) -> tuple[list[Item], bool]:
        """The items that were not there before, and whether earlier ones were changed or removed."""
        keys = [fingerprint(item) for item in items]
        before, self._keys = self._keys, keys
        if keys[: len(before)] == before:
            return list(items[len(before) :]), False
        # The history was rewritten: everything that was there before, in any place, is known.
        left = Counter(before)
        news = []
        for item, key in zip(items, keys, strict=True):
            if left[key]:
                left[key] -= 1
            else:
                news.append(item)
        return news, True
