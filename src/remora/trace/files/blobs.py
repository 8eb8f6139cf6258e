"""`FileBlobs`: blobs as files at `{state_dir}/blobs/sha256/ab/cdef…` + `.raw` or `.gz`, named by their digest.

The digest is over the uncompressed bytes. A file is written under a temporary name, synced and renamed, so that no
partial file ever has its final name. `put` returns once the directory is synced too.

Reading decompresses in bounded chunks and stops at a limit: a small gzip file can decompress to gigabytes.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Literal

from remora.errors import TraceError
from remora.events import MAX_BLOB
from remora.events import digest as digest_of
from remora.trace.files.disk import Disk, Threads
from remora.trace.files.state import Folders

CHUNK = 1024 * 1024
_READ = 64 * 1024
"""Bytes per read. Most blobs are small, and a larger buffer would be mapped for each of them."""
GZIP = 31
"""zlib's `wbits` for a window of 15 bits and a gzip header."""

READ_ERRORS = (OSError, EOFError, zlib.error)
"""Exceptions from reading a damaged file."""


class TooLarge(Exception):
    """The blob has more bytes than the limit."""


@contextmanager
def open_plain(path: str) -> Iterator[FileIO]:
    """Open a regular file. Raises `FileNotFoundError` for a missing file, a symbolic link, a folder or a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileNotFoundError(errno.ENOENT, "it is a symbolic link", path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileNotFoundError(errno.ENOENT, "it is not a regular file", path)
    with FileIO(handle) as file:
        yield file


def parts(file: FileIO, limit: int, *, packed: bool) -> Iterator[bytes]:
    """Yield the decompressed bytes in chunks of at most `CHUNK`. Raises `TooLarge` after `limit` bytes."""
    left = limit
    for part in _unpacked(file) if packed else iter(lambda: file.read(_READ), b""):
        left -= len(part)
        if left < 0:
            raise TooLarge
        yield part


def sha256_of(file: FileIO, limit: int, *, packed: bool) -> tuple[str, int]:
    """Digest and number of the decompressed bytes. Raises `TooLarge`, or one of `READ_ERRORS`."""
    seen, size = hashlib.sha256(), 0
    for part in parts(file, limit, packed=packed):
        seen.update(part)
        size += len(part)
    return f"sha256:{seen.hexdigest()}", size


def _unpacked(file: FileIO) -> Iterator[bytes]:
    """Decompress a file with one gzip member. Raises `EOFError` if it is truncated."""
    unpacker = zlib.decompressobj(GZIP)
    while data := file.read(_READ):
        while part := unpacker.decompress(data, CHUNK):
            yield part
            # The decompressor may return the rest of a large chunk without more input.
            data = unpacker.unconsumed_tail
        if unpacker.unused_data:
            raise zlib.error("bytes follow the end")
    if not unpacker.eof:
        raise EOFError("the file is truncated")


COMPRESS_OVER = 1024
_LEVEL = 3
"""Compression level. Takes half the time of the default for a few percent more bytes."""
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
MAX_PROVEN = 4 * 1024**3
"""Bytes that are decompressed to check a blob. They are not held, but a planted file could take hours."""

Found = Literal["right", "pruned", "gone", "damaged", "too large"]


@dataclass(frozen=True)
class BlobProof:
    """The result of checking one blob."""

    found: Found
    size: int = 0
    """Bytes that were decompressed; if `found` is `right`, the size of the blob."""


class FileBlobs:
    """A `BlobStore` over files below `state_dir`. Creates nothing until the first put."""

    def __init__(self, state_dir: Path, *, disk: Disk | None = None) -> None:
        self._root = state_dir / "blobs" / "sha256"
        self._disk = disk or Disk()
        self._folders = Folders(state_dir, disk=self._disk)
        self._threads = Threads()

    async def put(self, data: bytes) -> str:
        """Store `data` and return its digest. The blob is durable once this returns. Raises `TraceError`."""
        return await self._threads.run(self._put, bytes(data))

    async def put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Store the concatenated chunks; return digest and size. Durable once this returns. Raises `TraceError`."""
        return await self._threads.run(self._put_chunks, chunks)

    async def get(self, digest: str, *, limit: int = MAX_BLOB) -> bytes:
        """Read a blob and check its digest. Raises `TraceError` if it is missing, damaged, or larger than `limit`."""
        return await self._threads.run(self._get, digest, limit)

    def read(self, digest: str, *, limit: int = MAX_BLOB) -> bytes:
        """Like `get`, in the calling thread."""
        return self._get(digest, limit)

    def write_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Like `put_chunks`, in the calling thread."""
        return self._put_chunks(chunks)

    def prove(self, digest: str, limit: int) -> BlobProof:
        """Check the digest of a blob without holding its bytes; decompress at most `limit` of them."""
        for name in self._names(digest):
            try:
                return _proof(name, digest, limit)
            except FileNotFoundError:
                continue
            except OSError:
                return BlobProof("damaged")
        return BlobProof(self._absence(digest))

    def chunks(self, digest: str) -> Iterator[bytes]:
        """Yield the decompressed bytes in chunks of at most `CHUNK`, unchecked. Raises `TraceError`.

        For blobs that `prove` has checked and that are too large to hold.
        """
        path = self.path(digest)
        if path is None:
            raise TraceError(f"Blob `{digest}` is {self._absence(digest)}: expected it below `{self._root}`")
        try:
            with open_plain(str(path)) as file:
                yield from parts(file, MAX_PROVEN, packed=path.suffix == ".gz")
        except (TooLarge, *READ_ERRORS) as error:
            raise TraceError(f"Blob `{digest}` is damaged: `{path}` has other bytes") from error

    def path(self, digest: str) -> Path | None:
        """The blob's file, or None. Raises `TraceError` for anything but a digest."""
        base = self._base(digest)
        found = (base.with_suffix(suffix) for suffix in (".gz", ".raw"))
        return next((path for path in found if path.is_file() and not path.is_symlink()), None)

    def looks(self, digest: str) -> Found:
        """Whether the blob exists or was pruned, by its file name alone."""
        for name in self._names(digest):
            try:
                if stat.S_ISREG(os.lstat(name).st_mode):
                    return "right"
            except OSError:
                continue
        return self._absence(digest)

    def _put(self, data: bytes) -> str:
        digest = digest_of(data)
        try:
            if not self._keeps(digest, len(data)):
                self._write(self._base(digest), data)
        except OSError as error:
            raise TraceError(f"Blob `{digest}` cannot be written: {error.strerror}") from error
        return digest

    def _put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        seen, size, packer = hashlib.sha256(), 0, zlib.compressobj(_LEVEL, wbits=GZIP)
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
            if not self._keeps(digest, size):
                self._folders.ready(self._base(digest).parent)
                self._disk.rename(aside, self._base(digest).with_suffix(".gz"))
                self._disk.sync_dir(self._base(digest).parent)
        except OSError as error:
            raise TraceError(f"A blob cannot be written: {error.strerror}") from error
        finally:
            aside.unlink(missing_ok=True)
        return digest, size

    def _keeps(self, digest: str, size: int) -> bool:
        """Whether the blob exists, intact and durable. Updates its modification time, so that prune keeps it."""
        path = self.path(digest)
        if path is None or self.prove(digest, size).found != "right":
            return False
        os.utime(path)
        self._disk.sync_dir(path.parent)  # the process that wrote it may not have synced the directory yet
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
        """Open a new file for appending and sync it at the end."""
        handle = self._disk.open_append(path)
        try:
            yield handle
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)

    def _get(self, digest: str, limit: int) -> bytes:
        base = self._base(digest)  # raises for an invalid digest
        proof = self.prove(digest, limit)
        if proof.found == "gone":
            raise TraceError(f"Blob `{digest}` is gone: expected it below `{self._root}`")
        if proof.found == "pruned":
            raise TraceError(f"Blob `{digest}` was pruned: only its digest and size are kept below `{self._root}`")
        if proof.found == "too large":
            raise TraceError(
                f"Blob `{digest}` unpacks to more than {limit:,} bytes: expected no more",
                hint=f"Its file is `{self.path(digest)}`",
            )
        # Check first, then read: only bytes with the right digest are held in memory.
        path = self.path(digest)
        if proof.found != "right" or path is None:
            raise TraceError(f"Blob `{digest}` is damaged: `{path or base}` has other bytes")
        data = _read(path, proof.size)
        if digest_of(data) != digest:
            raise TraceError(f"Blob `{digest}` is damaged: `{path}` changed while it was read")
        return data

    def _absence(self, digest: str) -> Found:
        """Why there is no file: `pruned` if there is a tombstone, else `gone`."""
        return "pruned" if _DIGEST.fullmatch(digest) and self._base(digest).with_suffix(".gone").is_file() else "gone"

    def _names(self, digest: str) -> tuple[str, ...]:
        """The two names that the blob's file can have; none for an invalid digest."""
        match = _DIGEST.fullmatch(digest)
        base = f"{self._root}/{match[1][:2]}/{match[1][2:]}" if match else ""
        return (f"{base}.gz", f"{base}.raw") if base else ()

    def _base(self, digest: str) -> Path:
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise TraceError(f"{digest[:80]!r} is not a digest: expected `sha256:` and 64 hexadecimal digits")
        return self._root / match[1][:2] / match[1][2:]


def _proof(path: str, digest: str, limit: int) -> BlobProof:
    """Check one file against `digest`. Raises `OSError` if it cannot be opened."""
    with open_plain(path) as file:
        try:
            found, size = sha256_of(file, limit, packed=path.endswith(".gz"))
        except TooLarge:
            return BlobProof("too large", limit)
        except READ_ERRORS:
            return BlobProof("damaged")
    return BlobProof("right" if found == digest else "damaged", size)


def _read(path: Path, limit: int) -> bytes:
    try:
        with open_plain(str(path)) as file:
            return b"".join(parts(file, limit, packed=path.suffix == ".gz"))
    except (TooLarge, *READ_ERRORS):
        return b""
