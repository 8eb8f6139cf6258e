"""Values that may pass between a script and its host: JSON within limits, checked before use."""

from __future__ import annotations

import math
import sys
from typing import Any

MAX_DEPTH = 64
MAX_OUT = 4 * 1024 * 1024 + 64 * 1024
"""Bytes that may leave a script at once: one text of the largest size, plus something around it."""
MAX_IN = 16 * 1024 * 1024
MAX_INT = 2**63

VALUE, CONTAINER, ENTRY = 16, 64, 32
"""Size of a value beside its text, of a container beside its entries, and of an entry: about their memory use."""

_PIECE = 64 * 1024


class NotPlain(ValueError):
    """The value is not plain JSON, or exceeds a limit. The message begins with the place."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(f"${place}: {what}")
        self.what = what
        self.place = place

    def inside(self, step: str) -> NotPlain:
        """The same problem, with the place seen from one level further out."""
        # A lone surrogate cannot be part of an error's text.
        return NotPlain(self.what, (step + self.place)[:120].encode(errors="replace").decode())


def plain(value: Any, limit: int = MAX_OUT) -> Any:
    """`value` as JSON has it, with tuples as lists. Raises `NotPlain` naming the place of a value that is not JSON."""
    return value if _is_plain(value, limit) else _Walk(limit).plain(value, 0)


def measure(value: Any) -> int:
    """Approximate memory size of a plain value in bytes."""
    total = 0
    level = [value]
    while level:
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, str):
                total += sys.getsizeof(item)
            elif isinstance(item, dict):
                total += CONTAINER + ENTRY * len(item) + sum(map(sys.getsizeof, item))
                deeper += item.values()
            elif isinstance(item, list):
                total += CONTAINER + ENTRY * len(item)
                deeper += item
            else:
                total += VALUE
        level = deeper
    return total


def _is_plain(value: Any, room: int) -> bool:
    """Whether it is JSON within limits as it is. Fast path: most values are, and a full walk takes far longer."""
    level = [value]
    for _ in range(MAX_DEPTH):
        room -= VALUE * len(level)
        texts: list[Any] = []
        deeper: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                texts.append(item)
            elif kind is dict or kind is list:
                room -= CONTAINER + ENTRY * len(item)
                if room < 0:
                    return False
                texts += item if kind is dict else ()
                deeper += item.values() if kind is dict else item
            elif not (kind is int and -MAX_INT <= item < MAX_INT) and not _is_simple(item):
                return False
        if not _are_texts(texts):
            return False
        room -= sum(map(len, texts))
        level = deeper
    return room >= 0 and not level


def _is_simple(value: Any) -> bool:
    return value is None or type(value) is bool or (type(value) is float and math.isfinite(value))


def _are_texts(values: list[Any]) -> bool:
    return {str}.issuperset(map(type, values)) and (all(map(str.isascii, values)) or all(map(_is_text, values)))


def _is_text(value: str) -> bool:
    try:
        # In pieces, to avoid copying a large text.
        for start in range(0, len(value), _PIECE):
            value[start : start + _PIECE].encode()
    except UnicodeEncodeError:
        return False
    return True


class _Walk:
    """One walk over a value.

    It counts as it goes, so a small value that contains itself repeatedly is stopped early.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.room = limit

    def plain(self, value: Any, depth: int) -> Any:
        self.count(VALUE)
        match value:
            case str():
                return self.text(value)
            case None | bool():
                return value
            case int():
                if not -MAX_INT <= value < MAX_INT:
                    raise NotPlain("an integer of more than 64 bits")
                return value
            case float():
                if not math.isfinite(value):
                    raise NotPlain(f"{value} is not a JSON number")
                return value
            case list() | tuple() | dict():
                return self.container(value, depth + 1)
        raise NotPlain(f"a `{type(value).__name__}` is not a JSON value")

    def container(self, value: list[Any] | tuple[Any, ...] | dict[Any, Any], depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotPlain(f"nested deeper than {MAX_DEPTH}")
        self.count(CONTAINER + ENTRY * len(value))
        return self.record(value, depth) if isinstance(value, dict) else self.series(value, depth)

    def record(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotPlain(f"a key is a `{type(key).__name__}`: expected text")
            try:
                converted[self.text(key)] = self.plain(item, depth)
            except NotPlain as error:
                raise error.inside(f".{key:.80}") from None
        return converted

    def series(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        converted: list[Any] = []
        try:
            for item in value:
                converted.append(self.plain(item, depth))  # noqa: PERF401 - the length is the place of the error
        except NotPlain as error:
            raise error.inside(f"[{len(converted)}]") from None
        return converted

    def text(self, value: str) -> str:
        self.count(len(value))
        if not (value.isascii() or _is_text(value)):
            raise NotPlain("contains a lone surrogate, which is not valid text")
        return value

    def count(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            raise NotPlain(f"larger than {self.limit // 1024 // 1024} MB in all")
