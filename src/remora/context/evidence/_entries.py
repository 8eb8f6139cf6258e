"""Entries of the evidence: a message of a person or of the agent, or a call with its output."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal

import orjson

from remora.context.evidence._cached import cached
from remora.context.evidence._calls import call_json, call_line
from remora.context.evidence._identifiers import Identifiers, by_key
from remora.context.evidence._reading import Reading, error_lines, visible_line
from remora.context.evidence._words import Index, Split, all_words, index, split, weigh, words_of

BRIEF = 80
"""Most characters of an output that is shown in the line of its call."""
MAX_WORDS = 4_000
"""Most characters of a person's message. The stream has the whole message."""
MAX_OWN_WORDS = 1_000
"""Most characters of a message of the agent."""
_LABEL = 6
"""Estimated tokens of an entry's number and punctuation."""

LINE_NUMBER = re.compile(r"\s*(\d{1,7})[:|\t ]")
_MARKS = re.compile(r"^\s*(?:[-*•]|#{1,6})\s+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")

Speaker = Literal["user", "agent", "call"]


@dataclass(frozen=True)
class Entry:
    """A message of a person or of the agent, or a call with its output."""

    seq: int
    speaker: Speaker
    text: str
    """The call in one line; empty for messages."""
    call: str = ""
    """The call as JSON, `name` and `arguments`; `…` stands for lines of `given`. Empty if it is too large."""
    given: tuple[str, ...] = ()
    """Lines of long arguments."""
    lines: tuple[str, ...] = ()
    """Lines of the output or of the message."""
    kind: str = "text"
    failed: bool = False
    omitted: int = 0
    """Number of lines that were dropped."""
    identifiers: Identifiers = ()
    level: int = 0
    """How often the entry was shortened."""

    @cached
    def size(self) -> int:
        """Estimated bytes."""
        pairs = sum(len(key) + len(value) + 6 for key, value in self.identifiers)
        return len(self.text) + len(self.call) + sum(map(len, self.given)) + sum(map(len, self.lines)) + pairs + 64

    @cached
    def encoded(self) -> bytes:
        """The entry as JSON, without fields at their defaults."""
        kept = {each.name: getattr(self, each.name) for each in _FIELDS if getattr(self, each.name) != each.default}
        return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)

    @cached
    def words(self) -> frozenset[str]:
        """Words of the message, or of the call with its long arguments."""
        return words_of("\n".join((self.text, *self.given, *(() if self.speaker == "call" else self.lines))))

    @cached
    def names(self) -> frozenset[str]:
        """Ids, numbers and names in code: of the call or message, and of the output."""
        return self.index.names.union([word for word in self.words if not word.isalpha()])

    @cached
    def telling_words(self) -> list[str]:
        """By identifier, the word that shows whether a text has its value."""
        return [_telling_word(value) for _, value in self.identifiers]

    @cached
    def known_words(self) -> frozenset[str]:
        """The telling words of all its identifiers."""
        return frozenset(self.telling_words)

    def hidden_identifiers(self, shown: Collection[str]) -> Identifiers:
        """Its identifiers whose telling words are not shown."""
        return tuple(
            [pair for pair, word in zip(self.identifiers, self.telling_words, strict=True) if word not in shown]
        )

    @cached
    def known_weight(self) -> int:
        """Estimated tokens of all its identifiers in one line."""
        return weigh(by_key(self.identifiers))

    @cached
    def texts(self) -> tuple[str, ...]:
        """The lines that can be shown: of long arguments, then of the output."""
        return self.given if self.brief else (*self.given, *self.lines)

    @cached
    def height(self) -> int:
        """The number of lines in `texts`."""
        return len(self.given) + (0 if self.brief else len(self.lines))

    @cached
    def costs(self) -> list[int]:
        """Estimated tokens of each line."""
        return [weight + 1 for weight in self.split.weights[: self.height]]

    @cached
    def parents(self) -> Sequence[int]:
        """The index of each line's parent: the line above it that is less indented; -1 if there is none."""
        indented = self.height if self.kind == "records" else len(self.given)
        parents = [-1] * self.height
        open_: list[tuple[int, int]] = []
        for at, text in enumerate(self.texts[:indented]):
            indent = len(text) - len(text.lstrip(" "))
            while open_ and open_[-1][0] >= indent:
                open_.pop()
            parents[at] = open_[-1][1] if open_ else -1
            open_.append((indent, at))
        return parents

    @cached
    def choices(self) -> list[int]:
        """The indices of lines that are chosen one by one. Parents are shown with their children.

        Of an output, only lines with words.
        """
        heads = set(self.parents)
        told = self.split.words if self.speaker == "call" else self.texts
        return [at for at in range(self.height) if at not in heads and told[at] and not told[at].isspace()]

    @cached
    def filled(self) -> list[int]:
        """For each index of `texts` and the end: how many lines before it have words."""
        return [0, *accumulate([bool(words.strip()) for words in self.split.words[: self.height]])]

    @cached
    def line_numbers(self) -> list[tuple[int, int]]:
        """The lines that begin with a number: index and number."""
        found = [(at, LINE_NUMBER.match(text)) for at, text in enumerate(self.texts)]
        return [(at, int(match[1])) for at, match in found if match]

    @cached
    def error_lines(self) -> list[int]:
        """The lines that report an error. A numbered line is code."""
        return [at for at in error_lines(self.texts) if not LINE_NUMBER.match(self.texts[at])]

    @cached
    def tool(self) -> str:
        """The name of the called tool; empty for messages."""
        return self.text.partition("(")[0] if self.speaker == "call" else ""

    @cached
    def made(self) -> tuple[str, dict[str, Any]] | None:
        """The tool and the arguments of `call`. None if it has none: it may come from a foreign stream."""
        try:
            call = orjson.loads(self.call)
        except orjson.JSONDecodeError:
            return None
        name, args = (call.get("name"), call.get("arguments")) if isinstance(call, dict) else (None, None)
        return (name, args) if isinstance(name, str) and isinstance(args, dict) else None

    @cached
    def brief(self) -> str:
        """The output, if it is short enough for the line of its call."""
        return _brief(self.lines) if self.speaker == "call" else ""

    @cached
    def weight(self) -> int:
        """Estimated tokens of its head line."""
        return weigh(self.text) + weigh(self.brief) + _LABEL

    @cached
    def said(self) -> str:
        """The message or the call as one text."""
        return self.text if self.speaker == "call" else " ".join(self.lines)

    @cached
    def lines_weight(self) -> int:
        """Estimated tokens of all its lines."""
        return sum(self.costs)

    @cached
    def split(self) -> Split:
        """The words and weights of the lines of long arguments, then of the output."""
        return split((*self.given, *self.lines))

    @cached
    def index(self) -> Index:
        """Where the words of those lines are."""
        return index((*self.given, *self.lines), self.split.words)

    @cached
    def vocabulary(self) -> Set[str]:
        """All words of those lines. Few lines of a shortened entry are scored again, so it has no index for this."""
        return frozenset(" ".join(self.split.words).split()) if self.level else self.index.first.keys()

    def shortened(self, text: str, given: Sequence[int], lines: Sequence[int], **changes: Any) -> Entry:
        """A copy with the given text, and only these lines of long arguments and of the output."""
        kept_given, kept_lines = tuple(self.given[at] for at in given), tuple(self.lines[at] for at in lines)
        entry = replace(self, text=text, given=kept_given, lines=kept_lines, level=self.level + 1, **changes)
        known = self.__dict__
        if entry.identifiers is self.identifiers:
            entry.__dict__.update({name: known[name] for name in _OF_IDENTIFIERS if name in known})
        if entry.speaker == "call" and entry.text == self.text and entry.given == self.given and "words" in known:
            entry.__dict__["words"] = self.words
        if "split" in known:
            start = len(self.given)
            entry.__dict__["split"] = self.split.only([*given, *[start + at for at in lines]])
        return entry


_FIELDS = fields(Entry)
_OF_IDENTIFIERS = ("telling_words", "known_words", "known_weight")
"""What is known of an entry's identifiers."""


@lru_cache(maxsize=2048)
def _telling_word(value: str) -> str:
    """The longest word of an identifier, of a path's last part. Cached: outputs of one run share many identifiers."""
    return value.lower() if value.isalnum() else max(all_words(value.rpartition("/")[2]), key=len, default="")


def person_said(seq: int, text: str) -> Entry:
    """The entry of a person's message."""
    return Entry(seq, "user", "", lines=_sentences(clip(text.strip(), MAX_WORDS)))


def agent_said(seq: int, text: str) -> Entry:
    """The entry of the agent's own message."""
    return Entry(seq, "agent", "", lines=_sentences(clip(text.strip(), MAX_OWN_WORDS)))


def called(seq: int, tool: str, args: Mapping[str, Any], reading: Reading) -> Entry:
    """The entry of a call and its output. Drops argument lines that the output repeats."""
    line, given, omitted = call_line(tool, args)
    text = visible_line(line)
    if given and reading.lines:
        shown = "\n".join(reading.lines)
        new = tuple(line for line in given if line.strip() and line.strip() not in shown)
        given = new if len(new) > 1 or (new and not new[0].endswith(":")) else ()
    return Entry(
        seq=seq,
        speaker="call",
        text=text,
        call=call_json(tool, args),
        given=given,
        lines=reading.lines,
        kind=reading.kind,
        failed=reading.failed,
        omitted=reading.omitted + omitted,
        identifiers=() if _brief(reading.lines) else reading.identifiers,
    )


def _brief(lines: Sequence[str]) -> str:
    return lines[0].strip() if len(lines) == 1 and len(lines[0]) <= BRIEF else ""


def _sentences(text: str) -> tuple[str, ...]:
    """Split a message into sentences, without Markdown markup."""
    lines = (visible_line(_MARKS.sub("", line)).strip() for line in text.replace("**", "").splitlines())
    return tuple(part for line in lines for part in _SENTENCE.split(line) if part)


def clip(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3].rstrip()} … {text[-limit // 3 :].lstrip()}"
