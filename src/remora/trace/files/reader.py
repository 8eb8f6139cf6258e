"""Reading streams line by line, and checking each line against the one before it.

A record is yielded only once the `prev` of the next line has confirmed it. So damage is reported at the record that is
really damaged, and everything yielded before it is intact. Only two lines are held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from remora import events
from remora.errors import TraceDamaged, TraceError, TraceNotFound
from remora.events import FORMAT, digest
from remora.trace.files.lines import SEAL, parse, parse_envelope

if TYPE_CHECKING:
    from remora.events import Event

MAX_READ_LINE = 16 * 1024 * 1024
"""Longer lines are rejected, so that a foreign file cannot fill the memory."""

_BUFFER = 256 * 1024


class Record(NamedTuple):
    """One checked line of a stream."""

    line: int
    """1-based."""
    offset: int
    """Byte offset of the line."""
    raw: bytes
    """Without the newline."""
    digest: str
    seq: int
    type: str
    prev: str | None
    fields: dict[str, Any] | None
    """The parsed record; None if it was not parsed."""


class Position(NamedTuple):
    """A position between two lines; everything before it was checked."""

    line: int = 0
    """Number of lines before it, which is the next `seq`."""
    offset: int = 0
    prev: str | None = None


def after(record: Record) -> Position:
    """The position after the record."""
    return Position(record.line, record.offset + len(record.raw) + 1, record.digest)


def read_lines(path: Path, *, offset: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the raw lines from byte `offset`, with newlines; only the last may lack one. Raises `TraceNotFound`."""
    try:
        with path.open("rb", buffering=_BUFFER) as file:
            file.seek(offset)
            while line := file.readline(MAX_READ_LINE if end is None else min(MAX_READ_LINE, end - offset)):
                offset += len(line)
                yield line
    except FileNotFoundError as error:
        raise TraceNotFound(f"There is no stream at `{path}`") from error
    except OSError as error:
        raise TraceError(f"`{path}` cannot be read: {error.strerror}") from error


def read_events(
    path: Path,
    after: int = -1,
    *,
    start: Position = Position(),  # noqa: B008 (immutable)
    end: int | None = None,
    torn_ok: bool = False,
) -> Iterator[Event]:
    """Yield the events with `seq > after`, oldest first. Raises `TraceDamaged` at the first damage.

    Reading begins at `start` and stops at byte `end`. With `torn_ok`, an unfinished last line is not damage.
    """
    for record in read_records(path, start=start, end=end, torn_ok=torn_ok):
        if record.seq > after and record.fields is not None:
            yield _event(path, record)


def read_records(
    path: Path,
    *,
    start: Position = Position(),  # noqa: B008 (immutable)
    end: int | None = None,
    torn_ok: bool = False,
    head: str | None = None,
    heads: Mapping[int, str] = MappingProxyType({}),
    lines: Iterable[bytes] | None = None,
    quick: bool = False,
) -> Iterator[Record]:
    """Yield checked records from `start` on. Raises `TraceDamaged` at the first damage, after all intact records.

    With `quick`, lines that a later line confirms are not parsed. If two lines do not fit together, `head` (the digest
    of the last line) and `heads` (digests by line number) decide which one is damaged. `lines` are the lines from
    `start` on, if they were already read.
    """
    if lines is None:
        lines = read_lines(path, offset=start.offset, end=end)
    found = _parsed(path, start, lines, torn_ok, quick)
    held: Record | None = None
    try:
        for record in found:
            if record.prev != (held.digest if held else start.prev):
                _blame(path, held, record, found, head=head, heads=heads)
            elif held is not None and held.type == SEAL:
                _damaged(path, record.line, record.seq, f"a record follows `{SEAL}`, which ends a stream")
            elif held is not None:
                yield held
            held = record
    except TraceDamaged as damage:
        if held is not None and held.line < damage.line:
            yield _parse_last(path, held)
        raise
    if held is not None:
        yield _parse_last(path, held)


def _parsed(path: Path, start: Position, lines: Iterable[bytes], torn_ok: bool, quick: bool) -> Iterator[Record]:
    number, offset, prev = start
    for line in lines:
        raw = line[:-1]
        if line[-1:] != b"\n":
            if torn_ok and len(line) < MAX_READ_LINE:
                return
            _cut(path, number, line)
        try:
            # Parse the first line in any case: it identifies the file.
            found = parse_envelope(raw, number, prev) if quick and number else parse(raw)
        except TraceError as error:
            _damaged(path, number + 1, number, _describe_first_line(raw) if number == 0 else error.message)
        if number == 0:
            _check_version(path, found.fields or {})
        if found.seq != number:
            _damaged(path, number + 1, number, f"`seq` is {found.seq}: expected {number}")
        prev = digest(raw)
        yield Record(number + 1, offset, raw, prev, *found)
        number += 1
        offset += len(line)


def _blame(
    path: Path,
    held: Record | None,
    record: Record,
    found: Iterator[Record],
    *,
    head: str | None,
    heads: Mapping[int, str],
) -> NoReturn:
    """Raise at the damaged one of two records that do not fit: the next line, or a known head, shows which."""
    if held is None:
        _damaged(path, record.line, record.seq, "`prev` is not the digest of the line before it")
    try:
        following = next(found, None)
    except TraceDamaged:
        following = None  # undecidable: blame the earlier record, so that everything before it is intact in both cases
    confirmed = following.prev if following else heads.get(record.line, head)
    if confirmed is None and heads.get(held.line) == held.digest:
        confirmed = "another"
    if confirmed is None or confirmed == record.digest:
        _damaged(path, held.line, held.seq, "the line's digest is not the next line's `prev`")
    _damaged(path, record.line, record.seq, "`prev` is not the digest of the line before it")


def _parse_last(path: Path, last: Record) -> Record:
    """Parse the last record: no later line confirms its bytes."""
    if last.fields is not None:
        return last
    try:
        return last._replace(fields=parse(last.raw).fields)
    except TraceError as error:
        raise TraceDamaged(path, line=last.line, seq=last.seq, problem=error.message) from error


def _check_version(path: Path, fields: dict[str, Any]) -> None:
    version = fields.get("v")
    if isinstance(version, int) and version > FORMAT:
        problem = f"the stream is of format {version}: this version of Remora reads up to {FORMAT}"
        error = TraceDamaged(path, line=1, seq=0, problem=problem)
        error.hint = "Update Remora to read it"
        raise error


def _cut(path: Path, number: int, line: bytes) -> NoReturn:
    if len(line) == MAX_READ_LINE:
        _damaged(path, number + 1, number, f"the line is longer than {MAX_READ_LINE:,} bytes")
    problem = f"the last line is cut: {len(line):,} bytes without a newline"
    _damaged(path, number + 1, number, problem if number or line[:1] == b"{" else _describe_first_line(line))


def _describe_first_line(raw: bytes) -> str:
    kind = "damaged" if raw.startswith(b'{"v":') else "not a record"
    return f"not a Remora stream, or its first line is {kind}: expected one JSON object with `v`, `seq` and `type`"


def _damaged(path: Path, line: int, seq: int | None, problem: str) -> NoReturn:
    raise TraceDamaged(path, line=line, seq=seq, problem=problem)


def _event(path: Path, record: Record) -> Event:
    try:
        return events.from_record(record.fields or {})
    except TraceError as error:
        raise TraceDamaged(path, line=record.line, seq=record.seq, problem=error.message) from error
