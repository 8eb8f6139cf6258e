"""A local copy of a store's streams, so that every reader of files also reads a store.

{cache}/stores/{digest of the URL}/traces/{id}.jsonl     a stream as far as it was fetched, byte for byte
{cache}/stores/{digest of the URL}/lock                  held while a file is written

Only what is asked for is fetched, and of a stream only its new records: they must continue the chain of the copy, else
the copy is fetched again. The copy can be deleted at any time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from remora.errors import TraceError
from remora.events import digest
from remora.trace.files.lines import StreamKind, check_stream_id, parse
from remora.trace.files.ownership import private_folder
from remora.trace.postgres.connection import Held, connect, driver, is_passing, query, store_error

if TYPE_CHECKING:
    import psycopg

    from remora.trace.postgres.address import Address

READ_AT_ONCE = 500
_TAIL = 64 * 1024
_LISTED = "SELECT id, stream_id, records, bytes, head, sealed FROM @.streams WHERE records > 0"


class StoredStream(NamedTuple):
    """A stream of the store, without its records."""

    number: int
    stream_id: str
    records: int
    size: int
    """Bytes of its file."""
    head: bytes
    sealed: bool


class StoreReader:
    """Reads streams from a store. A lost connection is replaced once for each question."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._held = Held()

    def ask(self, sql: str, values: Sequence[Any] = (), *, hint: str = "") -> list[tuple[Any, ...]]:
        """All rows of a query. Raises `TraceError` or `ConfigError`, with `hint` if a right is missing."""
        for attempt in range(2):
            try:
                cursor = self.connection().execute(query(sql, self.address.schema), values, binary=True)
                return cursor.fetchall() if cursor.description else []
            except driver().Error as error:
                self.close()
                if attempt or not is_passing(error):
                    raise store_error(error, self.address, hint) from error
        return []

    def connection(self, *, create: bool = False) -> psycopg.Connection[Any]:
        """The open connection, or a new one; with `create`, to a store that may not exist yet."""
        return self._held.get(lambda: connect(self.address, create=create))

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        self._held.close()

    def streams(self, kind: StreamKind | None = None) -> list[StoredStream]:
        """All streams, by id."""
        rows = self.ask(f"{_LISTED} AND stream_id LIKE %s ORDER BY stream_id", [f"{kind or ''}%"])
        return [StoredStream(*row) for row in rows]

    def named(self, stream_ids: Iterable[str]) -> list[StoredStream]:
        """These streams, as far as they exist."""
        return [StoredStream(*row) for row in self.ask(f"{_LISTED} AND stream_id = ANY(%s)", [list(stream_ids)])]

    def newest(self, stream_ids: Sequence[str]) -> dict[str, bytes]:
        """The last line of those of these streams that have begun and are not sealed."""
        sql = (
            "SELECT s.stream_id, r.line FROM @.streams s JOIN @.records r ON r.stream = s.id AND r.seq = s.records - 1 "
            "WHERE s.stream_id = ANY(%s) AND NOT s.sealed"
        )
        return dict(self.ask(sql, [list(stream_ids)]))

    def lines(self, stream: StoredStream, first: int = 0) -> Iterator[bytes]:
        """The lines from `first` on, each with its newline. Raises `TraceError` if one is missing."""
        at = first
        while at < stream.records:
            rows = self.ask(
                "SELECT seq, line FROM @.records WHERE stream = %s AND seq >= %s AND seq < %s ORDER BY seq LIMIT %s",
                [stream.number, at, stream.records, READ_AT_ONCE],
            )
            if not rows:
                raise TraceError(f"`{stream.stream_id}` has no record {at}: expected {stream.records} records")
            for seq, line in rows:
                if seq != at:
                    raise TraceError(f"`{stream.stream_id}` has no record {at}: expected {stream.records} records")
                yield line + b"\n"
                at += 1


class Mirror:
    """The local copy of one store, in `folder`."""

    def __init__(self, address: Address, folder: Path) -> None:
        self.folder = folder
        self.reader = StoreReader(address)

    def path(self, stream_id: str) -> Path:
        """Where the stream's copy is, or would be."""
        check_stream_id(stream_id)
        return self.folder / f"{stream_id}.jsonl"

    def pull(self, stream_ids: Collection[str]) -> list[Path]:
        """Bring the copies of these streams up to date. Returns those that exist, in the given order."""
        found = {stream.stream_id: stream for stream in self.reader.named(stream_ids)} if stream_ids else {}
        self._pull(list(found.values()))
        return [self.path(stream_id) for stream_id in stream_ids if stream_id in found]

    def pull_all(self, kind: StreamKind | None = None) -> None:
        """Bring the copies of all streams up to date, and delete those of streams that the store no longer has."""
        found = self.reader.streams(kind)
        self._pull(found)
        known = {self.path(stream.stream_id) for stream in found}
        for folder in [kind] if kind else ["traces", "runs"]:
            for path in (self.folder / folder).glob("*.jsonl"):
                if path not in known:
                    path.unlink(missing_ok=True)

    def forget(self) -> None:
        """Delete all copies of streams. The next pull fetches them again."""
        for folder in ("traces", "runs"):
            for path in (self.folder / folder).glob("*.jsonl"):
                path.unlink(missing_ok=True)

    def _pull(self, streams: Sequence[StoredStream]) -> None:
        behind = [stream for stream in streams if not _is_current(self.path(stream.stream_id), stream)]
        if not behind:
            return
        with self._locked():
            for stream in behind:
                self._fetch(stream)

    def _fetch(self, stream: StoredStream) -> None:
        path = self.path(stream.stream_id)
        private_folder(path.parent)
        last = _last_line(path)
        if last is not None:
            lines = self.reader.lines(stream, last.seq + 1)
            first = next(lines, None)
            if first is None or _prev(first) != last.digest:
                last = None  # another stream, or a damaged copy
            else:
                with path.open("ab") as file:
                    file.write(first)
                    file.writelines(lines)
                return
        aside = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.writelines(self.reader.lines(stream))
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait for other processes that write the same copies."""
        private_folder(self.folder)
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


class _Last(NamedTuple):
    seq: int
    digest: str


def _is_current(path: Path, stream: StoredStream) -> bool:
    try:
        if path.stat().st_size != stream.size:
            return False
    except OSError:
        return False
    last = _last_line(path)
    return last is not None and last.digest == f"sha256:{stream.head.hex()}"


def _last_line(path: Path) -> _Last | None:
    """The last line of a copy; None if there is none, or it is cut."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            window = _TAIL
            while True:
                file.seek(max(size - window, 0))
                data = file.read()
                start = data.rfind(b"\n", 0, len(data) - 1) + 1
                if start or window >= size:
                    break
                window *= 4
    except OSError:
        return None
    line = data[start:]
    if not line.endswith(b"\n"):
        return None
    try:
        return _Last(parse(line[:-1]).seq, digest(line[:-1]))
    except TraceError:
        return None


def _prev(line: bytes) -> str | None:
    try:
        return parse(line[:-1]).prev
    except TraceError:
        return None
