"""`PostgresLibrary`: reads all streams of a store, as `Library` reads those of a folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from remora.events import is_id, next_id
from remora.trace.files.state import choose, find_streams
from remora.trace.index.index import TraceIndex
from remora.trace.library import Library
from remora.trace.postgres.blobs import PostgresBlobs
from remora.trace.postgres.mirror import Mirror

if TYPE_CHECKING:
    from remora.trace.files.lines import StreamKind
    from remora.trace.index.update import Progress as Indexing


class PostgresLibrary(Library):
    """Reads the streams of a store over their local copies, which every question first brings up to date."""

    def __init__(self, mirror: Mirror, blobs: PostgresBlobs, *, progress: Indexing | None = None) -> None:
        super().__init__(mirror.folder, progress=progress)
        self._mirror = mirror
        self._stored = blobs

    def find(self, fragment: str, kind: StreamKind | None = None) -> Path:
        """The copy of the stream that `fragment` names."""
        names = self._mirror.reader.ask(
            "SELECT stream_id FROM @.streams WHERE records > 0 AND (%s::text IS NULL OR stream_id LIKE %s)",
            [kind, f"{kind}/%"],
        )
        stream_id = choose([name for (name,) in names], fragment, str(self._mirror.reader.address))
        return self._mirror.pull([stream_id])[0]

    def files(self, stream_ids: Collection[str]) -> list[Path]:
        """The copies of these streams, as far as they exist."""
        return self._mirror.pull(stream_ids)

    def file(self, stream_id: str) -> Path:
        """The copy of a stream, which may not exist."""
        self._mirror.pull([stream_id])
        return self._mirror.path(stream_id)

    def runs(self) -> list[Path]:
        """The copies of all runs, oldest first."""
        self._mirror.pull_all("runs")
        return find_streams(self.state_dir, "runs")

    def refresh(self) -> None:
        """Bring the copies of all streams up to date."""
        self._mirror.pull_all()

    def new_id(self, now: datetime) -> str:
        """A new id that sorts after every stream of the store."""
        self._mirror.reader.connection(create=True)  # a run's first id: there may be no store yet
        rows = self._mirror.reader.ask(
            "SELECT max(split_part(stream_id, '/', 2)) FROM @.streams WHERE stream_id ~ '/[0-7][0-9A-HJKMNP-TV-Z]{25}$'"
        )
        known = rows[0][0] or ""
        return next_id(now, known if is_id(known) else "")

    @contextmanager
    def _index(self) -> Iterator[TraceIndex]:
        self.refresh()
        with super()._index() as index:
            yield index
