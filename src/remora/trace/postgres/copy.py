"""Copies streams between a state folder and a Postgres store, byte for byte, with the blobs that they reference.

A stream that the target has already is continued if the target's part is a beginning of the source's, and refused if
it is not. So a copy can be repeated, and can follow a run that goes on. Every line is checked on its way.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from remora.errors import StoreUnreachable, TraceError
from remora.events import digest
from remora.trace.files.blobs import FileBlobs
from remora.trace.files.disk import Disk
from remora.trace.files.heads import Ledger, Note
from remora.trace.files.lines import SEAL
from remora.trace.files.reader import Position, Record, read_lines, read_records
from remora.trace.files.state import KINDS, Folders, find_streams
from remora.trace.postgres.connection import reason
from remora.trace.postgres.mirror import StoredStream, StoreReader
from remora.trace.postgres.schema import OWN_STATES
from remora.trace.retention.scan import digests_in, scan_blobs

if TYPE_CHECKING:
    from remora.trace.postgres.blobs import PostgresBlobs
    from remora.trace.stores import StoredBlobs

Progress = Callable[[int, int], None]
_LINES = 500
_LABEL = "remora store copy"


@dataclass
class Copied:
    """What a copy did."""

    streams: list[str] = field(default_factory=list)
    """Streams that are new, or longer than before."""
    same: int = 0
    """Streams that the target had already."""
    records: int = 0
    blobs: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Streams and blobs that were not copied, and why."""


def copy_in(state_dir: Path, reader: StoreReader, blobs: PostgresBlobs, progress: Progress) -> Copied:
    """Copy all streams of a state folder into a store."""
    reader.connection(create=True)
    writer = reader.ask("SELECT @.enter(%s, interval '1 hour')", [_LABEL])[0][0]
    schema = reader.address.schema
    reader.ask("SELECT pg_advisory_lock(hashtext(%s), %s)", [schema, writer])
    done, own = Copied(), FileBlobs(state_dir)
    there, known = (
        scan_blobs(state_dir),
        {f"sha256:{name.hex()}" for (name,) in reader.ask("SELECT digest FROM @.blobs")},
    )
    paths = [path for kind in KINDS for path in find_streams(state_dir, kind)]
    for place, path in enumerate(paths):
        progress(place, len(paths))
        stream_id = f"{path.parent.name}/{path.stem}"
        try:
            for name in (name for line in read_lines(path) for name in digests_in(line)):
                if name in there and name not in known:
                    known.add(name)
                    _copy_blob(name, own, blobs, done)
            _append_lines(reader, writer, stream_id, path, done)
        except TraceError as error:
            done.refused[stream_id] = _refusal(error)
    reader.ask("SELECT @.renew(%s, interval '0')", [writer])
    progress(len(paths), len(paths))
    return done


def _append_lines(reader: StoreReader, writer: int, stream_id: str, path: Path, done: Copied) -> None:
    number, epoch, stored, head, sealed = reader.ask("SELECT * FROM @.open_stream(%s, %s)", [stream_id, writer])[0]
    try:
        records = read_records(path, torn_ok=True)
        _skip_known(records, stored, head, stream_id)
        added = 0
        while batch := list(islice(records, _LINES)):
            if sealed:
                raise TraceError("the target is sealed, but the source goes on")
            lines, prev = [record.raw for record in batch], batch[0].prev
            values = [number, epoch, batch[0].seq, _raw(prev), lines, batch[-1].type == SEAL, True]
            reader.ask("SELECT @.append(%b, %b, %b, %b, %b, %b, %b)", values)
            added += len(batch)
    finally:
        reader.ask("SELECT @.close_stream(%s, %s)", [number, epoch])
    _count(done, stream_id, added)


def _skip_known(records: Iterator[Record], stored: int, head: bytes | None, stream_id: str) -> None:
    """Skip the records that the target has. Raises `TraceError` if the target has others."""
    last = _last_of(islice(records, stored))
    if stored and (last is None or last.seq != stored - 1 or _raw(last.digest) != head):
        raise TraceError(f"`{stream_id}` in the target is longer, or another stream: nothing was copied")


def copy_out(reader: StoreReader, blobs: PostgresBlobs, state_dir: Path, progress: Progress) -> Copied:
    """Copy all streams of a store into a state folder. Every file is synced."""
    done, disk = Copied(), Disk()
    folders, ledger, own = Folders(state_dir, disk=disk), Ledger(state_dir, disk=disk), FileBlobs(state_dir)
    stored = {f"sha256:{name.hex()}" for (name,) in reader.ask("SELECT digest FROM @.blobs WHERE NOT pruned")}
    streams = reader.streams()
    for place, stream in enumerate(streams):
        progress(place, len(streams))
        path = state_dir / f"{stream.stream_id}.jsonl"
        folders.ready(path.parent)
        try:
            lines = _Copying(reader, stream, path)
            added = lines.write(disk, lambda found: _get_blobs(found, stored, blobs, own, done))
        except TraceError as error:
            done.refused[stream.stream_id] = _refusal(error)
            continue
        if added:
            disk.sync_dir(path.parent)
            ledger.note(Note(stream.stream_id, stream.records, f"sha256:{stream.head.hex()}"))
        _count(done, stream.stream_id, added)
    progress(len(streams), len(streams))
    return done


class _Copying:
    """One stream on its way into a file."""

    def __init__(self, reader: StoreReader, stream: StoredStream, path: Path) -> None:
        self._reader = reader
        self._stream = stream
        self._path = path

    def write(self, disk: Disk, blobs: Callable[[Iterable[str]], None]) -> int:
        """Write the records that the file lacks. Returns their number. Raises `TraceError` if it has others."""
        handle = disk.open_append(self._path)
        try:
            disk.lock(handle, self._path)
            here = self._known()
            added = 0
            lines = self._reader.lines(self._stream, here.line)
            records = read_records(self._path, start=here, lines=lines)
            while batch := list(islice(records, _LINES)):
                blobs(name for record in batch for name in digests_in(record.raw))
                disk.write(handle, b"".join(record.raw + b"\n" for record in batch))
                added += len(batch)
            if added:
                disk.sync(handle)
            return added
        except OSError as error:
            raise TraceError(f"`{self._path}` cannot be written: {error.strerror}") from error
        finally:
            disk.close(handle)

    def _known(self) -> Position:
        """The position after what the file has."""
        size = os.stat(self._path).st_size  # noqa: PTH116
        if not size:
            return Position()
        last = _last_of(read_records(self._path, quick=True))
        if last is None or last.seq >= self._stream.records or self._digest_at(last.seq) != last.digest:
            raise TraceError(f"`{self._path}` is longer, or another stream: nothing was copied")
        return Position(last.line, size, last.digest)

    def _digest_at(self, seq: int) -> str:
        rows = self._reader.ask("SELECT line FROM @.records WHERE stream = %s AND seq = %s", [self._stream.number, seq])
        return digest(rows[0][0]) if rows else ""


def _get_blobs(names: Iterable[str], stored: set[str], blobs: PostgresBlobs, own: FileBlobs, done: Copied) -> None:
    """Copy blobs before the lines that reference them."""
    for name in names:
        if name in stored:
            stored.discard(name)
            _copy_blob(name, blobs, own, done)


def _copy_blob(name: str, source: StoredBlobs, target: StoredBlobs, done: Copied) -> None:
    """Copy one blob. A damaged one arrives under another digest, so the target lacks it as well."""
    try:
        found, _ = target.write_chunks(source.chunks(name))
    except TraceError as error:
        done.refused[name] = _refusal(error)
        return
    if found == name:
        done.blobs += 1
    else:
        done.refused[name] = "the blob is damaged: it has other bytes"


def _refusal(error: TraceError) -> str:
    """Why one stream or blob was not copied. Raises `StoreUnreachable` if no other one could be."""
    cause = error.__cause__
    if cause is not None and str(getattr(cause, "sqlstate", "")).startswith(OWN_STATES):
        return reason(cause)
    if isinstance(error, StoreUnreachable):
        raise error
    return error.message


def _count(done: Copied, stream_id: str, added: int) -> None:
    if added:
        done.streams.append(stream_id)
    else:
        done.same += 1
    done.records += added


def _last_of(records: Iterable[Record]) -> Record | None:
    found = deque(records, maxlen=1)
    return found[0] if found else None


def _raw(name: str | None) -> bytes | None:
    return None if name is None else bytes.fromhex(name.removeprefix("sha256:"))
