"""Carrying out a prune plan. A crash at any moment leaves no stream that references a deleted blob.

Streams are deleted and synced before any blob. In between, the references of the kept streams are read again. A blob is
renamed before it is deleted, and renamed back if it was written again meanwhile. The next plan finds whatever a crash
leaves behind.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from remora.errors import TraceError
from remora.events import short_id
from remora.trace.files.blobs import MAX_PROVEN, READ_ERRORS, TooLarge, open_plain, parts
from remora.trace.files.disk import Disk
from remora.trace.files.state import KINDS
from remora.trace.index.fill import fingerprint_of
from remora.trace.index.index import TraceIndex
from remora.trace.index.update import scan
from remora.trace.retention.plan import RECENT, PrunedBlob, PrunedStream, PrunePlan
from remora.trace.retention.scan import ASIDE, GONE, BlobFacts, named_blobs, scan_blobs

PRUNED = ".pruned"


@dataclass(frozen=True)
class PruneResult:
    """What was deleted."""

    streams: tuple[str, ...]
    blobs: tuple[str, ...]
    bytes_freed: int
    skipped: tuple[str, ...]
    """What was kept although the plan named it, and why."""


def prune(plan: PrunePlan, *, disk: Disk | None = None) -> PruneResult:
    """Delete what the plan names, except what has changed since. Raises `TraceError` if the disk fails."""
    work = _Prune(plan, disk or Disk())
    try:
        if not plan.blobs_only:
            work.delete_streams()
        work.delete_blobs()
    except OSError as error:
        raise TraceError(f"`{plan.state_dir}` cannot be pruned: {error.strerror}", hint="Run it again") from error
    if plan.blobs_only and work.blobs:
        work.forget_texts()
    return PruneResult(tuple(work.streams), tuple(work.blobs), work.freed, tuple(work.skipped))


class _Prune:
    def __init__(self, plan: PrunePlan, disk: Disk) -> None:
        self._plan = plan
        self._disk = disk
        self._before = (plan.now - RECENT).timestamp()
        self.streams: list[str] = []
        self.blobs: list[str] = []
        self.skipped: list[str] = []
        self.freed = 0

    def delete_streams(self) -> None:
        """Delete the planned streams durably: agents first, so that no agent is left without its run."""
        needed: set[str] = set()
        for stream in sorted(self._plan.streams, key=lambda each: each.stream_id.startswith("runs/")):
            is_run = stream.stream_id.startswith("runs/")
            if is_run and stream.run_id in needed:
                self.skipped.append(f"{label(stream)}: one of its agents is kept")
            elif not self._delete_stream(stream):
                needed.add(stream.run_id)
        for folder in (self._plan.state_dir / kind for kind in KINDS):
            if folder.is_dir():
                self._disk.sync_dir(folder)

    def delete_blobs(self) -> None:
        """Delete the planned blobs that no kept stream references now."""
        there = scan_blobs(self._plan.state_dir)
        named = self._named_now(there)
        for planned in self._plan.blobs:
            if planned.digest in named:
                self.skipped.append(f"`{planned.digest}`: a kept stream references it")
            elif planned.digest in there:
                self._delete_blob(planned, there[planned.digest])

    def forget_texts(self) -> None:
        """Remove the text of deleted blobs from the index."""
        with TraceIndex(self._plan.state_dir, text=False) as index:
            if not index.read_again([stream.stream_id for stream in self._plan.streams]).complete:
                self.skipped.append("`index.db`: it may contain words of pruned blobs until it is rebuilt")

    def _delete_stream(self, stream: PrunedStream) -> bool:
        path = self._plan.state_dir / f"{stream.stream_id}.jsonl"
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            path.with_suffix(".torn").unlink(missing_ok=True)
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if fingerprint_of(path) != stream.looks:
                self.skipped.append(f"{label(stream)}: it has changed")
                return False
            # `heads.log` and the run's stream still name it: `verify` must tell pruned from lost.
            path.with_suffix(PRUNED).touch(mode=0o600)
            path.unlink()
            path.with_suffix(".torn").unlink(missing_ok=True)
        except BlockingIOError:
            self.skipped.append(f"{label(stream)}: it is being written")
            return False
        finally:
            os.close(handle)
        self.streams.append(stream.stream_id)
        self.freed += stream.size
        return True

    def _named_now(self, blobs: dict[str, BlobFacts]) -> set[str]:
        going = {stream.stream_id for stream in self._plan.streams} if self._plan.blobs_only else set()
        staying = [self._plan.state_dir / f"{name}.jsonl" for name in scan(self._plan.state_dir) if name not in going]
        named = [named_blobs(file, blobs) for path in staying for file in (path, path.with_suffix(".torn"))]
        return set().union(*named)

    def _delete_blob(self, planned: PrunedBlob, found: BlobFacts) -> None:
        data = [path for path in found.files if path.suffix != GONE]
        if planned.tombstone and data:
            self._write_tombstone(planned.digest, data[0])
        files = data if planned.tombstone else found.files
        sizes = {path: path.stat().st_size for path in files}
        gone = [path for path in files if self._delete_file(path)]
        self._disk.sync_dir(found.files[0].parent)
        self.freed += sum(sizes[path] for path in gone)
        if len(gone) == len(files):
            self.blobs.append(planned.digest)
        else:
            self.skipped.append(f"`{planned.digest}`: it was written again")

    def _delete_file(self, path: Path) -> bool:
        """Delete a file unless it was written again after the plan; return whether it is gone."""
        aside = path if path.name.endswith(ASIDE) else path.with_name(path.name + ASIDE)
        if path.suffix == GONE:
            path.unlink()
            return True
        if self._is_recent(path):
            return False
        if aside != path:
            self._disk.rename(path, aside)
        if self._is_recent(aside):
            self._disk.rename(aside, aside.with_name(aside.name.removesuffix(ASIDE)))
            return False
        aside.unlink()
        return True

    def _is_recent(self, path: Path) -> bool:
        return path.stat().st_mtime >= self._before

    def _write_tombstone(self, digest: str, data: Path) -> None:
        """Write the tombstone durably."""
        base = data.parent / data.name.split(".")[0]
        aside = base.with_suffix(f".{os.urandom(8).hex()}.tmp")
        handle = self._disk.open_append(aside)
        try:
            self._disk.write(handle, orjson.dumps({"digest": digest, "size": _unpacked_size(data)}))
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)
        self._disk.rename(aside, base.with_suffix(GONE))
        self._disk.sync_dir(base.parent)


def _unpacked_size(path: Path) -> int:
    """Bytes of the uncompressed blob; of a damaged or endless blob, bytes of its file."""
    try:
        with open_plain(str(path)) as file:
            return sum(map(len, parts(file, MAX_PROVEN, packed=".gz" in path.suffixes)))
    except (TooLarge, *READ_ERRORS):
        return path.stat().st_size


def label(stream: PrunedStream) -> str:
    """A stream as people name it."""
    kind, _, name = stream.stream_id.partition("/")
    return f"{'run' if kind == 'runs' else 'agent'} {short_id(name)}"
