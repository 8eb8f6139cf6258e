"""Ids of runs and agents: 26 characters, sortable by the time they were made (the ULID layout)."""

from __future__ import annotations

import os
from datetime import datetime

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
SHORT = 7


def new_id(now: datetime, entropy: bytes | None = None) -> str:
    """A fresh id: 48 bits of milliseconds, then 80 random bits. Safe as a file name on every platform."""
    number = int(now.timestamp() * 1000) << 80 | int.from_bytes(entropy or os.urandom(10), "big")
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def short_id(id_: str) -> str:
    """The end of an id, where its random bits are: what people read and type."""
    return id_[-SHORT:]
