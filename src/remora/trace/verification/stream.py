"""`verify`: check one stream file.

Every line is hashed and compared with the next line's `prev`. Only the first and the last line are parsed: no later
line confirms the last one. Heads from outside (in the run's stream, in `heads.log`) confirm that last line too, and
show a tail that was dropped or rewritten. A visitor sees all intact lines in the same pass: `NamedReferences` collects
the blobs that they reference, and the heads of agents in a run's stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import orjson

from remora.errors import TraceDamaged, TraceError
from remora.events import FORMAT, Reference, digest, references_of
from remora.trace.files.heads import FILE, Note
from remora.trace.files.lines import MAX_LINE, SEAL, StreamKind, parse
from remora.trace.files.reader import Position, Record, after, read_lines, read_records
from remora.trace.files.skim import Skim

_DIGEST = b'"sha256:'
_DIGEST_LENGTH = len("sha256:") + 64
_KEYS = (b'"blob":', b'"before":', b'"after":')
"""What precedes the digest in a reference of our own writer."""
_PREV_LENGTH = len(',"prev":""}') + _DIGEST_LENGTH
_OURS = b'{"v":1,"seq":'
"""The beginning of every line of our own writer. Other lines are parsed, because they may be formatted in any way."""
_FINISHED = b'"type":"agent_finished"'
_TYPE_AT = (40, 100)
"""The byte range that contains a line's type."""


class NamedReferences:
    """Collects references from the lines of one stream. Only lines with new references are parsed."""

    def __init__(self) -> None:
        self.references: dict[Reference, int] = {}
        """With the `seq` of the first event that has it, in order."""
        self.ends: dict[str, str] = {}
        """Heads of agents, as noted by their run."""
        self._met: set[bytes] = set()

    def take(self, first: int, lines: Sequence[bytes]) -> None:
        """Visit lines; the first has the `seq` `first`."""
        seq = first
        for line in lines:
            if self._names_new(line) or line.find(_FINISHED, *_TYPE_AT) >= 0 or not line.startswith(_OURS):
                self._read(seq, line)
            seq += 1

    def _names_new(self, line: bytes) -> bool:
        """Whether the line seems to reference a new blob. One search, because it runs for every line."""
        end = len(line) - (_PREV_LENGTH if line.endswith(b'"}') else 0)  # the first line's `prev` is null
        at = line.find(_DIGEST, 0, end)
        while at >= 0:
            if line.endswith(_KEYS, 0, at) and line[at + 1 : at + 1 + _DIGEST_LENGTH] not in self._met:
                return True
            at = line.find(_DIGEST, at + 1, end)
        return False

    def __len__(self) -> int:
        return len(self.references)

    def _read(self, seq: int, line: bytes) -> None:
        fields = orjson.loads(line)
        kind, data = fields["type"], fields.get("data")
        if fields.get("v") != FORMAT or not isinstance(data, dict):
            return
        for reference in references_of(kind, data):
            self.references.setdefault(reference, seq)
            self._met.add(reference.digest.encode(errors="replace"))
        agent_id, head = fields.get("agent_id"), data.get("head")
        if kind == "agent_finished" and isinstance(agent_id, str) and isinstance(head, str) and head:
            self.ends[agent_id] = head


class LineVisitor(Protocol):
    """Visits the intact lines and counts the blobs that they reference."""

    def take(self, first: int, lines: Sequence[bytes]) -> None:
        """Visit lines; the first has the `seq` `first`."""
        ...

    def __len__(self) -> int:
        """Number of referenced blobs."""
        ...


@dataclass(frozen=True)
class StreamReport:
    """The state of one stream file."""

    file: Path
    kind: StreamKind
    events: int
    """Number of intact records, from the first on."""
    bytes: int
    """Bytes of those records."""
    head: str
    """Digest of the last intact record; empty if there is none."""
    sealed: bool
    """Whether the last intact record seals the stream. A run's stream has no seal."""
    status: Literal["sealed", "unsealed", "damaged"]
    problem: str | None = None
    line: int | None = None
    """1-based, of the first damage."""
    seq: int | None = None
    covered: int = 0
    """Number of records that a head outside the stream confirms. The last record needs one: no line follows it."""
    blobs: int = 0
    """Number of blobs that the stream references."""


def verify(
    path: Path, *, head: str | None = None, noted: Iterable[Note] = (), visitor: LineVisitor | None = None
) -> StreamReport:
    """Check the stream at `path`, whose last line should have the digest `head`. Raises `TraceNotFound`.

    `noted` is what `heads.log` says about it. `visitor` sees every intact line.
    """
    notes = sorted(noted, key=lambda note: note.records)
    seen = _DigestCollector({note.records for note in notes}, visitor)
    skim = Skim(path)
    for lines in skim:
        seen.take(lines)
    here, last = skim.here, None
    damage: TraceDamaged | None = None
    heads = {note.records: note.head for note in notes}
    try:
        for last in read_records(path, start=here, head=head, heads=heads, lines=skim.rest, quick=True):
            here = after(last)
            seen.take_record(last)
    except TraceDamaged as error:
        damage = error
    if damage is None and head is not None and here.prev != head:
        damage = _head_mismatch(path, last, head)
    damage = _compare_with_heads(path, notes, seen, here, damage)
    covered = here.line if damage is None and head is not None else notes[-1].records if notes else 0
    return _report(path, here, last, damage, covered, len(visitor) if visitor is not None else 0)


def unreadable(path: Path, problem: str) -> StreamReport:
    """The report of a stream that cannot be read at all."""
    return StreamReport(
        path, _kind(path), events=0, bytes=0, head="", sealed=False, status="damaged", problem=problem, line=1
    )


class _DigestCollector:
    """Collects the digests of the lines that `heads.log` notes."""

    def __init__(self, wanted: set[int], visitor: LineVisitor | None) -> None:
        self._wanted = wanted
        self._visitor = visitor
        self._lines = 0
        self.digests: dict[int, str] = {}
        """By number of records up to there."""

    def take(self, lines: Sequence[bytes]) -> None:
        first, self._lines = self._lines, self._lines + len(lines)
        for records in self._wanted:
            if first < records <= self._lines:
                self.digests[records] = digest(lines[records - first - 1])
        if self._visitor is not None:
            self._visitor.take(first, lines)

    def take_record(self, record: Record) -> None:
        self.digests[record.line] = record.digest
        if self._visitor is not None:
            self._visitor.take(record.seq, (record.raw,))


def _compare_with_heads(
    path: Path, notes: Sequence[Note], seen: _DigestCollector, here: Position, damage: TraceDamaged | None
) -> TraceDamaged | None:
    """The first damage: the known one, or an earlier one that `heads.log` shows."""
    for note in notes:
        if damage is not None and damage.line <= note.records:
            return damage
        if note.records > here.line:
            cut = f"the stream was cut: `{FILE}` notes {note.records:,} records, and {here.line:,} are there"
            return TraceDamaged(path, line=here.line + 1, seq=here.line, problem=cut)
        if seen.digests.get(note.records) != note.head:
            other = f"the line is not the one whose digest `{FILE}` notes"
            return TraceDamaged(path, line=note.records, seq=note.records - 1, problem=other)
    return damage


def _report(
    path: Path, here: Position, last: Record | None, damage: TraceDamaged | None, covered: int, blobs: int
) -> StreamReport:
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
        covered=min(covered, here.line),
        blobs=blobs,
    )


def _head_mismatch(path: Path, last: Record | None, head: str) -> TraceDamaged:
    if last is None:
        return TraceDamaged(path, line=1, seq=0, problem="the stream is empty: expected records up to the known head")
    met_head = any(record.digest == head for record in read_records(path, quick=True))
    what = "records follow the known head" if met_head else "the tail was dropped or rewritten"
    return TraceDamaged(path, line=last.line, seq=last.seq, problem=f"{what}: the last line is not the expected one")


def _kind(path: Path) -> StreamKind:
    """By the folder; outside of a state folder, by the first line."""
    if path.parent.name in ("runs", "traces"):
        return "runs" if path.parent.name == "runs" else "traces"
    try:
        first = next(read_lines(path, end=MAX_LINE), b"")
        return "runs" if first.endswith(b"\n") and parse(first[:-1]).type == "run_start" else "traces"
    except TraceError:
        return "traces"
