"""Where a run stands, without making typed events of all that led there.

Most of a stream is prompts, answers and calls, which change nothing in the packet. Their lines are checked by the
chain, as all are, and not parsed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from itertools import takewhile
from pathlib import Path

import orjson

from remora.errors import TraceDamaged, TraceError
from remora.events import Change, Event, change_of
from remora.trace._lines import SEAL
from remora.trace._reader import Position, read_lines, read_records

_TYPE = b'","type":"'
_TS = len("2026-11-15T18:20:45.123456Z")
_FOLDED = (b'agent_start"', b'turn_start"')
_SEAL = SEAL.encode() + b'"'


def read_changes(path: Path, to: int | None = None) -> Iterator[Change | Event]:
    """What of a stream can change a packet, oldest first, until the first change of a turn after `to`.

    Every line is checked against the one before it. Raises `TraceDamaged` at the first damage, after all that is
    intact. Folding these gives the packet that folding `read_events` gives.
    """
    changes = _all_changes(path)
    return changes if to is None else takewhile(lambda change: change.turn <= to, changes)


def _all_changes(path: Path) -> Iterator[Change | Event]:
    rest = yield from _confirmed(path)
    # The last line, and all from the first one on that our own writer would not have written: with every check there
    # is, which names the damage.
    for record in read_records(path, start=rest):
        yield _read(path, record.seq, record.raw)


def _confirmed(path: Path) -> Generator[Change | Event, None, Position]:
    """Changes of lines in the writer's own form that the next line confirms; gives the place of the first other."""
    held, kind, start, before = b"", 0, 0, None
    seq, offset, prev, back = 0, 0, None, b',"prev":null}\n'
    for line in read_lines(path):
        front = b'{"v":1,"seq":%d,"ts":"' % seq
        ours = line.startswith(front) and line.endswith(back) and line.startswith(_TYPE, len(front) + _TS)
        if not ours or held.startswith(_SEAL, kind):
            break
        if b'"delta"' in held or held.startswith(_FOLDED, kind):
            yield _read(path, seq - 1, held)
        held, kind, start, before = line, len(front) + _TS + len(_TYPE), offset, prev
        prev = hashlib.sha256(line[:-1]).hexdigest()
        seq, offset, back = seq + 1, offset + len(line), b',"prev":"sha256:%b"}\n' % prev.encode()
    return Position(max(0, seq - 1), start, before and f"sha256:{before}")


def _read(path: Path, seq: int, line: bytes) -> Change | Event:
    try:
        return change_of(orjson.loads(line))
    except (orjson.JSONDecodeError, TraceError) as error:
        raise TraceDamaged(path, line=seq + 1, seq=seq, problem=str(error)) from error
