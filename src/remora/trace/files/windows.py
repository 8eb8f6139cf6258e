"""`BlobWindows`: parts of blobs of any size, in bounded memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remora.errors import TraceError
from remora.trace.files.blobs import MAX_PROVEN, FileBlobs

if TYPE_CHECKING:
    from remora.trace.stores import StoredBlobs

MAX_KNOWN = 256
"""Blobs whose digest was checked and that are not checked again while their file is the same."""


@dataclass(frozen=True)
class Window:
    """Some bytes of a blob."""

    data: bytes
    start: int
    size: int
    """Of the whole blob."""


class BlobWindows:
    """Reads windows of blobs. The digest of the whole blob is checked before its first window is given out."""

    def __init__(self, blobs: StoredBlobs) -> None:
        self._blobs = blobs
        self._known: dict[str, tuple[object, int]] = {}

    def read(self, digest: str, start: int, length: int) -> Window:
        """At most `length` bytes from `start` on. Raises `TraceError` if the blob is missing or damaged."""
        size = self._proven_size(digest)
        if start >= size:
            return Window(b"", size, size)
        found, at, left = bytearray(), 0, min(length, size - start)
        for chunk in self._blobs.chunks(digest):
            if at + len(chunk) > start:
                found += chunk[max(start - at, 0) : max(start - at, 0) + left - len(found)]
            at += len(chunk)
            if len(found) >= left:
                break
        return Window(bytes(found), start, size)

    def find(self, digest: str, words: bytes, start: int = 0) -> int | None:
        """Where `words` are next, from `start` on, whatever their case; None if they are not. Raises `TraceError`."""
        self._proven_size(digest)
        words, at, kept = words.lower(), 0, b""
        for chunk in self._blobs.chunks(digest):
            text = kept + chunk.lower()
            place = text.find(words, max(start - (at - len(kept)), 0))
            if place >= 0:
                return at - len(kept) + place
            kept = text[max(len(text) - len(words) + 1, 0) :]
            at += len(chunk)
        return None

    def _proven_size(self, digest: str) -> int:
        mark = self._mark(digest)
        known = self._known.get(digest)
        if known is not None and mark is not None and known[0] == mark:
            return known[1]
        proof = self._blobs.prove(digest, MAX_PROVEN)
        if proof.found != "right":
            raise TraceError(f"Blob `{digest}` cannot be shown: it is {proof.found}")
        while len(self._known) >= MAX_KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[digest] = (mark, proof.size)
        return proof.size

    def _mark(self, digest: str) -> object:
        """What changes when the blob's file does. A store's blobs never change."""
        if not isinstance(self._blobs, FileBlobs):
            return digest
        path = self._blobs.path(digest)
        if path is None:
            return None
        try:
            found = os.lstat(path)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns
