"""Entries of the evidence: words of a person or of the agent, or a call with its output, ready to be selected from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from remora.context.evidence._calls import call_line
from remora.context.evidence._identifiers import Identifiers
from remora.context.evidence._reading import Reading, visible_line
from remora.context.evidence._words import identifiers_in, weigh, words_of

BRIEF = 80
"""Characters of an output that stands beside its call."""
MAX_WORDS = 4_000
"""Characters of one person's message; the stream holds all of it."""
MAX_OWN_WORDS = 1_000
"""Characters of one message of the agent."""
_LABEL = 6
"""Tokens of an entry's number and signs, about."""

_MARKS = re.compile(r"^\s*(?:[-*•]|#{1,6})\s+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")

Speaker = Literal["user", "agent", "call"]


@dataclass(frozen=True)
class Line:
    """One line of an entry, with what selection needs to know of it."""

    text: str
    words: frozenset[str]
    weight: int
    parent: int
    """The line that this one belongs to; -1 where it stands alone."""
    heads: bool
    """Whether other lines belong to it."""
    fresh: frozenset[str]
    """Identifiers that no line of the entry has before."""


@dataclass(frozen=True)
class Entry:
    """One thing that happened: words of a person or of the agent, or a call with its output."""

    seq: int
    speaker: Speaker
    text: str
    """The words, or the call in one line."""
    given: tuple[str, ...] = ()
    """Lines of long arguments."""
    lines: tuple[str, ...] = ()
    """Lines of the output."""
    kind: str = "text"
    failed: bool = False
    omitted: int = 0
    """Lines that are not here any more."""
    identifiers: Identifiers = ()
    level: int = 0
    """How often it was shortened."""

    @cached_property
    def size(self) -> int:
        """Bytes, about."""
        pairs = sum(len(key) + len(value) + 6 for key, value in self.identifiers)
        return len(self.text) + sum(map(len, self.given)) + sum(map(len, self.lines)) + pairs + 64

    @cached_property
    def words(self) -> frozenset[str]:
        """Of what was said, or of the call, long arguments included."""
        return words_of("\n".join((self.text, *self.given, *(() if self.speaker == "call" else self.lines))))

    @cached_property
    def all_words(self) -> frozenset[str]:
        return self.words.union(words_of(self.brief), *(line.words for line in self.view))

    @cached_property
    def tool(self) -> str:
        """What was called."""
        return self.text.partition("(")[0] if self.speaker == "call" else ""

    @cached_property
    def brief(self) -> str:
        """The output where it is so short that it stands beside the call."""
        is_short = self.speaker == "call" and len(self.lines) == 1 and len(self.lines[0]) <= BRIEF
        return self.lines[0].strip() if is_short else ""

    @cached_property
    def weight(self) -> int:
        """Tokens of its head, about."""
        return weigh(self.text) + weigh(self.brief) + _LABEL

    @cached_property
    def said(self) -> str:
        """What was said, or the call, as one text."""
        return self.text if self.speaker == "call" else " ".join(self.lines)

    @cached_property
    def view(self) -> tuple[Line, ...]:
        """Given lines, then those of the output."""
        found: list[Line] = []
        seen: set[str] = set()
        open_: list[tuple[int, int]] = []
        for index, text in enumerate((*self.given, *(() if self.brief else self.lines))):
            indent = len(text) - len(text.lstrip(" ")) if self.kind == "records" or index < len(self.given) else 0
            while open_ and open_[-1][0] >= indent:
                open_.pop()
            parent = open_[-1][1] if open_ else -1
            open_.append((indent, index))
            words = words_of(text)
            fresh = frozenset(identifiers_in(text) - seen)
            seen |= words
            found.append(Line(text, words, weigh(text) + 1, parent, False, fresh))
        parents = {line.parent for line in found}
        return tuple(replace(line, heads=True) if at in parents else line for at, line in enumerate(found))


def person_said(seq: int, text: str) -> Entry:
    """A person's words."""
    return Entry(seq, "user", "", lines=_sentences(clip(text.strip(), MAX_WORDS)))


def agent_said(seq: int, text: str) -> Entry:
    """The agent's own words."""
    return Entry(seq, "agent", "", lines=_sentences(clip(text.strip(), MAX_OWN_WORDS)))


def called(seq: int, tool: str, args: Mapping[str, Any], reading: Reading) -> Entry:
    """A call and what came of it. Arguments that the output shows again are not kept twice."""
    line, long_lines = call_line(tool, args)
    text, given = visible_line(line), tuple(map(visible_line, long_lines))
    if given and reading.lines:
        shown = "\n".join(reading.lines)
        new = tuple(line for line in given if line.strip() and line.strip() not in shown)
        given = new if len(new) > 1 or (new and not new[0].endswith(":")) else ()
    entry = Entry(seq, "call", text, given, reading.lines, reading.kind, reading.failed, reading.omitted)
    return entry if entry.brief else replace(entry, identifiers=reading.identifiers)


def _sentences(text: str) -> tuple[str, ...]:
    """What was said, sentence by sentence, without marks of layout."""
    lines = (visible_line(_MARKS.sub("", line)).strip() for line in text.replace("**", "").splitlines())
    return tuple(part for line in lines for part in _SENTENCE.split(line) if part)


def clip(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3].rstrip()} … {text[-limit // 3 :].lstrip()}"
