"""Extracts words and identifiers from a text, and estimates its tokens."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import NamedTuple

_IDENTIFIER = re.compile(r"\b(?:[A-Za-z_]+[0-9]\w*|[0-9]+[A-Za-z_]\w*|[a-z0-9]+[A-Z]\w*|[A-Za-z0-9]+_\w+|_\w+)\b")
_HUMP = re.compile(r"[a-z0-9][A-Z]")
_LETTERS = string.ascii_letters.encode()
_WORD_OR_SPACE = bytes(byte if byte in _LETTERS + b"0123456789_\n" else 32 for byte in range(256))
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
    """What one line consists of."""

    words: frozenset[str]
    """As `words_of` returns them."""
    names: frozenset[str]
    """Words that are ids or names in code, in lower case."""
    weight: int
    """As `weigh` returns it."""


def words_of(text: str) -> frozenset[str]:
    """Words for comparing texts, in lower case, without stop words. Names with underscores also count by part."""
    return _words(text.lower().encode("ascii", "replace").translate(_WORD_OR_SPACE).decode())


def _words(spaced: str) -> frozenset[str]:
    found = frozenset(spaced.split()) - _IGNORED
    if "_" in spaced:
        parts = [part for word in found if "_" in word for part in word.split("_") if len(part) > 2]
        found = found.union(parts) - COMMON
    return found


def is_identifier(text: str) -> bool:
    """Whether the whole text is one identifier."""
    return _IDENTIFIER.fullmatch(text) is not None


def weigh(text: str) -> int:
    """Estimate the tokens of a text: one for a sign, digit, indent or word, and one for every nine letters."""
    data = text.encode("ascii", "replace")
    signs = len(data.translate(None, _LETTERS_AND_BLANKS))
    letters = len(data.translate(None, _BLANKS)) - signs
    return signs + len(data.translate(_LETTERS_OR_SPACE).split()) + letters // 9 + ("  " in text)


def lex(lines: Sequence[str]) -> list[Lexed]:
    """Analyse lines. Works on all of them at once, because every output passes through here."""
    text = "\n".join(lines)
    data = text.encode("ascii", "replace")
    lower = text.lower().encode("ascii", "replace").translate(_WORD_OR_SPACE).decode().split("\n")
    if len(lower) != len(lines):
        return [each for line in lines for each in lex([line.replace("\n", " ")])]
    spaced = data.translate(_LETTERS_OR_SPACE).split(b"\n")
    solid = data.translate(None, _BLANKS).split(b"\n")
    marks = data.translate(None, _LETTERS_AND_BLANKS).split(b"\n")
    special = _names(text)
    found = []
    for line, low, letters, inked, mark in zip(lines, lower, spaced, solid, marks, strict=True):
        words, signs = _words(low), len(mark)
        weight = signs + len(letters.split()) + (len(inked) - signs) // 9 + ("  " in line)
        found.append(Lexed(words, words & special, weight))
    return found


def _names(text: str) -> set[str]:
    """Words of a text that are ids or names in code, in lower case: with digits, underscores or inner capitals."""
    words = set(text.encode("ascii", "replace").translate(_WORD_OR_SPACE).decode().split())
    return {
        word.lower()
        for word in words
        if (not word.islower() and _HUMP.search(word)) or (not word.isalpha() and not word.isdigit())
    }
