"""Output of a program: small outputs in memory, large ones in an unnamed file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

IN_MEMORY = 4 * 1024 * 1024 + 1
"""One byte more than a script may receive, so that the script's own size check reports the excess."""
_CHUNK = 256 * 1024


class Spool:
    """Bytes that are appended, and can be read from the start as often as needed."""

    def __init__(self) -> None:
        # Unnamed, so that a crash leaves nothing behind.
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self.size = 0

    def add(self, data: bytes) -> None:
        """Append `data`."""
        self._file.seek(0, 2)
        self._file.write(data)
        self.size += len(data)

    def head(self) -> bytes:
        """All bytes, or the first `IN_MEMORY`."""
        self._file.seek(0)
        return self._file.read(IN_MEMORY)

    @property
    def is_large(self) -> bool:
        """Whether `head` leaves something out."""
        return self.size > IN_MEMORY

    def __del__(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        at = 0
        while at < self.size:
            self._file.seek(at)
            chunk = self._file.read(_CHUNK)
            at += len(chunk)
            yield chunk
