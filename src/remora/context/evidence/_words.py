"""Extracts words and identifiers from a text, and estimates its tokens."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Sequence
from itertools import filterfalse
from typing import NamedTuple

_IDENTIFIER = re.compile(r"\b(?:[A-Za-z_]+[0-9]\w*|[0-9]+[A-Za-z_]\w*|[a-z0-9]+[A-Z]\w*|[A-Za-z0-9]+_\w+|_\w+)\b")
_HUMP = re.compile(r"[a-z0-9][A-Z]")
_LETTERS = string.ascii_letters.encode()
_WORD_OR_SPACE = bytes(byte if byte in _LETTERS + b"0123456789_\n" else 32 for byte in range(256))
_LOWER_OR_SPACE = _WORD_OR_SPACE.lower()
_LOWER, _UPPER = string.ascii_lowercase.encode() + string.digits.encode(), string.ascii_uppercase.encode()
_CASES = bytes(97 if byte in _LOWER else 65 if byte in _UPPER else 32 for byte in range(256))
_BLANKS = b" \t\v\f\r"
_LETTERS_AND_BLANKS = _LETTERS + _BLANKS
_COMMON = (
    "the and for are was were with that this from have has had not but you your can will would should all any one",
    "two its our out what when which who how then than them they there here into also more some such only just",
    "been being did does done use used using get let see now new yes may please like need want sure thank thanks",
    "help could about",
)
COMMON = frozenset(word for line in _COMMON for word in line.split())
"""Stop words: too common to show that two texts are related."""
_SIGNS = string.ascii_lowercase + string.digits + "_"
_SHORT = (one + two for one in ("", *_SIGNS) for two in _SIGNS)
_IGNORED = COMMON.union(word for word in _SHORT if len(word) < 2 or not word.isdigit())
"""Stop words, and all words that are shorter than three signs, except numbers of two digits."""


class Split(NamedTuple):
    """Lines as words and estimated tokens."""

    words: list[str]
    """By line, in lower case, with stop words and blanks between. Names with underscores are also there by part."""
    weights: list[int]
    """By line, as `weigh` returns it."""

    def only(self, lines: Sequence[int]) -> Split:
        """Of these lines alone."""
        return Split([self.words[at] for at in lines], [self.weights[at] for at in lines])


class Index(NamedTuple):
    """Where the words of some lines are. Everything that is asked of the lines in later turns is looked up here.

    Most words are in one line alone. A list for each would keep the garbage collector busy.
    """

    first: dict[str, int]
    """The first line that contains a word."""
    later: dict[str, list[int]]
    """The other lines that contain it, in order, if there are any."""
    names: frozenset[str]
    """Words that are ids or names in code."""
    fresh: list[int]
    """By line: how many names no earlier line contains."""


def words_of(text: str) -> frozenset[str]:
    """Words for comparing texts, in lower case, without stop words. Names with underscores also count by part."""
    spaced = _spaced(text)
    found = frozenset(spaced.split()) - _IGNORED
    return found.union(_parts(found)) if "_" in spaced else found


def all_words(text: str) -> list[str]:
    """All words of a text in order, in lower case, with stop words."""
    return _spaced(text).split()


def _spaced(text: str) -> str:
    """The text in lower case, with a space for everything but words and line breaks."""
    if text.isascii():
        return text.encode().translate(_LOWER_OR_SPACE).decode()
    return text.lower().encode("ascii", "replace").translate(_WORD_OR_SPACE).decode()


def _parts(words: Iterable[str]) -> set[str]:
    """The parts of names with underscores, without stop words."""
    parts = " ".join([word for word in words if "_" in word]).replace("_", " ").split()
    return {part for part in parts if len(part) > 2} - COMMON


def is_identifier(text: str) -> bool:
    """Whether the whole text is one identifier."""
    return _IDENTIFIER.fullmatch(text) is not None


def weigh(text: str) -> int:
    """Estimate the tokens of a text: one for a sign, digit or indent, and one for every four letters."""
    data = text.encode("ascii", "replace")
    signs = len(data.translate(None, _LETTERS_AND_BLANKS))
    return signs + (len(data.translate(None, _BLANKS)) - signs + 3) // 4 + ("  " in text)


def split(lines: Sequence[str]) -> Split:
    """Split lines into words. Works on all of them at once, because every output passes through here."""
    if not lines:
        return Split([], [])
    text = "\n".join(lines)
    if text.count("\n") >= len(lines):
        return split([line.replace("\n", " ") for line in lines])
    data = text.encode("ascii", "replace")
    spaced = _spaced(text)
    words = spaced.split("\n")
    if "_" in spaced:
        words = [f"{line} {line.replace('_', ' ')}" if "_" in line else line for line in words]
    solid = data.translate(None, _BLANKS)
    marks = solid.translate(None, _LETTERS)
    sizes = zip(map(len, solid.split(b"\n")), map(len, marks.split(b"\n")), strict=True)
    weights = [signs + (size - signs + 3) // 4 for size, signs in sizes]
    if "  " in text:
        weights = [weight + ("  " in line) for weight, line in zip(weights, lines, strict=True)]
    return Split(words, weights)


def index(lines: Sequence[str], words: Sequence[str]) -> Index:
    """Index lines by their words, as `split` returns them."""
    first: dict[str, int] = {}
    later: dict[str, list[int]] = {}
    place = first.setdefault
    for at, line in enumerate(words):
        for word in set(line.split()):
            if place(word, at) == at:
                continue
            if (places := later.get(word)) is None:
                later[word] = [at]
            else:
                places.append(at)
    humped = _humped("\n".join(lines).encode("ascii", "replace"))
    names = [word for word in filterfalse(str.isalpha, first) if not word.isdigit() and len(word) > 2]
    names += [word for word in humped if word in first and (word.isalpha() or len(word) <= 2)]
    fresh = [0] * len(words)
    for name in names:
        fresh[first[name]] += 1
    return Index(first, later, frozenset(names), fresh)


def _humped(data: bytes) -> Collection[str]:
    """Words with inner capitals, in lower case."""
    if b"aA" not in data.translate(_CASES):
        return ()
    found = set(data.translate(_WORD_OR_SPACE).decode().split())
    return {word.lower() for word in found if not word.islower() and _HUMP.search(word)}
