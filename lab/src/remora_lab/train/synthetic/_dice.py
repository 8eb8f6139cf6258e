"""Seeded random choices for synthetic agents."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import TypeVar

from remora_lab.train.synthetic import _words as words

Item = TypeVar("Item")
Kind = TypeVar("Kind")
UNSEEN = 0.15
"""Share of the nouns, verbs and scenarios that are kept for judging. Scenarios may have any word."""


class Dice:
    """Draws words, names and values. With `unseen`, words and scenarios that are kept for judging."""

    def __init__(self, seed: str, *, unseen: bool = False) -> None:
        self.chance = Random(seed)
        self._unseen = unseen

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    def one(self, items: Sequence[Item]) -> Item:
        return self.chance.choice(items)

    def some(self, items: Sequence[Item], least: int, most: int) -> list[Item]:
        return self.chance.sample(list(items), min(len(items), self.chance.randint(least, most)))

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        return self.chance.sample(list(items), len(items))

    def number(self, low: int, high: int) -> int:
        return self.chance.randint(low, high)

    def noun(self) -> str:
        return self.one(_half(tuple(words.NOUNS), self._unseen))

    def verb(self, among: Sequence[str]) -> str:
        return self.one(_half(tuple(among), self._unseen) or tuple(among))

    def scenario(self, among: Mapping[str, Kind]) -> Kind:
        """One of those by name; with `unseen`, one that is never trained on."""
        return among[self.one(_half(tuple(among), self._unseen))]

    def nonsense(self) -> str:
        return "".join(self.some(words.SYLLABLES, 2, 3))

    def code(self) -> str:
        """A short mark for a thing: a rule code, a number, a name."""
        letters = "".join(self.some("ABCDEFGHJKLMNPQRSTUVWXYZ", 1, 3))
        kinds = (
            f"{letters}{self.number(1, 999):03}",
            f"{letters}-{self.number(1, 99)}",
            f"#{self.number(1, 9999)}",
            f"{self.one(words.ADJECTIVES)}-{self.noun()}",
            f"{self.noun()}_{self.number(1, 40)}",
            self.nonsense(),
        )
        return self.one(kinds)

    def codes(self, least: int, most: int) -> list[str]:
        """Different marks of one kind or of several."""
        return list(dict.fromkeys(self.code() for _ in range(self.number(least, most))))

    def path(self, ending: str = "py") -> str:
        parts = [*self.some(words.FOLDERS, 1, 2), f"{self.noun()}.{ending}"]
        return "/".join(parts)

    def lines(self, least: int, most: int) -> str:
        return "\n".join(self.one(words.CODE_LINES) for _ in range(self.number(least, most)))


@cache
def _half(among: tuple[str, ...], unseen: bool) -> tuple[str, ...]:
    def is_unseen(word: str) -> bool:
        return hashlib.sha256(word.encode()).digest()[0] < 256 * UNSEEN

    return tuple(word for word in among if is_unseen(word) == unseen)
