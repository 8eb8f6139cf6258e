"""A prompt in parts, as the model read it: task, knowledge, actions, excerpts, evidence, each with its tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from remora.context.render import ACCOUNT_HEAD, EARLIER_HEADS
from remora.context.text import message_text
from remora.events import readable

MAX_ITEMS = 2000
"""Items of a part that are shown one by one; the rest is one item."""
WIDE = 100
"""Characters of a JSON value up to which it is shown in one line."""
_ENTRY = re.compile(r"#(\d{1,15}) ")
_CALL_ID = re.compile(r"call_(\d{1,15})")
_TITLE = re.compile(r"## (.{1,200})|([A-Z][a-z_ ]{0,40}): ")
_NESTED = ("knowledge", "extensions", "hub_context")
"""Fields of the packet whose values are shown one by one."""
_EXPLAINED = (
    *("knowledge", "extensions", "hub_context", "last_error", "state_summary", "diagnostics", "candidate_actions"),
    *("recent_actions", "excerpts"),
)
"""Fields of the packet whose values come from events."""


@dataclass(frozen=True)
class PromptItem:
    """One thing that a part of a prompt says."""

    text: str
    label: str = ""
    """What the text is the value of, such as a knowledge key."""
    key: str = ""
    """What `explain` is asked for; empty where nothing but the prompt's own text is behind it."""
    seq: int | None = None
    """The event that it came from, where the prompt names it."""
    is_new: bool = False
    """Whether the prompt before did not have it."""
    is_code: bool = False


@dataclass(frozen=True)
class PromptPart:
    """A part of a prompt."""

    name: str
    items: tuple[PromptItem, ...]
    tokens: int | None = None
    """As the receipt counted them; None if it does not say."""

    @property
    def new(self) -> int:
        """Number of items that are new."""
        return sum(item.is_new for item in self.items)


def prompt_parts(messages: Sequence[Mapping[str, Any]], tokens: Mapping[str, int]) -> tuple[PromptPart, ...]:
    """Split a recorded prompt into its parts. `messages` have their texts, not references to them."""
    if len(messages) > 2 or any(message.get("role") not in ("system", "user") for message in messages):
        return tuple(_chat(messages, tokens))
    found: list[PromptPart] = []
    for message in messages:
        text = _content(message)
        if message.get("role") == "system":
            found.append(PromptPart("system", (PromptItem(text),) if text else (), tokens.get("system")))
        else:
            found.extend(_packet(text, tokens))
    return tuple(found)


def mark_new(parts: Iterable[PromptPart], before: Iterable[PromptPart]) -> tuple[PromptPart, ...]:
    """Mark the items that the prompt `before` did not have."""
    known = {(part.name, item.label, item.text) for part in before for item in part.items}
    return tuple(
        replace(part, items=tuple(replace(i, is_new=(part.name, i.label, i.text) not in known) for i in part.items))
        for part in parts
    )


def _packet(text: str, tokens: Mapping[str, int]) -> Iterator[PromptPart]:
    """The parts of the message that holds the packet, in any style."""
    if text.startswith("{"):
        try:
            sections, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            sections, end = None, 0
        if isinstance(sections, dict):
            yield from (PromptPart(name, _items(name, value), tokens.get(name)) for name, value in sections.items())
            if rest := text[end:].strip():
                yield PromptPart("closing", (PromptItem(rest),), tokens.get("closing"))
            return
    if text.startswith((ACCOUNT_HEAD, *EARLIER_HEADS)):
        yield from _account(text, tokens)
    else:
        yield from _sections(text, tokens)


def _items(name: str, value: Any) -> tuple[PromptItem, ...]:
    key = name if name in _EXPLAINED else ""
    if isinstance(value, dict) and name in _NESTED:
        nested = name != "hub_context"
        return tuple(
            PromptItem(_value(item), label=str(label), key=str(label) if nested else key)
            for label, item in value.items()
        )
    if name == "evidence" and isinstance(value, list):
        return _entries([str(line) for line in value])
    if isinstance(value, list):
        return tuple(_listed(name, item, key) for item in value)
    if isinstance(value, dict):
        return tuple(PromptItem(_value(item), label=str(label), key=key) for label, item in value.items())
    return (PromptItem(_value(value), key=key),)


def _listed(name: str, item: Any, key: str) -> PromptItem:
    """One of a list: an action, a candidate, an excerpt, a diagnostic."""
    if not isinstance(item, dict):
        return PromptItem(_value(item), key=key)
    if name == "excerpts":
        label = f"{item.get('label', '')} from line {item.get('start_line', 1)}"
        return PromptItem(str(item.get("text", "")), label=label, key=key, is_code=True)
    if "tool" in item:
        rest = {word: each for word, each in item.items() if word not in ("tool", "summary", "reason", "outcome")}
        words = [str(item[word]) for word in ("summary", "reason") if item.get(word)]
        words += [f"({item['outcome']})"] if item.get("outcome") not in (None, "success") else []
        args = rest.pop("args", None)
        words = [_value(args)] * bool(args) + words + ([_value(rest)] if rest else [])
        return PromptItem(" ".join(words), label=str(item["tool"]), key=key)
    return PromptItem(_value(item), key=key)


def _account(text: str, tokens: Mapping[str, int]) -> Iterator[PromptPart]:
    """The parts of an account: the task, what happened, and the packet's other fields."""
    lines = text.splitlines()[1:]
    ends = next((n for n, line in enumerate(lines) if line.startswith(("## ", "Turn: "))), len(lines))
    starts = next((n for n, line in enumerate(lines[:ends]) if _ENTRY.match(line)), ends)
    task = "\n".join(lines[:starts]).removeprefix("Task: ").strip()
    if task:
        yield PromptPart("task", (PromptItem(task),))
    if starts < ends:
        yield PromptPart("account", _entries(lines[starts:ends]), tokens.get("account"))
    yield from _sections("\n".join(lines[ends:]), tokens)


def _entries(lines: Sequence[str]) -> tuple[PromptItem, ...]:
    """Entries of evidence: each begins with its event's number."""
    found: list[PromptItem] = []
    for line in lines:
        if (match := _ENTRY.match(line)) and len(found) < MAX_ITEMS:
            seq = int(match[1])
            found.append(PromptItem(line[match.end() :], label=f"#{seq}", key=f"#{seq}", seq=seq, is_code=True))
        elif found and line.startswith(" "):
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{line}")
        else:
            found.append(PromptItem(line))
    return tuple(found)


def _sections(text: str, tokens: Mapping[str, int]) -> Iterator[PromptPart]:
    """The parts of a packet in Markdown, or one part for any other text."""
    name, lines = "", list[str]()
    for line in text.splitlines():
        if match := _TITLE.match(line):
            yield from _section(name, lines, tokens)
            name = (match[1] or match[2]).lower().replace(" ", "_")
            lines = [] if match[1] else [line[match.end() :]]
        else:
            lines.append(line)
    yield from _section(name, lines, tokens)


def _section(name: str, lines: Sequence[str], tokens: Mapping[str, int]) -> Iterator[PromptPart]:
    if not name and not any(line.strip() for line in lines):
        return
    key = name if name in _EXPLAINED else ""
    if lines and all(line.startswith("- ") for line in lines):
        items = tuple(_bullet(name, line[2:], key) for line in lines)
    else:
        items = (PromptItem("\n".join(lines), key=key, is_code=any(line.startswith("```") for line in lines)),)
    yield PromptPart(name or "text", items, tokens.get(name))


def _bullet(name: str, text: str, key: str) -> PromptItem:
    label, colon, rest = text.partition(": ")
    if name in _NESTED and colon:
        return PromptItem(rest, label=label, key=label if name != "hub_context" else key)
    return PromptItem(text, key=key)


def _chat(messages: Sequence[Mapping[str, Any]], tokens: Mapping[str, int]) -> Iterator[PromptPart]:
    """The parts of a chat: its messages. Those of a packet in style `chat` lead to their events."""
    for message in messages:
        role, is_packet = str(message.get("role", "")), "chat" in tokens
        text = message_text({**message, "content": _content(message)})
        if is_packet and role == "user":
            items = _entries(text.splitlines())
        else:
            seq = _seq_of(message) if is_packet else None
            key = "" if seq is None else f"#{seq}"
            items = (PromptItem(text, label=key, key=key, seq=seq, is_code=role == "tool"),) if text else ()
        yield PromptPart(role or "message", items, tokens.get("system") if role == "system" else None)


def _seq_of(message: Mapping[str, Any]) -> int | None:
    """The event behind a call or a result in a packet: its id is `call_` and the event's number."""
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list | tuple) and calls else None
    id_ = first.get("id") if isinstance(first, Mapping) else message.get("tool_call_id")
    match = _CALL_ID.fullmatch(id_) if isinstance(id_, str) else None
    return int(match[1]) if match else None


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else "" if content is None else readable(content)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        text = orjson.dumps(value).decode()  # numbers as the prompt has them: 0.00001, not 1e-05
    except (ValueError, TypeError):
        return repr(value)
    return text if len(text) <= WIDE else readable(value)
