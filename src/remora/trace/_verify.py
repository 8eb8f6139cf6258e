"""`verify`: what can be said about one stream file, without believing any of it.

Every line is hashed as it lies on the disk and held against the next line's `prev`. Only the first and the last line
are parsed, the last because no later line vouches for it. A head known from outside (an agent's head stands in its
run's stream) also covers that last line, and shows a dropped or rewritten tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from remora.errors import TraceDamaged
from remora.trace._lines import SEAL, StreamKind
from remora.trace._reader import Record, read_records


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
    kind: StreamKind = "runs" if path.parent.name == "runs" else "traces"
    last: Record | None = None
    damage: TraceDamaged | None = None
    met_head = False
    try:
        for last in read_records(path, head=head, quick=True):
            if last.seq == 0 and last.type == "run_start":
                kind = "runs"
            met_head = met_head or last.digest == head
    except TraceDamaged as error:
        damage = error
    if damage is None and head is not None and (last is None or last.digest != head):
        damage = _other_head(path, last, met_head)
    return _report(path, kind, last, damage)


def unreadable(path: Path, problem: str) -> StreamReport:
    """The report of a stream of which nothing can be read."""
    kind: StreamKind = "runs" if path.parent.name == "runs" else "traces"
    return StreamReport(path, kind, events=0, bytes=0, head="", sealed=False, status="damaged", problem=problem, line=1)


def _report(path: Path, kind: StreamKind, last: Record | None, damage: TraceDamaged | None) -> StreamReport:
    sealed = damage is None and last is not None and last.type == SEAL
    return StreamReport(
        file=path,
        kind=kind,
        events=last.line if last else 0,
        bytes=last.offset + len(last.raw) + 1 if last else 0,
        head=last.digest if last else "",
        sealed=sealed,
        status="damaged" if damage else "sealed" if sealed else "unsealed",
        problem=damage.problem if damage else None,
        line=damage.line if damage else None,
        seq=damage.seq if damage else None,
    )


def _other_head(path: Path, last: Record | None, met_head: bool) -> TraceDamaged:
    if last is None:
        return TraceDamaged(path, line=1, seq=0, problem="the stream is empty: expected records up to the known head")
    what = "records follow the known head" if met_head else "the tail was dropped or rewritten"
    return TraceDamaged(path, line=last.line, seq=last.seq, problem=f"{what}: the last line is not the expected one")
