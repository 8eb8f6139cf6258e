"""What a reader needs to check lines without parsing them: the format number, digests, timestamps."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

FORMAT = 1


def timestamp(moment: datetime) -> str:
    """The moment as records hold it: UTC, always six digits of a second."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def digest(data: bytes) -> str:
    """The SHA-256 of the bytes, with the algorithm in its prefix."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
