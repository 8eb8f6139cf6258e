"""What a program says, kept without holding it all: small outputs in memory, large ones in an unnamed file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

IN_MEMORY = 4 * 1024 * 1024 + 1
"""Just more than a script may take, so that it is told the truth about what is too large for it."""
_CHUNK = 256 * 1024


class Spool:
    """Bytes that come in one after the other and are read from the beginning, as often as needed."""

    def __init__(self) -> None:
        # Without a name, so that a crash leaves nothing behind.
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self.size = 0

    def add(self, data: bytes) -> None:
        """`data` follows what was there."""
        self._file.seek(0, 2)
        self._file.write(data)
        self.size += len(data)

    def head(self) -> bytes:
        """All of it, or its first `IN_MEMORY` bytes."""
        self._file.seek(0)
        return self._file.read(IN_MEMORY)

    @property
    def is_large(self) -> bool:
        """Whether there is more than `head` gives."""
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
