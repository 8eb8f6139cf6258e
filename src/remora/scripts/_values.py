"""What may cross between a script and its host: JSON values within bounds, checked before anyone relies on them."""

from __future__ import annotations

import math
from typing import Any

MAX_DEPTH = 64
MAX_OUT = 4 * 1024 * 1024 + 64 * 1024
"""What may leave a script at once: one text as large as a host function takes, and something around it."""
MAX_IN = 16 * 1024 * 1024
MAX_INT = 2**63

VALUE, CONTAINER, ENTRY = 16, 64, 32
"""What a value counts beside its text, and a container beside its entries: about what they take in our memory."""

_PIECE = 64 * 1024


class NotPlain(ValueError):
    """The value is not plain JSON, or exceeds a bound; the message names the place."""


def plain(value: Any, limit: int = MAX_OUT) -> Any:
    """`value` as JSON has it, tuples as lists. Raises `NotPlain` naming the place of what JSON cannot hold."""
    return _Walk(limit).plain(value, "$", 0)


class _Walk:
    """One walk over a value. Counts while it goes, so a small value that repeats itself endlessly is stopped early."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0

    def plain(self, value: Any, place: str, depth: int) -> Any:
        self.count(VALUE, place)
        match value:
            case None | bool():
                return value
            case str():
                return self.text(value, place)
            case int():
                return self.integer(value, place)
            case float():
                if not math.isfinite(value):
                    raise NotPlain(f"{_short(place)}: {value} is not a JSON number")
                return value
            case list() | tuple() | dict():
                return self.container(value, place, depth + 1)
        raise NotPlain(f"{_short(place)}: a `{type(value).__name__}` is not a JSON value")

    def container(self, value: Any, place: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotPlain(f"{_short(place)}: nested deeper than {MAX_DEPTH}")
        self.count(CONTAINER + ENTRY * len(value), place)
        if isinstance(value, dict):
            pairs = ((self.key(key, place), item) for key, item in value.items())
            return {key: self.plain(item, f"{place}.{key:.80}", depth) for key, item in pairs}
        return [self.plain(item, f"{place}[{index}]", depth) for index, item in enumerate(value)]

    def key(self, key: Any, place: str) -> str:
        if not isinstance(key, str):
            raise NotPlain(f"{_short(place)}: a key is a `{type(key).__name__}`: expected a string")
        return self.text(key, place)

    def text(self, value: str, place: str) -> str:
        self.count(len(value), place)
        if not value.isascii():
            try:
                # In pieces: a whole copy of a large text is not needed to know that it is text.
                for start in range(0, len(value), _PIECE):
                    value[start : start + _PIECE].encode()
            except UnicodeEncodeError:
                raise NotPlain(f"{_short(place)}: holds a lone surrogate, which is not text") from None
        return value

    def integer(self, value: int, place: str) -> int:
        if not -MAX_INT <= value < MAX_INT:
            raise NotPlain(f"{_short(place)}: an integer of more than 64 bits")
        return value

    def count(self, size: int, place: str) -> None:
        self.size += size
        if self.size > self.limit:
            raise NotPlain(f"{_short(place)}: larger than {self.limit // 1024 // 1024} MB in all")


def _short(place: str) -> str:
    # What a lone surrogate stands in cannot be told in an error's text.
    return place[:120].encode(errors="replace").decode()
