"""Ids of runs, agents and accepts: 26 characters (the ULID layout) that sort in the order in which they were created.

48 bits   milliseconds since 1970, or one more than in the last id if the clock is behind that
45 bits   random; for the agents of one run, counted up from the run's own
35 bits   random: the 7 characters that people read and type
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 26
_RANDOM_BITS = 80
SHORT = 7
_SHORT_BITS = 5 * SHORT
_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)


def new_id(now: datetime, entropy: bytes | None = None) -> str:
    """A new id: 48 bits of milliseconds, then 80 random bits. Safe as a file name on every platform."""
    return _encoded(_milliseconds(now) << _RANDOM_BITS | int.from_bytes(entropy or os.urandom(10), "big"))


def next_id(now: datetime, after: str) -> str:
    """A new id that sorts after `after`, even if the clock was set back. Ignores an `after` that is not our id."""
    least = _decoded(after) >> _RANDOM_BITS if is_id(after) else -1
    at = min(max(_milliseconds(now), least + 1), _LAST_MS)
    return _encoded(at << _RANDOM_BITS | int.from_bytes(os.urandom(10), "big"))


def ids_behind(id_: str) -> Iterator[str]:
    """Endless new ids: each sorts after the one before, the first after `id_`, and all before the next of `next_id`.

    They count up within the millisecond of `id_`, so that a later run sorts after all of them, used or not.
    """
    for number in count((_decoded(id_) >> _SHORT_BITS) + 1):
        yield _encoded(number << _SHORT_BITS | int.from_bytes(os.urandom(5), "big") >> 5)


def is_id(text: str) -> bool:
    """Whether Remora can have created this id. Ids beyond the year 9999 are rejected."""
    return len(text) == _LENGTH and text[:10] <= _LAST and _ID.fullmatch(text) is not None


def order_of(name: str, ts: str = "") -> str:
    """The sort key of a name: the name if it is an id, else the time `ts`, else before all ids."""
    if is_id(name):
        return name
    try:
        moment = datetime.fromisoformat(ts)
        return new_id(moment if moment.tzinfo else moment.replace(tzinfo=UTC), bytes(10))
    except (ValueError, OverflowError):
        return ""


def short_id(id_: str) -> str:
    """The random end of an id, which people read and type."""
    return id_[-SHORT:]


def _milliseconds(now: datetime) -> int:
    return max(int(now.timestamp() * 1000), 0)


def _encoded(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def _decoded(id_: str) -> int:
    number = 0
    for letter in id_:
        number = number << 5 | _ALPHABET.index(letter)
    return number


_LAST_MS = _milliseconds(datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC))
_LAST = _encoded(_LAST_MS << _RANDOM_BITS)[:10]
