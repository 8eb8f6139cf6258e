"""A blob's bytes, unpacked a bounded part at a time and never beyond a limit: gzip can make a thousand of one byte."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO

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
def opened(path: str) -> Iterator[FileIO]:
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
