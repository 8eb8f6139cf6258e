"""`FileBlobs`: bytes under their own digest, at `{state_dir}/blobs/sha256/ab/cdef…` + `.raw` or `.gz`.

The digest is over the uncompressed bytes. A file appears under its name only when its content is on the disk (written
aside, synced, renamed), and is acknowledged only when the name is, too.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from remora.errors import TraceError
from remora.events import digest as digest_of
from remora.trace._disk import Disk
from remora.trace._state import Folders
from remora.trace._threads import Threads

COMPRESS_OVER = 1024
_LEVEL = 3
"""Half the time of the default level, for a few percent more bytes."""
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_CHUNK = 1024 * 1024
_GZIP = 31
"""zlib's window of 15 bits, with a gzip header around it."""


class FileBlobs:
    """A `BlobStore` over files below `state_dir`. Makes nothing until the first put."""

    def __init__(self, state_dir: Path, *, disk: Disk | None = None) -> None:
        self._root = state_dir / "blobs" / "sha256"
        self._disk = disk or Disk()
        self._folders = Folders(state_dir, disk=self._disk)
        self._threads = Threads()

    async def put(self, data: bytes) -> str:
        """The digest under which `data` is durable once this returns. Raises `TraceError`."""
        return await self._threads.run(self._put, bytes(data))

    async def put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Digest and size of all chunks together, durable once this returns. Raises `TraceError`."""
        return await self._threads.run(self._put_chunks, chunks)

    async def get(self, digest: str) -> bytes:
        """The bytes, checked against their digest. Raises `TraceError` if they are gone or damaged."""
        return await self._threads.run(self._get, digest)

    def path(self, digest: str) -> Path | None:
        """The blob's file, or None. Raises `TraceError` for anything but a digest."""
        base = self._base(digest)
        found = (base.with_suffix(suffix) for suffix in (".gz", ".raw"))
        return next((path for path in found if path.is_file() and not path.is_symlink()), None)

    def knows(self, digest: str) -> bool:
        """Whether the blob is there, or was pruned on purpose and left its tombstone."""
        try:
            return self.path(digest) is not None or self._base(digest).with_suffix(".gone").is_file()
        except TraceError:
            return False

    def _put(self, data: bytes) -> str:
        digest = digest_of(data)
        try:
            if not self._keeps(digest):
                self._write(self._base(digest), data)
        except OSError as error:
            raise TraceError(f"Blob `{digest}` cannot be written: {error.strerror}") from error
        return digest

    def _put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        seen, size, packer = hashlib.sha256(), 0, zlib.compressobj(_LEVEL, wbits=_GZIP)
        aside = self._root / f"{os.urandom(8).hex()}.tmp"
        try:
            self._folders.ready(self._root)
            with self._appending(aside) as handle:
                for chunk in chunks:
                    seen.update(chunk)
                    size += len(chunk)
                    self._disk.write(handle, packer.compress(chunk))
                self._disk.write(handle, packer.flush())
            digest = f"sha256:{seen.hexdigest()}"
            if not self._keeps(digest):
                self._folders.ready(self._base(digest).parent)
                self._disk.rename(aside, self._base(digest).with_suffix(".gz"))
                self._disk.sync_dir(self._base(digest).parent)
        except OSError as error:
            raise TraceError(f"A blob cannot be written: {error.strerror}") from error
        finally:
            aside.unlink(missing_ok=True)
        return digest, size

    def _keeps(self, digest: str) -> bool:
        """Whether the blob is there, undamaged and durable; its time is renewed, so that no prune takes it as old."""
        path = self.path(digest)
        if path is None or not _holds(path, digest):
            return False
        os.utime(path)
        self._disk.sync_dir(path.parent)  # who wrote it may not have come to that yet
        return True

    def _write(self, base: Path, data: bytes) -> None:
        self._folders.ready(base.parent)
        packed = gzip.compress(data, compresslevel=_LEVEL, mtime=0) if len(data) > COMPRESS_OVER else data
        suffix, packed = (".gz", packed) if len(packed) < len(data) else (".raw", data)
        aside = base.with_suffix(f".{os.urandom(8).hex()}.tmp")
        try:
            with self._appending(aside) as handle:
                self._disk.write(handle, packed)
            self._disk.rename(aside, base.with_suffix(suffix))
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        self._disk.sync_dir(base.parent)

    @contextmanager
    def _appending(self, path: Path) -> Iterator[int]:
        """A descriptor of a new file, whose content is on the disk afterwards."""
        handle = self._disk.open_append(path)
        try:
            yield handle
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)

    def _get(self, digest: str) -> bytes:
        path = self.path(digest)
        if path is None:
            pruned = self._base(digest).with_suffix(".gone").is_file()
            why = "was pruned: only its digest and size are kept" if pruned else "is gone: expected it"
            raise TraceError(f"Blob `{digest}` {why} below `{self._root}`")
        # Two passes: only bytes that have the right digest are ever held in memory, however far they unpack.
        if not _holds(path, digest):
            raise TraceError(f"Blob `{digest}` is damaged: `{path}` holds other bytes")
        return b"".join(_chunks(path))

    def _base(self, digest: str) -> Path:
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise TraceError(f"{digest[:80]!r} is not a digest: expected `sha256:` and 64 hexadecimal digits")
        return self._root / match[1][:2] / match[1][2:]


def _holds(path: Path, digest: str) -> bool:
    seen = hashlib.sha256()
    try:
        for chunk in _chunks(path):
            seen.update(chunk)
    except (OSError, EOFError, zlib.error):
        return False
    return f"sha256:{seen.hexdigest()}" == digest


def _chunks(path: Path) -> Iterator[bytes]:
    """The uncompressed bytes, a bounded part at a time."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while part := file.read(_CHUNK):
            yield part
