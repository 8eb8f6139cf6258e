"""Row 6: a stream with one bit flipped at a time, and what `verify` and reading make of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from remora.errors import TraceDamaged
from remora.trace import read_events, verify


@dataclass
class Flips:
    """What came of them."""

    tried: int = 0
    missed: int = 0
    misnamed: int = 0
    """Detected, and another `seq` named than the one that was flipped."""
    read_on: int = 0
    """Read to the end as if nothing had happened."""


def flip_bits(path: Path, bits: Iterable[int], *, reading: bool = False) -> Flips:
    """Each of these bits of each byte flipped once. The stream is as it was afterwards."""
    whole, head, flips = path.read_bytes(), verify(path).head, Flips()
    last, bits = whole.rindex(b"\n", 0, -1), tuple(bits)
    with path.open("r+b", buffering=0) as file:
        for place, byte in enumerate(whole):
            seq = whole.count(b"\n", 0, place)
            for bit in bits:
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)
                report = verify(path, head=head)
                flips.tried += 1
                flips.missed += report.status != "damaged"
                flips.misnamed += report.status == "damaged" and report.seq != seq
                # No head is known while reading, so nothing vouches for the content of the very last line.
                flips.read_on += reading and place <= last and not _stops(path)
            os.pwrite(file.fileno(), bytes([byte]), place)
    return flips


def _stops(path: Path) -> bool:
    try:
        for _ in read_events(path):
            pass
    except TraceDamaged:
        return True
    return False
