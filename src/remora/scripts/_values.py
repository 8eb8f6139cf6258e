"""What may cross between a script and its host: JSON values within bounds, checked before anyone relies on them."""

from __future__ import annotations

import math
from typing import Any

MAX_DEPTH = 64
MAX_BYTES = 8 * 1024 * 1024
MAX_INT = 2**63


class NotPlain(ValueError):
    """The value is not plain JSON, or exceeds a bound; the message names the place."""


def plain(value: Any) -> Any:
    """`value` as JSON has it, tuples as lists. Raises `NotPlain` naming the place of what JSON cannot hold."""
    return _Walk().plain(value, "$", 0)


class _Walk:
    """One walk over a value. Counts while it goes, so a small value that repeats itself endlessly is stopped early."""

    def __init__(self) -> None:
        self.size = 0

    def plain(self, value: Any, place: str, depth: int) -> Any:
        self.count(8, place)
        match value:
            case None | bool():
                return value
            case str():
                return self.text(value, place)
            case int():
                return self.integer(value, place)
            case float():
                if not math.isfinite(value):
                    raise NotPlain(f"{place}: {value} is not a JSON number")
                return value
            case list() | tuple() | dict():
                return self.container(value, place, depth + 1)
        raise NotPlain(f"{place}: a `{type(value).__name__}` is not a JSON value")

    def container(self, value: Any, place: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotPlain(f"{_short(place)}: nested deeper than {MAX_DEPTH}")
        if isinstance(value, dict):
            return {self.key(key, place): self.plain(item, f"{place}.{key}", depth) for key, item in value.items()}
        return [self.plain(item, f"{place}[{index}]", depth) for index, item in enumerate(value)]

    def key(self, key: Any, place: str) -> str:
        if not isinstance(key, str):
            raise NotPlain(f"{_short(place)}: key {str(key)[:40]} is a `{type(key).__name__}`: expected a string")
        return self.text(key, place)

    def text(self, value: str, place: str) -> str:
        self.count(len(value), place)
        try:
            self.count(len(value.encode()) - len(value), place)
        except UnicodeEncodeError:
            raise NotPlain(f"{_short(place)}: holds a lone surrogate, which is not text") from None
        return value

    def integer(self, value: int, place: str) -> int:
        if not -MAX_INT <= value < MAX_INT:
            raise NotPlain(f"{_short(place)}: an integer of more than 64 bits")
        return value

    def count(self, size: int, place: str) -> None:
        self.size += size
        if self.size > MAX_BYTES:
            raise NotPlain(f"{_short(place)}: larger than {MAX_BYTES // 1024 // 1024} MB in all")


def _short(place: str) -> str:
    return place if len(place) <= 120 else place[:117] + "…"
