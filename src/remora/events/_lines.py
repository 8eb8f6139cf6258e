"""The format number, digests and timestamps: all that is needed to check lines without parsing them."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

FORMAT = 1


def timestamp(moment: datetime) -> str:
    """The moment in the format of records: UTC, always with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def digest(data: bytes) -> str:
    """The SHA-256 of the bytes, prefixed with the algorithm."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
