"""A blob's bytes, unpacked a bounded part at a time and never beyond a limit: gzip can make a thousand of one byte.

`FileBlobs`: bytes under their own digest, at `{state_dir}/blobs/sha256/ab/cdef…` + `.raw` or `.gz`.

The digest is over the uncompressed bytes. A file appears under its name only when its content is on the disk (written
aside, synced, renamed), and is acknowledged only when the name is, too.

A file is unpacked only as far as its reader expects bytes in it: a small one can unpack to gigabytes.
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
"""Bytes read at once: most blobs are small, and a buffer for more would have to be mapped for each of them."""
GZIP = 31
"""zlib's window of 15 bits, with a gzip header around it."""

READ_ERRORS = (OSError, EOFError, zlib.error)
"""What reading a damaged file may raise."""


class TooLarge(Exception):
    """There is more than the limit."""


@contextmanager
def open_plain(path: str) -> Iterator[FileIO]:
    """The plain file at `path`. Raises `FileNotFoundError` where there is none: a link, a folder, a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileNotFoundError(errno.ENOENT, "it is a link", path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileNotFoundError(errno.ENOENT, "it is no plain file", path)
    with FileIO(handle) as file:
        yield file


def parts(file: FileIO, limit: int, *, packed: bool) -> Iterator[bytes]:
    """The unpacked bytes, at most `CHUNK` at once. Raises `TooLarge` instead of giving more than `limit` of them."""
    left = limit
    for part in _unpacked(file) if packed else iter(lambda: file.read(_READ), b""):
        left -= len(part)
        if left < 0:
            raise TooLarge
        yield part


def sha256_of(file: FileIO, limit: int, *, packed: bool) -> tuple[str, int]:
    """Digest and number of the unpacked bytes. Raises `TooLarge`, or one of `READ_ERRORS`."""
    seen, size = hashlib.sha256(), 0
    for part in parts(file, limit, packed=packed):
        seen.update(part)
        size += len(part)
    return f"sha256:{seen.hexdigest()}", size


def _unpacked(file: FileIO) -> Iterator[bytes]:
    """The bytes of a file of one gzip member, as our writer makes it. Raises `EOFError` where it is cut."""
    unpacker = zlib.decompressobj(GZIP)
    while data := file.read(_READ):
        while part := unpacker.decompress(data, CHUNK):
            yield part
            # What was held back, so that one part is not too large, may need no more input to come out.
            data = unpacker.unconsumed_tail
        if unpacker.unused_data:
            raise zlib.error("bytes follow the end")
    if not unpacker.eof:
        raise EOFError("the file is cut")


COMPRESS_OVER = 1024
_LEVEL = 3
"""Half the time of the default level, for a few percent more bytes."""
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
MAX_PROVEN = 4 * 1024**3
"""Bytes of one blob that are unpacked to prove it. Nothing of it is held, but a planted file could take hours."""

Found = Literal["right", "pruned", "gone", "damaged", "too large"]


@dataclass(frozen=True)
class BlobProof:
    """What the bytes of one blob prove."""

    found: Found
    size: int = 0
    """How many bytes were unpacked; of a right one, how many there are."""


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

    async def get(self, digest: str, *, limit: int = MAX_BLOB) -> bytes:
        """The bytes, checked against their digest. Raises `TraceError` if they are gone, damaged, or over `limit`."""
        return await self._threads.run(self._get, digest, limit)

    def prove(self, digest: str, limit: int) -> BlobProof:
        """What lies under `digest`, unpacked up to `limit` bytes and not held."""
        match = _DIGEST.fullmatch(digest)
        if match is None:
            return BlobProof("gone")
        base = f"{self._root}/{match[1][:2]}/{match[1][2:]}"
        for suffix in (".gz", ".raw"):
            try:
                return _proof(base + suffix, digest, limit)
            except FileNotFoundError:
                continue
            except OSError:
                return BlobProof("damaged")
        return BlobProof(self._absence(digest))

    def path(self, digest: str) -> Path | None:
        """The blob's file, or None. Raises `TraceError` for anything but a digest."""
        base = self._base(digest)
        found = (base.with_suffix(suffix) for suffix in (".gz", ".raw"))
        return next((path for path in found if path.is_file() and not path.is_symlink()), None)

    def looks(self, digest: str) -> Found:
        """Whether the blob is there, or was pruned on purpose and left its tombstone. Its bytes are not read."""
        match = _DIGEST.fullmatch(digest)
        if match is None:
            return "gone"
        base = f"{self._root}/{match[1][:2]}/{match[1][2:]}"
        for suffix in (".gz", ".raw"):
            try:
                if stat.S_ISREG(os.lstat(base + suffix).st_mode):
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
        """Whether the blob is there, undamaged and durable; its time is renewed, so that no prune takes it as old."""
        path = self.path(digest)
        if path is None or self.prove(digest, size).found != "right":
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

    def _get(self, digest: str, limit: int) -> bytes:
        base = self._base(digest)  # refuses what is no digest
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
        # Two passes: only bytes that have the right digest are ever held in memory.
        path = self.path(digest)
        if proof.found != "right" or path is None:
            raise TraceError(f"Blob `{digest}` is damaged: `{path or base}` holds other bytes")
        data = _read(path, proof.size)
        if digest_of(data) != digest:
            raise TraceError(f"Blob `{digest}` is damaged: `{path}` has just changed")
        return data

    def _absence(self, digest: str) -> Found:
        """Why there is no file: pruned on purpose, which leaves a tombstone, or gone."""
        return "pruned" if self._base(digest).with_suffix(".gone").is_file() else "gone"

    def _base(self, digest: str) -> Path:
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise TraceError(f"{digest[:80]!r} is not a digest: expected `sha256:` and 64 hexadecimal digits")
        return self._root / match[1][:2] / match[1][2:]


def _proof(path: str, digest: str, limit: int) -> BlobProof:
    """What the file proves. Raises `OSError` if it cannot be opened."""
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
