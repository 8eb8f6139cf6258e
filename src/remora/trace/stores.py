"""Where a project's streams and blobs are: files below its state folder, or a Postgres store."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from remora.trace.files.blobs import FileBlobs
from remora.trace.files.writer import FileTrace
from remora.trace.postgres.address import Address
from remora.trace.postgres.blobs import PostgresBlobs
from remora.trace.postgres.writer import PostgresTrace

if TYPE_CHECKING:
    from remora.ports import Clock
    from remora.trace.files.stream import SyncMode
    from remora.trace.index.update import Progress
    from remora.trace.library import Library
    from remora.trace.postgres.mirror import Mirror, StoreReader

StreamWriter = FileTrace | PostgresTrace
"""Writes streams of either store."""
StoredBlobs = FileBlobs | PostgresBlobs
"""Blobs of either store."""


class PostgresStore:
    """Writer, blobs and library of one Postgres store. `cache` holds local copies of what was read."""

    def __init__(self, address: Address, cache: Path) -> None:
        self.address = address
        self._cache = cache

    @cached_property
    def blobs(self) -> PostgresBlobs:
        """The blobs that streams reference by digest."""
        return PostgresBlobs(self.address)

    @cached_property
    def mirror(self) -> Mirror:
        """Local copies of the streams."""
        from remora.trace.postgres.mirror import Mirror

        return Mirror(self.address, self._cache / "stores" / self.address.digest)

    def reader(self) -> StoreReader:
        """A reader with a connection of its own."""
        from remora.trace.postgres.mirror import StoreReader

        return StoreReader(self.address)

    def library(self, progress: Progress | None = None, *, workspaces: Path | None = None) -> Library:
        """All streams of the store. `workspaces` is the folder of their agents' workspaces on this machine."""
        from remora.trace.postgres.library import PostgresLibrary

        return PostgresLibrary(self.mirror, self.blobs, workspaces=workspaces, progress=progress)

    def rebuild_index(self, progress: Progress | None = None) -> int:
        """Build the index again from the records. Returns how many there are. Only the store's owner may."""
        from remora.trace.postgres.index import StoreIndex

        return StoreIndex(self.reader(), self.blobs, progress).rebuild()

    def writer(self, clock: Clock, sync: SyncMode) -> PostgresTrace:
        """Writes streams into the store."""
        return PostgresTrace(self.address, clock=clock, sync=sync)
