"""Facts for retention: each stream, and the blobs on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from remora.errors import TraceError, TraceNotFound
from remora.trace.files.disk import Disk
from remora.trace.files.lines import SEAL, StreamKind
from remora.trace.files.reader import read_lines, read_records
from remora.trace.index.fill import event_row
from remora.trace.index.update import scan

GONE = ".gone"
"""Suffix of a tombstone: JSON with `digest` and `size` of a pruned blob."""
ASIDE = ".pruning"
"""Suffix of a blob that is about to be deleted."""

_DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")
_NOTHING: dict[str, Any] = {"seq": -1, "type": ""}
_BLOB_FILE = re.compile(r"([0-9a-f]{62})\.(raw|gz|gone)(\.pruning)?")


@dataclass(frozen=True)
class StreamFacts:
    """The facts about one stream that retention needs."""

    stream_id: str
    kind: StreamKind
    looks: str
    size: int
    """Bytes of the stream and its torn tails."""
    over: bool
    """Whether it is intact and has ended: sealed, or for a run's stream, `run_end` was recorded."""
    locked: bool
    outcome: str
    operation: str
    run_id: str
    agent_id: str
    last_ts: str
    parent: str
    """The agent that it was forked from or continues; empty if there is none."""
    agents: frozenset[str]
    """Agents that the run scheduled."""
    blobs: frozenset[str]
    """Digests of existing blobs that appear anywhere in its bytes."""


@dataclass(frozen=True)
class BlobFacts:
    """The files of one digest."""

    digest: str
    files: tuple[Path, ...]
    size: int
    """Bytes of the blob's files; if only a tombstone is left, its bytes."""
    newest: float
    """When the blob was last written, in seconds; 0 for a tombstone."""
    bare: bool
    """Whether only a tombstone is left."""


def scan_blobs(state_dir: Path) -> dict[str, BlobFacts]:
    """All blobs and tombstones, by digest."""
    files: dict[str, list[Path]] = {}
    folders = (folder for folder in (state_dir / "blobs" / "sha256").glob("??") if not folder.is_symlink())
    for path in sorted(path for folder in folders for path in folder.glob("*")):
        if match := _BLOB_FILE.fullmatch(path.name):
            files.setdefault(f"sha256:{path.parent.name}{match[1]}", []).append(path)
    return {digest: facts for digest, found in files.items() if (facts := _blob_facts(digest, found))}


def _blob_facts(digest: str, files: list[Path]) -> BlobFacts | None:
    data = [path for path in files if path.suffix != GONE]
    try:
        stats = [path.stat() for path in data or files]
    except OSError:
        return None  # another process is deleting it
    newest = max(stat.st_mtime for stat in stats) if data else 0.0
    return BlobFacts(digest, tuple(files), sum(stat.st_size for stat in stats), newest, not data)


def scan_streams(state_dir: Path, blobs: Collection[str]) -> list[StreamFacts]:
    """The facts of every stream, by stream id."""
    return [_stream_facts(state_dir, stream_id, looks, blobs) for stream_id, looks in scan(state_dir).items()]


def named_blobs(path: Path, blobs: Collection[str]) -> frozenset[str]:
    """Those of `blobs` whose digest appears anywhere in the file, even in a damaged part. Rather too many."""
    found: set[str] = set()
    try:
        for line in read_lines(path):
            found.update(digest for digest in digests_in(line) if digest in blobs)
    except TraceNotFound:
        return frozenset()
    except TraceError:
        return frozenset(blobs)
    return frozenset(found)


def is_locked(path: Path) -> bool:
    """Whether a writer has the stream open; True if unknown."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        return Disk().has_writer(handle)
    except OSError:
        return True
    finally:
        os.close(handle)


def digests_in(line: bytes) -> Iterator[str]:
    """All digests in a line, whatever they name."""
    yield from (found.decode() for found in _DIGEST.findall(line))
    if b"\\u00" in line:  # our writer never escapes a digest, but another one might
        try:
            yield from (found.decode() for found in _DIGEST.findall(orjson.dumps(orjson.loads(line))))
        except (ValueError, TypeError):
            return


def _stream_facts(state_dir: Path, stream_id: str, looks: str, blobs: Collection[str]) -> StreamFacts:
    path = state_dir / f"{stream_id}.jsonl"
    torn = path.with_suffix(".torn")
    is_run = stream_id.startswith("runs/")
    ends = _read(path, is_run=is_run)
    first, last = event_row(0, 0, ends.first), event_row(0, 0, ends.last)
    return StreamFacts(
        stream_id=stream_id,
        kind="runs" if is_run else "traces",
        looks=looks,
        size=_size(path) + _size(torn),
        over=ends.over,
        locked=is_locked(path),
        outcome=last.outcome or "success",
        operation=first.owner.operation,
        run_id=path.stem if is_run else first.owner.run_id,
        agent_id="" if is_run else path.stem,
        last_ts=last.ts,
        parent=_parent(ends.first),
        agents=frozenset(ends.agents),
        blobs=named_blobs(path, blobs) | named_blobs(torn, blobs),
    )


@dataclass
class _StreamEnds:
    first: dict[str, Any]
    last: dict[str, Any]
    agents: set[str]
    over: bool = False


def _read(path: Path, *, is_run: bool) -> _StreamEnds:
    """Read the first and last record, and the agents in a run's stream. A damaged stream has not ended."""
    ends = _StreamEnds(dict(_NOTHING), dict(_NOTHING), set())
    ended = False
    try:
        for record in read_records(path, quick=not is_run):
            fields = record.fields or _NOTHING
            ends.first = fields if record.seq == 0 else ends.first
            ends.last = fields
            ended = record.type == SEAL or (is_run and (ended or record.type == "run_end"))
            if record.type == "agent_scheduled":
                ends.agents.add(event_row(0, 0, fields).owner.agent_id)
    except TraceError:
        return ends
    ends.over = ended
    return ends


def _parent(first: dict[str, Any]) -> str:
    data = first.get("data")
    parent = data.get("parent") if isinstance(data, dict) else None
    agent_id = parent.get("agent_id") if isinstance(parent, dict) else None
    return agent_id if isinstance(agent_id, str) else ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
