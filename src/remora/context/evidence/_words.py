"""Extracts words and identifiers from a text, and estimates its tokens."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z0-9_]{3,}|(?<![a-z0-9_])[0-9]{2}(?![a-z0-9_])")
_IDENTIFIER = re.compile(r"\b(?:[A-Za-z_]+[0-9]\w*|[0-9]+[A-Za-z_]\w*|[a-z0-9]+[A-Z]\w*|[A-Za-z0-9]+_\w+|_\w+)\b")
_TOKEN = re.compile(r"[A-Za-z]{1,6}|[^A-Za-z\s]|\n|  +")

_COMMON = (
    "the and for are was were with that this from have has had not but you your can will would should all any one",
    "two its our out what when which who how then than them they there here into also more some such only just",
    "been being did does done use used using get let see now new yes may please like need want sure thank thanks",
    "help could about",
)
COMMON = frozenset(word for line in _COMMON for word in line.split())
"""Stop words: too common to show that two texts are related."""


def words_of(text: str) -> frozenset[str]:
    """Words for comparing texts, in lower case, without stop words. Names with underscores also count by part."""
    found = set(_WORD.findall(text.lower()))
    if "_" in text:
        found.update([part for word in found if "_" in word for part in word.split("_") if len(part) > 2])
    return frozenset(found - COMMON)


def identifiers_in(text: str) -> set[str]:
    """Identifiers, such as ids and names in code, in lower case like `words_of`."""
    return {name.lower() for name in _IDENTIFIER.findall(text) if len(name) > 2}


def is_identifier(text: str) -> bool:
    """Whether the whole text is one identifier."""
    return _IDENTIFIER.fullmatch(text) is not None


def weigh(text: str) -> int:
    """Estimate the tokens of a text: one for a sign or digit, one for every six letters of a word."""
    return len(_TOKEN.findall(text))
