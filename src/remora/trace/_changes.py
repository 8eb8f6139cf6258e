"""Where a run stands, without making typed events of all that led there.

Most of a stream is prompts, answers and calls, which change nothing in the packet. Their lines are checked by the
chain, as all are, and not parsed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import orjson

from remora.errors import TraceDamaged, TraceError
from remora.events import Change, Event, change_of
from remora.trace._reader import read_records
from remora.trace._skim import Skim

_STARTS = b'_start"'
"""The end of the names of `agent_start` and `turn_start`, which are folded without a delta."""
_TYPE_AT = (50, 90)
"""The bytes of a line among which its type stands: searching them is cheaper than cutting them out."""


def read_changes(path: Path, to: int | None = None) -> Iterator[Change | Event]:
    """What of a stream can change a packet, oldest first, until the first change of a turn after `to`.

    Every line is checked against the one before it. Raises `TraceDamaged` at the first damage, after all that is
    intact. Folding these gives the packet that folding `read_events` gives.
    """
    last = sys.maxsize if to is None else to
    skim, seq = Skim(path), 0
    for lines in skim:
        for number, line in enumerate(lines, start=seq):
            if b'"delta"' in line or line.find(_STARTS, *_TYPE_AT) >= 0:
                change = _read(path, number, line)
                if change.turn > last:
                    return
                yield change
        seq += len(lines)
    # The last line, and all from the first one on that our own writer would not have written: with every check there
    # is, which names the damage.
    rest = (_read(path, record.seq, record.raw) for record in read_records(path, start=skim.here))
    yield from takewhile(lambda change: change.turn <= last, rest)


def _read(path: Path, seq: int, line: bytes) -> Change | Event:
    try:
        return change_of(orjson.loads(line))
    except (orjson.JSONDecodeError, TraceError) as error:
        raise TraceDamaged(path, line=seq + 1, seq=seq, problem=str(error)) from error
