"""Extracts words and identifiers from a text, and estimates its tokens."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_IDENTIFIER = re.compile(r"\b(?:[A-Za-z_]+[0-9]\w*|[0-9]+[A-Za-z_]\w*|[a-z0-9]+[A-Z]\w*|[A-Za-z0-9]+_\w+|_\w+)\b")
_HUMP = re.compile(r"[a-z0-9][A-Z]")
_NAME = re.compile(r"\w+")
_LETTERS = string.ascii_letters.encode()
_WORD_OR_SPACE = bytes(byte if byte in _LETTERS + b"0123456789_\n" else 32 for byte in range(256))
_LETTERS_OR_SPACE = bytes(byte if byte in _LETTERS + b"\n" else 32 for byte in range(256))
_LETTERS_AND_BLANKS = _LETTERS + b" \t\v\f\r"

_COMMON = (
    "the and for are was were with that this from have has had not but you your can will would should all any one",
    "two its our out what when which who how then than them they there here into also more some such only just",
    "been being did does done use used using get let see now new yes may please like need want sure thank thanks",
    "help could about",
)
COMMON = frozenset(word for line in _COMMON for word in line.split())
"""Stop words: too common to show that two texts are related."""


class Lexed(NamedTuple):
    """What one line consists of."""

    words: frozenset[str]
    """As `words_of` returns them."""
    identifiers: list[str]
    """Words that are ids or names in code, in lower case."""
    weight: int
    """As `weigh` returns it."""


def words_of(text: str) -> frozenset[str]:
    """Words for comparing texts, in lower case, without stop words. Names with underscores also count by part."""
    return _words(text.lower().encode("ascii", "replace").translate(_WORD_OR_SPACE).decode())


def _words(spaced: str) -> frozenset[str]:
    found = {word for word in spaced.split() if len(word) > 2 or (len(word) == 2 and word.isdigit())}
    if "_" in spaced:
        found.update([part for word in found if "_" in word for part in word.split("_") if len(part) > 2])
    return frozenset(found - COMMON)


def is_identifier(text: str) -> bool:
    """Whether the whole text is one identifier."""
    return _IDENTIFIER.fullmatch(text) is not None


def weigh(text: str) -> int:
    """Estimate the tokens of a text: one for a sign, digit or indent, one for every six letters of a word."""
    data = text.encode("ascii", "replace")
    return _weigh(data.translate(_LETTERS_OR_SPACE), data.translate(None, _LETTERS_AND_BLANKS), text)


def _weigh(spaced: bytes, signs: bytes, text: str) -> int:
    return len(signs) + sum([-(-len(word) // 6) for word in spaced.split()]) + ("  " in text)


def lex(lines: Sequence[str]) -> list[Lexed]:
    """Analyse lines. Works on all of them at once, because every output passes through here."""
    text = "\n".join(lines)
    data = text.encode("ascii", "replace")
    lower = text.lower().encode("ascii", "replace").translate(_WORD_OR_SPACE).decode().split("\n")
    if len(lower) != len(lines):
        return [each for line in lines for each in lex([line.replace("\n", " ")])]
    spaced = data.translate(_LETTERS_OR_SPACE).split(b"\n")
    signs = data.translate(None, _LETTERS_AND_BLANKS).split(b"\n")
    return [
        Lexed(words := _words(low), _identifiers(words, line), _weigh(letters, marks, line))
        for line, low, letters, marks in zip(lines, lower, spaced, signs, strict=True)
    ]


def _identifiers(words: Iterable[str], line: str) -> list[str]:
    found = [word for word in words if not word.isalpha() and not word.isdigit()]
    if _HUMP.search(line):
        found += [name.lower() for name in _NAME.findall(line) if _HUMP.search(name)]
    return found
