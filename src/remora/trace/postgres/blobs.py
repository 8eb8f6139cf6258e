"""`PostgresBlobs`: blobs in the same database as the streams, in parts of 1 MiB, named by their digest.

The digest is over the bytes as they are; Postgres compresses them by itself. A blob's parts and its row are committed
together, and before the event that names the blob.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from remora.errors import StoreUnreachable, TraceError
from remora.events import MAX_BLOB
from remora.trace.files.blobs import CHUNK, BlobProof, Found
from remora.trace.files.disk import Threads
from remora.trace.postgres.address import Address, parse_address
from remora.trace.postgres.connection import Held, connect, driver, is_passing, query, store_error

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_READ_S, _WRITE_S = 2.0, 30.0
"""How long a server is waited for that restarts: agents wait, somebody who reads does not."""
_PAUSES_S = (0.1, 0.2, 0.4, 0.8)


class PostgresBlobs:
    """A `BlobStore` over a Postgres store. Connects at the first call."""

    def __init__(self, address: Address | str, *, create: bool = True) -> None:
        self._address = parse_address(address) if isinstance(address, str) else address
        self._create = create
        self._threads = Threads()
        self._lock = threading.Lock()
        self._held = Held()

    async def put(self, data: bytes) -> str:
        """Store `data` and return its digest. The blob is durable once this returns. Raises `TraceError`."""
        digest, _ = await self._threads.run(self._put, (bytes(data),))
        return digest

    async def put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Store the concatenated chunks; return digest and size. Durable once this returns. Raises `TraceError`."""
        return await self._threads.run(self._put_large, chunks)

    async def get(self, digest: str, *, limit: int = MAX_BLOB) -> bytes:
        """Read a blob and check its digest. Raises `TraceError` if it is missing, damaged, or larger than `limit`."""
        return await self._threads.run(self.read, digest, limit)

    def read(self, digest: str, limit: int = MAX_BLOB) -> bytes:
        """Like `get`, in the calling thread."""
        proof, data = self._fetch(digest, limit, keep=True)
        if proof.found == "gone":
            raise TraceError(f"Blob `{digest}` is gone: expected it in {self._address}")
        if proof.found == "pruned":
            raise TraceError(f"Blob `{digest}` was pruned: only its digest and size are kept in {self._address}")
        if proof.found == "too large":
            raise TraceError(f"Blob `{digest}` has more than {limit:,} bytes: expected no more")
        if proof.found == "damaged":
            raise TraceError(f"Blob `{digest}` is damaged: {self._address} has other bytes")
        return data

    def write_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Like `put_chunks`, in the calling thread."""
        return self._put_large(chunks)

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The bytes of a blob in chunks, unchecked. Raises `TraceError` if they are missing."""
        rows = self._ask("SELECT size FROM @.blobs WHERE digest = %b AND NOT pruned", [_raw(digest)])
        if not rows:
            raise TraceError(f"Blob `{digest}` is gone: expected it in {self._address}")
        sql = "SELECT data FROM @.blob_parts WHERE digest = %b AND part = %s"
        for place in range(-(-rows[0][0] // CHUNK)):
            for (data,) in self._ask(sql, [_raw(digest), place]):
                yield data

    def prove(self, digest: str, limit: int) -> BlobProof:
        """Check the digest of a blob without holding its bytes."""
        return self._fetch(digest, limit, keep=False)[0]

    def looks(self, digest: str) -> Found:
        """Whether the blob exists or was pruned, without reading it."""
        rows = self._ask("SELECT pruned FROM @.blobs WHERE digest = %b", [_raw(digest)])
        return "gone" if not rows else "pruned" if rows[0][0] else "right"

    def head(self, digest: str, length: int) -> bytes:
        """The first bytes of a blob, unchecked; empty if it is missing."""
        sql = "SELECT substring(data FROM 1 FOR %s) FROM @.blob_parts WHERE digest = %b AND part = 0"
        rows = self._ask(sql, [length, _raw(digest)])
        return bytes(rows[0][0]) if rows else b""

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._held.close()

    def _put_large(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Spool the chunks into a file first: parts are stored under the digest of all of them."""
        with tempfile.TemporaryFile() as spool:
            for chunk in chunks:
                spool.write(chunk)

            def parts() -> Iterator[bytes]:
                spool.seek(0)
                return iter(lambda: spool.read(CHUNK), b"")

            seen, size = hashlib.sha256(), 0
            for part in parts():
                seen.update(part)
                size += len(part)
            self._store(seen.digest(), size, parts)
            return f"sha256:{seen.hexdigest()}", size

    def _put(self, data: Sequence[bytes]) -> tuple[str, int]:
        (whole,) = data
        name = hashlib.sha256(whole).digest()
        self._store(name, len(whole), lambda: (whole[at : at + CHUNK] for at in range(0, len(whole), CHUNK)))
        return f"sha256:{name.hex()}", len(whole)

    def _store(self, name: bytes, size: int, parts: Callable[[], Iterable[bytes]]) -> None:
        def store(connection: psycopg.Connection[Any]) -> None:
            schema = self._address.schema
            found = connection.execute(query("SELECT @.touch_blob(%b)", schema), [name]).fetchone()
            if found and found[0]:
                return
            with connection.transaction():
                for place, part in enumerate(parts()):
                    connection.execute(query("SELECT @.put_part(%b, %s, %b)", schema), [name, place, part])
                connection.execute(query("SELECT @.put_blob(%b, %s)", schema), [name, size])

        self._run(store, _WRITE_S)

    def _fetch(self, digest: str, limit: int, *, keep: bool) -> tuple[BlobProof, bytes]:
        name = _raw(digest)

        def fetch(connection: psycopg.Connection[Any]) -> tuple[BlobProof, bytes]:
            schema = self._address.schema
            row = connection.execute(query("SELECT size, pruned FROM @.blobs WHERE digest = %b", schema), [name])
            if (found := row.fetchone()) is None or found[1]:
                return BlobProof("gone" if found is None else "pruned"), b""
            if found[0] > limit:
                return BlobProof("too large", limit), b""
            seen, kept, size = hashlib.sha256(), bytearray(), 0
            for part in self._parts(connection, name, found[0]):
                seen.update(part)
                size += len(part)
                if keep:
                    kept += part
            right = size == found[0] and seen.digest() == name
            return BlobProof("right" if right else "damaged", size), bytes(kept)

        return self._run(fetch)

    def _ask(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._run(lambda connection: connection.execute(query(sql, self._address.schema), values).fetchall())

    def _parts(self, connection: psycopg.Connection[Any], name: bytes, size: int) -> Iterator[bytes]:
        sql = query("SELECT data FROM @.blob_parts WHERE digest = %b AND part = %s", self._address.schema)
        for place in range(-(-size // CHUNK)):
            row = connection.execute(sql, [name, place], binary=True).fetchone()
            if row is None or len(row[0]) > CHUNK:
                return
            yield row[0]

    def _run(self, work: Callable[[psycopg.Connection[Any]], T], patience_s: float = _READ_S) -> T:
        """Run `work` on the connection, again on a new one if it was lost. Everything here may be repeated."""
        with self._lock:
            deadline = time.monotonic() + patience_s
            pauses = iter(_PAUSES_S)
            while True:
                try:
                    return work(self._held.get(lambda: connect(self._address, create=self._create)))
                except driver().Error as error:
                    self._held.close()
                    if time.monotonic() > deadline or not is_passing(error):
                        raise store_error(error, self._address) from error
                except StoreUnreachable:
                    if time.monotonic() > deadline:
                        raise
                time.sleep(next(pauses, _PAUSES_S[-1]))


def _raw(digest: str) -> bytes:
    """The bytes of a digest. Raises `TraceError` for anything else."""
    match = _DIGEST.fullmatch(digest)
    if match is None:
        raise TraceError(f"{digest[:80]!r} is not a digest: expected `sha256:` and 64 hexadecimal digits")
    return bytes.fromhex(match[1])
