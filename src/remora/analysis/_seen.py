"""Whether the model ever saw a line of raw output: which prompts contain it, and in which part."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from remora.analysis._prompt_parts import PromptPart

LEAST = 4
"""Characters that a line must have to be found in a prompt without doubt."""
LEAST_LETTERS = 8
"""The same for a line that is one word of letters: `safe` or `error` may be there for another reason."""
_SPACES = re.compile(r"\s+")
_AROUND = re.compile(r"^[\s{}\[\],]+|[\s{}\[\],]+$")
_KEY = re.compile(r'^"(?:[^"\\]|\\.)*"\s*:\s*')


@dataclass(frozen=True)
class Sighting:
    """A prompt that contains the line."""

    turn: int
    seq: int
    """The prompt's receipt."""
    part: str
    """The part of the prompt that contains it."""


def words_of(line: str) -> str:
    """What to look for of a line: without indentation, and of a line of JSON only the value."""
    text = _AROUND.sub("", line.strip())
    value = _KEY.sub("", text)
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        value = value[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
    return squeezed(value)


def squeezed(text: str) -> str:
    """The text with every run of white space as one space."""
    return _SPACES.sub(" ", text).strip()


class Shown:
    """What one prompt showed, ready to be searched."""

    def __init__(self, parts: Iterable[PromptPart]) -> None:
        self._texts = [
            (part.name, squeezed("\n".join(f"{item.label} {item.text}" for item in part.items)))
            for part in parts
            if part.name != "system"
        ]

    def part_with(self, words: str) -> str:
        """The part that contains these words; empty if none does, or if there are too few to tell."""
        if not is_telling(words):
            return ""
        return next((name for name, text in self._texts if _contains(text, words)), "")


def is_telling(words: str) -> bool:
    """Whether these words are enough to be found in a prompt without doubt."""
    return len(words) >= (LEAST_LETTERS if words.isalpha() else LEAST)


def _contains(text: str, words: str) -> bool:
    """Whether the text contains the words, not as a part of longer ones."""
    at = text.find(words)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(words) : at + len(words) + 1]
        if not (_joins(before, words[0]) or _joins(words[-1], after)):
            return True
        at = text.find(words, at + 1)
    return False


def _joins(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum()
