"""`PostgresLibrary`: reads all streams of a store, as `Library` reads those of a folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from remora.events import is_id, next_id
from remora.trace.files.heads import Heads, Note
from remora.trace.files.state import choose, find_streams
from remora.trace.index.query import Clean, Filter, Hit
from remora.trace.library import LOOK_AGAIN_S, Library, WaitForNews
from remora.trace.postgres.index import StoreIndex
from remora.trace.postgres.retention import delete_planned, plan_store
from remora.trace.postgres.tail import Listener
from remora.trace.retention.prune import PRUNED
from remora.trace.verification.state import Progress, Verification, Verifier

if TYPE_CHECKING:
    from remora.trace.files.lines import StreamKind
    from remora.trace.index.index import StreamInfo
    from remora.trace.index.update import Progress as Indexing
    from remora.trace.postgres.blobs import PostgresBlobs
    from remora.trace.postgres.mirror import Mirror
    from remora.trace.retention.plan import PrunePlan, Retention
    from remora.trace.retention.prune import PruneResult

_EVERYTHING = Filter()


class PostgresLibrary(Library):
    """Reads the streams of a store: finds them by SQL, and reads them from local copies that it brings up to date."""

    def __init__(
        self, mirror: Mirror, blobs: PostgresBlobs, *, workspaces: Path | None = None, progress: Indexing | None = None
    ) -> None:
        """`workspaces` is the folder of agents' workspaces on this machine, if it is this user's own."""
        super().__init__(mirror.folder, progress=progress)
        self._workspaces = workspaces or self._workspaces
        self._mirror = mirror
        self._reader = mirror.reader
        self._stored = blobs
        self._found = StoreIndex(self._reader, blobs, progress)
        self.notices = self._found.notices

    def find(self, fragment: str, kind: StreamKind | None = None) -> Path:
        """The copy of the stream that `fragment` names."""
        names = self._reader.ask(
            "SELECT stream_id FROM @.streams WHERE records > 0 AND (%s::text IS NULL OR stream_id LIKE %s)",
            [kind, f"{kind}/%"],
        )
        stream_id = choose([name for (name,) in names], fragment, str(self._reader.address))
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
        self._reader.connection(create=True)  # a run's first id: there may be no store yet
        rows = self._reader.ask(
            "SELECT max(split_part(stream_id, '/', 2)) FROM @.streams WHERE stream_id ~ '/[0-7][0-9A-HJKMNP-TV-Z]{25}$'"
        )
        known = rows[0][0] or ""
        return next_id(now, known if is_id(known) else "")

    def agents(self, wanted: Filter = _EVERYTHING) -> list[StreamInfo]:
        """One row for each agent's stream, in the order of recording."""
        return self._found.streams(self._named(wanted), "traces")

    def newest_agents(self, wanted: Filter = _EVERYTHING, *, limit: int) -> tuple[list[StreamInfo], int]:
        """The newest `limit` rows of `agents`, and how many there are in all."""
        return self._found.newest(self._named(wanted), "traces", limit)

    def search(self, text: str, wanted: Filter = _EVERYTHING, *, limit: int = 50, clean: Clean = str) -> list[Hit]:
        """The newest events that contain every word of `text`. Excerpts are taken from what `clean` returns."""
        return self._found.search(text, self._named(wanted), limit, clean)

    def verify(
        self, fragment: str | None = None, *, quick: bool = False, progress: Progress | None = None
    ) -> Verification:
        """Fetch one stream, or all, again and check them, with every blob that they reference.

        The store notes the head and the number of records of each stream beside the records.
        """
        self._mirror.forget()
        rows = self._reader.ask("SELECT stream_id, records, head FROM @.streams WHERE records > 0")
        noted = {name: [Note(name, records, f"sha256:{head.hex()}")] for name, records, head in rows}
        heads = Heads(self.state_dir / "streams", True, noted)
        verifier = Verifier(self.state_dir, quick=quick, progress=progress, blobs=self._stored, heads=heads)
        if fragment:
            return verifier.verify_one(self.find(fragment), self.runs())
        self.refresh()
        for (stream_id,) in self._reader.ask("SELECT stream_id FROM @.pruned_streams"):
            self._mirror.path(stream_id).with_suffix(PRUNED).touch(mode=0o600)
        return verifier.verify_all(self.runs(), find_streams(self.state_dir, "traces"))

    @asynccontextmanager
    async def watch(self, path: Path, *, look_s: float = LOOK_AGAIN_S) -> AsyncIterator[WaitForNews]:
        """A function that waits for a notice of the store, and then brings the stream's copy up to date."""
        stream_id = f"{path.parent.name}/{path.stem}"
        async with Listener(self._reader.address) as listener:

            async def wait_for_news() -> None:
                await listener.wait(stream_id)
                await asyncio.to_thread(self._mirror.pull, [stream_id])

            yield wait_for_news

    def plan_prune(self, retention: Retention, now: datetime, *, blobs_only: bool = False) -> PrunePlan:
        """What `retention` would delete. Deletes nothing."""
        self.refresh()
        return plan_store(self._reader, self.state_dir, retention, now, blobs_only=blobs_only)

    def prune(self, plan: PrunePlan) -> PruneResult:
        """Delete what the plan names, and the workspaces of those agents on this machine. Only the owner may."""
        result = delete_planned(self._reader, plan, self._mirror.pull_all)
        self.refresh()
        self._delete_workspaces(result.streams)
        return result
