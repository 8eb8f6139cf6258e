"""Extracts words and identifiers from a text, and estimates its tokens."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_IDENTIFIER = re.compile(r"\b(?:[A-Za-z_]+[0-9]\w*|[0-9]+[A-Za-z_]\w*|[a-z0-9]+[A-Z]\w*|[A-Za-z0-9]+_\w+|_\w+)\b")
_HUMP = re.compile(r"[a-z0-9][A-Z]")
_LETTERS = string.ascii_letters.encode()
_WORD_OR_SPACE = bytes(byte if byte in _LETTERS + b"0123456789_\n" else 32 for byte in range(256))
_LOWER_OR_SPACE = _WORD_OR_SPACE.lower()
_LETTERS_OR_SPACE = bytes(byte if byte in _LETTERS + b"\n" else 32 for byte in range(256))
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


class Lexed(NamedTuple):
    """What some lines consist of."""

    words: list[frozenset[str]]
    """By line, as `words_of` returns them."""
    weights: list[int]
    """By line, as `weigh` returns it."""
    names: set[str]
    """Words that are ids or names in code, in lower case."""

    def of(self, lines: Iterable[int]) -> Lexed:
        """The same for some of the lines."""
        chosen = list(lines)
        return Lexed([self.words[at] for at in chosen], [self.weights[at] for at in chosen], self.names)


def words_of(text: str) -> frozenset[str]:
    """Words for comparing texts, in lower case, without stop words. Names with underscores also count by part."""
    spaced = _spaced(text)
    found = frozenset(spaced.split()) - _IGNORED
    return found.union(_parts(found)) if "_" in spaced else found


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
    """Estimate the tokens of a text: one for a sign, digit, indent or word, and one for every nine letters."""
    data = text.encode("ascii", "replace")
    signs = len(data.translate(None, _LETTERS_AND_BLANKS))
    letters = len(data.translate(None, _BLANKS)) - signs
    return signs + len(data.translate(_LETTERS_OR_SPACE).split()) + letters // 9 + ("  " in text)


def lex(lines: Sequence[str]) -> Lexed:
    """Analyse lines. Works on all of them at once, because every output passes through here."""
    if not lines:
        return Lexed([], [], set())
    text = "\n".join(lines)
    if text.count("\n") >= len(lines):
        return lex([line.replace("\n", " ") for line in lines])
    data = text.encode("ascii", "replace")
    vocabulary = set(data.translate(_WORD_OR_SPACE).decode().split())
    spaced = _spaced(text)
    known = frozenset(map(str.lower, vocabulary) if text.isascii() else spaced.split()) - _IGNORED
    words = [known.intersection(line.split()) for line in spaced.split("\n")]
    if parts := _parts(known):
        for at, line in enumerate(spaced.split("\n")):
            if "_" in line:
                words[at] = words[at].union(parts.intersection(line.replace("_", " ").split()))
    return Lexed(words, _weights(lines, data), _names(vocabulary))


def _weights(lines: Sequence[str], data: bytes) -> list[int]:
    runs = data.translate(_LETTERS_OR_SPACE).split(b"\n")
    solid = data.translate(None, _BLANKS).split(b"\n")
    marks = data.translate(None, _LETTERS_AND_BLANKS).split(b"\n")
    found = []
    for line, run, inked, mark in zip(lines, runs, solid, marks, strict=False):
        signs = len(mark)
        found.append(signs + len(run.split()) + (len(inked) - signs) // 9 + ("  " in line))
    return found


def _names(vocabulary: Iterable[str]) -> set[str]:
    """The words that are ids or names in code, in lower case: with digits, underscores or inner capitals."""
    return {
        word.lower()
        for word in vocabulary
        if (not word.islower() and _HUMP.search(word) if word.isalpha() else not word.isdigit())
    }
