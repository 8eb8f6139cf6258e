"""Parses a prompt back into its parts: knowledge, excerpts, recent actions and diagnostics.

The packet is read as JSON or Markdown, by the names of its sections; a chat history is folded into the same parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from remora.context.render import ACCOUNT_HEAD
from remora.ports import Prompt

_HEADING = re.compile(r"## (.+?)(?: from line (\d+))?")
_RETURNED = re.compile(r"([\w-]+) returned:\n(.*)", re.DOTALL)


@dataclass(frozen=True)
class NumberedExcerpt:
    """A slice of text with its line numbers."""

    label: str
    start: int
    lines: tuple[str, ...]

    @property
    def rows(self) -> range:
        return range(self.start, self.start + len(self.lines))

    def find(self, block: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        """First and last line of every place where the block stands."""
        for place in range(len(self.lines) - len(block) + 1):
            if block and tuple(line.rstrip() for line in self.lines[place : place + len(block)]) == block:
                yield self.start + place, self.start + place + len(block) - 1


@dataclass(frozen=True)
class PromptParts:
    """What is shown of a run."""

    knowledge: Mapping[str, Any] = field(default_factory=dict)
    excerpts: tuple[NumberedExcerpt, ...] = ()
    actions: tuple[tuple[str, str], ...] = ()
    """Tool and outcome of each call that is still shown, oldest first."""

    diagnostics: tuple[str, ...] = ()

    def last(self, tool: str) -> int:
        """The place of the last call of a tool among the actions; -1 where there is none."""
        return max((place for place, action in enumerate(self.actions) if action[0] == tool), default=-1)


def read_prompt(prompt: Prompt) -> PromptParts:
    """The parts of this prompt."""
    said = [message for message in prompt.messages if message.get("role") != "system"]
    only = str(said[0].get("content", "")) if len(said) == 1 else ""
    if only.startswith("{"):
        # A model without an adapter may be told below the packet that the work is done.
        return _packet(orjson.loads(only.partition("\n")[0]))
    if only.startswith(ACCOUNT_HEAD) or re.search(r"(?m)^Turn: \d+", only):
        return _packet(_sections(only))
    return _history(said)


def _packet(sections: Mapping[str, Any]) -> PromptParts:
    knowledge = sections.get("knowledge", {})
    return PromptParts(
        knowledge=knowledge if isinstance(knowledge, Mapping) else {},
        excerpts=tuple(map(_shown, sections.get("excerpts", []))),
        actions=tuple((str(one["tool"]), str(one["outcome"])) for one in sections.get("recent_actions", [])),
        diagnostics=tuple(map(str, sections.get("diagnostics", []))),
    )


def _shown(excerpt: Mapping[str, Any]) -> NumberedExcerpt:
    text = str(excerpt["text"])
    # `read_file` numbers its lines itself, so that its excerpt can be read alone.
    lines = tuple(re.sub(r"^\d+: ?", "", line) if _numbered(text) else line for line in text.split("\n"))
    return NumberedExcerpt(str(excerpt["label"]), int(excerpt.get("start_line", 1)), lines)


def _numbered(text: str) -> bool:
    return all(re.match(r"\d+:", line) for line in text.split("\n"))


def _sections(text: str) -> dict[str, Any]:
    """The sections of a packet in Markdown."""
    found: dict[str, Any] = {"excerpts": []}
    lines, place, name = text.split("\n"), 0, ""
    while place < len(lines):
        line = lines[place]
        heading = _HEADING.fullmatch(line)
        if heading and heading[2]:
            fence = lines[place + 1]
            end = lines.index(fence, place + 2)
            body = "\n".join(lines[place + 2 : end])
            found["excerpts"].append({"label": heading[1], "start_line": int(heading[2]), "text": body})
            place = end
        elif heading:
            name = heading[1].lower().replace(" ", "_")
        elif line.startswith("- ") and name:
            _take(found, name, line[2:])
        place += 1
    return found


def _take(found: dict[str, Any], name: str, item: str) -> None:
    """One line of a list or of a mapping."""
    if name == "knowledge":
        key, _, value = item.partition(": ")
        found.setdefault(name, {})[key] = _value(value)
    else:
        found.setdefault(name, []).append(_value(item))


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _history(said: list[Mapping[str, Any]]) -> PromptParts:
    """What all results of a chat come to."""
    knowledge: dict[str, Any] = {}
    excerpts: dict[str, Mapping[str, Any]] = {}
    actions: list[tuple[str, str]] = []
    for tool, value in _results(said):
        knowledge |= value.get("knowledge_delta") or {}
        excerpts |= {str(one["label"]): one for one in value.get("excerpts") or []}
        actions.append((tool, str(value.get("outcome", "success"))))
    shown = tuple(_shown(one) for one in excerpts.values() if one.get("text"))
    return PromptParts(knowledge, shown, tuple(actions))


def _results(said: list[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    names: dict[str, str] = {}
    for message in said:
        names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or []}
        content = str(message.get("content") or "")
        returned = _RETURNED.fullmatch(content)
        if message.get("role") == "tool":
            tool, raw = names.get(str(message.get("tool_call_id")), ""), content
        elif returned:
            tool, raw = returned[1], returned[2]
        else:
            continue
        value = _value(raw)
        yield tool, value if isinstance(value, Mapping) else {"outcome": "error"}
