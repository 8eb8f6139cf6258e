"""`verify`: what can be said about one stream file, without believing any of it.

Every line is hashed as it lies on the disk and held against the next line's `prev`. Only the first and the last line
are parsed, the last because no later line vouches for it. A head known from outside (an agent's head stands in its
run's stream) also covers that last line, and shows a dropped or rewritten tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from remora.errors import TraceDamaged, TraceError
from remora.trace._lines import MAX_LINE, SEAL, StreamKind
from remora.trace._parse import parse
from remora.trace._reader import Position, Record, after, read_lines, read_records
from remora.trace._skim import skim


@dataclass(frozen=True)
class StreamReport:
    """The state of one stream file."""

    file: Path
    kind: StreamKind
    events: int
    """How many records from the first on are intact."""
    bytes: int
    """How many bytes these take."""
    head: str
    """The digest of the last of them; empty if there is none."""
    sealed: bool
    """Whether the last of them ends the stream. A run's stream has no such end."""
    status: Literal["sealed", "unsealed", "damaged"]
    problem: str | None = None
    line: int | None = None
    """1-based, of the first damage."""
    seq: int | None = None


def verify(path: Path, *, head: str | None = None) -> StreamReport:
    """What holds of the stream at `path`, whose last line should have the digest `head`. Raises `TraceNotFound`."""
    here, last = skim(path), None
    damage: TraceDamaged | None = None
    try:
        for last in read_records(path, start=here, head=head, quick=True):
            here = after(last)
    except TraceDamaged as error:
        damage = error
    if damage is None and head is not None and here.prev != head:
        damage = _other_head(path, last, head)
    return _report(path, here, last, damage)


def unreadable(path: Path, problem: str) -> StreamReport:
    """The report of a stream of which nothing can be read."""
    kind: StreamKind = "runs" if path.parent.name == "runs" else "traces"
    return StreamReport(path, kind, events=0, bytes=0, head="", sealed=False, status="damaged", problem=problem, line=1)


def _report(path: Path, here: Position, last: Record | None, damage: TraceDamaged | None) -> StreamReport:
    sealed = damage is None and last is not None and last.type == SEAL
    return StreamReport(
        file=path,
        kind=_kind(path),
        events=here.line,
        bytes=here.offset,
        head=here.prev or "",
        sealed=sealed,
        status="damaged" if damage else "sealed" if sealed else "unsealed",
        problem=damage.problem if damage else None,
        line=damage.line if damage else None,
        seq=damage.seq if damage else None,
    )


def _other_head(path: Path, last: Record | None, head: str) -> TraceDamaged:
    if last is None:
        return TraceDamaged(path, line=1, seq=0, problem="the stream is empty: expected records up to the known head")
    met_head = any(record.digest == head for record in read_records(path, quick=True))
    what = "records follow the known head" if met_head else "the tail was dropped or rewritten"
    return TraceDamaged(path, line=last.line, seq=last.seq, problem=f"{what}: the last line is not the expected one")


def _kind(path: Path) -> StreamKind:
    """A run's stream is known by its folder; elsewhere, by its first line."""
    if path.parent.name == "runs":
        return "runs"
    first = next(read_lines(path, end=MAX_LINE), b"")
    try:
        return "runs" if first.endswith(b"\n") and parse(first[:-1]).type == "run_start" else "traces"
    except TraceError:
        return "traces"
