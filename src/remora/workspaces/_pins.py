"""The files that an agent has read: for this agent, they keep the content it read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from remora.errors import WorkspaceError

MAX_PINS = 10_000
"""Most paths that one agent may read."""
MAX_PINNED_FILE = 4 * 1024 * 1024
MAX_PINNED = 16 * 1024 * 1024
"""Bytes kept for one agent. Beyond that, only digests are kept."""


@dataclass(frozen=True)
class Pin:
    """One path as the agent read it."""

    digest: bytes | None
    """None if there was no file."""
    data: bytes | None
    """None if there was no file, or if it is too large to keep."""
    is_late: bool
    """Whether the file was saved after the agent began."""


class Pins:
    """Content by path. Bounded: for content that is not kept, a digest still detects changes."""

    def __init__(self) -> None:
        self._pins: dict[str, Pin] = {}
        self._bytes = 0

    def get(self, path: str) -> Pin | None:
        """What was read at the path; None if it was not read."""
        return self._pins.get(path)

    def add(self, path: str, data: bytes | None, *, is_late: bool) -> Pin:
        """Record a read. Raises `WorkspaceError` if there are too many."""
        if len(self._pins) >= MAX_PINS:
            raise WorkspaceError(f"`{path}` would be one file too many to read: the limit is {MAX_PINS:,}")
        stored = data
        if data is None or len(data) > MAX_PINNED_FILE or self._bytes + len(data) > MAX_PINNED:
            stored = None
        self._bytes += len(stored or b"")
        pin = Pin(None if data is None else digest_of(data), stored, is_late)
        self._pins[path] = pin
        return pin

    def drop(self, path: str) -> None:
        """Forget that the path was read."""
        pin = self._pins.pop(path, None)
        self._bytes -= len(pin.data or b"") if pin else 0

    def stored(self) -> Iterator[tuple[str, bytes]]:
        """Every file whose content is kept."""
        return ((path, pin.data) for path, pin in self._pins.items() if pin.data is not None)


def digest_of(data: bytes) -> bytes:
    """SHA-256 of the content."""
    return hashlib.sha256(data).digest()
