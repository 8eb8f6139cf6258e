"""Extracts words and identifiers from a text, and estimates its tokens."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Sequence
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


class Lexed(NamedTuple):
    """What some lines consist of. Everything that is asked of them in later turns is looked up here."""

    words: list[list[str]]
    """By line, in lower case, with stop words. Names with underscores are also there by part."""
    weights: list[int]
    """By line, as `weigh` returns it."""
    lines: dict[str, list[int]]
    """The lines that contain a word, in order."""
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


def lex(lines: Sequence[str]) -> Lexed:
    """Analyse lines. Works on all of them at once, because every output passes through here."""
    if not lines:
        return Lexed([], [], {}, frozenset(), [])
    text = "\n".join(lines)
    if text.count("\n") >= len(lines):
        return lex([line.replace("\n", " ") for line in lines])
    data = text.encode("ascii", "replace")
    spaced = _spaced(text)
    words = [line.split() for line in spaced.split("\n")]
    if "_" in spaced:
        for found in words:
            if joined := " ".join([word for word in found if "_" in word]):
                found += joined.replace("_", " ").split()
    solid, marks = data.translate(None, _BLANKS).split(b"\n"), data.translate(None, _LETTERS_AND_BLANKS).split(b"\n")
    weights = [len(mark) + (len(ink) - len(mark) + 3) // 4 for ink, mark in zip(solid, marks, strict=True)]
    if "  " in text:
        weights = [weight + ("  " in line) for weight, line in zip(weights, lines, strict=True)]
    return _indexed(words, weights, _humped(data))


def _indexed(words: list[list[str]], weights: list[int], humped: Collection[str]) -> Lexed:
    """Index the lines by word. `humped` are names that lower case does not tell from words."""
    index: dict[str, list[int]] = {}
    fresh = [0] * len(words)
    names = []
    for at, found in enumerate(words):
        for word in found:
            if (lines := index.get(word)) is None:
                index[word] = [at]
                if word in humped or (not word.isalpha() and not word.isdigit() and len(word) > 2):
                    names.append(word)
                    fresh[at] += 1
            elif lines[-1] != at:
                lines.append(at)
    return Lexed(words, weights, index, frozenset(names), fresh)


def _humped(data: bytes) -> Collection[str]:
    """Words with inner capitals, in lower case."""
    if b"aA" not in data.translate(_CASES):
        return ()
    found = set(data.translate(_WORD_OR_SPACE).decode().split())
    return {word.lower() for word in found if not word.islower() and _HUMP.search(word)}
