"""What an agent has read of the project: for this agent, those files stay as they were then."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from remora.errors import WorkspaceError

MAX_PINS = 10_000
"""Paths that one agent may look at."""
MAX_PINNED_FILE = 4 * 1024 * 1024
MAX_PINNED = 16 * 1024 * 1024
"""Bytes that are kept for one agent; of what goes beyond, only the digest."""


@dataclass(frozen=True)
class Pin:
    """One path as the agent read it."""

    digest: bytes | None
    """None where there was no file."""
    data: bytes | None
    """None where there was no file, or where it is too large to be kept."""
    is_late: bool
    """Whether the file was saved after the agent had begun."""


class Pins:
    """Content by path. Bounded: what cannot be kept can at least be told apart from what is there later."""

    def __init__(self) -> None:
        self._pins: dict[str, Pin] = {}
        self._bytes = 0

    def get(self, path: str) -> Pin | None:
        """What was read at the path; None where nobody looked."""
        return self._pins.get(path)

    def add(self, path: str, data: bytes | None, *, is_late: bool) -> Pin:
        """Note what was read. Raises `WorkspaceError` where that would be one path too many."""
        if len(self._pins) >= MAX_PINS:
            raise WorkspaceError(f"`{path}` would be one file too many: at most {MAX_PINS:,} may be read")
        kept = data
        if data is None or len(data) > MAX_PINNED_FILE or self._bytes + len(data) > MAX_PINNED:
            kept = None
        self._bytes += len(kept or b"")
        pin = Pin(None if data is None else digest_of(data), kept, is_late)
        self._pins[path] = pin
        return pin

    def drop(self, path: str) -> None:
        """Nobody has read the path."""
        pin = self._pins.pop(path, None)
        self._bytes -= len(pin.data or b"") if pin else 0

    def kept(self) -> Iterator[tuple[str, bytes]]:
        """Every file that was read and is kept."""
        return ((path, pin.data) for path, pin in self._pins.items() if pin.data is not None)


def digest_of(data: bytes) -> bytes:
    """What tells contents apart."""
    return hashlib.sha256(data).digest()
