"""Which streams and blobs may be deleted: a pure decision over the facts of all streams, and the resulting plan.

An agent's stream is deleted as a whole, if one of the first rules applies to it and none of the second:

    delete    it ended more than `max_age_days` ago, by the time of its last event; streams and blobs take more than
`max_total_bytes` (oldest first); or `keep_last` is the only rule, and it is not among the last     keep      it is
open, damaged, or locked by a writer; it is among the `keep_last` newest of its operation; it failed,               with
`keep_failed`; or a kept stream was forked from it

A run's stream is deleted when the run has ended and none of its agents is kept. A blob is deleted when no kept stream
references it and it was not written recently: a writer stores a blob before it records the event that references it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from remora.errors import ConfigError
from remora.events import order_of, timestamp
from remora.trace.retention.scan import BlobFacts, StreamFacts, scan_blobs, scan_streams

RECENT = timedelta(hours=1)
"""Blobs newer than this are kept: an event that references them may be about to be written."""

_NOT_FAILED = ("success", "partial", "cancelled")


@dataclass(frozen=True)
class Retention:
    """Retention rules. Without any of the first three, everything is kept."""

    max_age_days: float | None = None
    max_total_bytes: int | None = None
    keep_last: int | None = None
    """Keep the newest streams of each operation, whatever the other rules say. Alone: delete all others."""
    keep_failed: bool = True
    """Keep runs that ended as `error` or `degraded`."""

    def __post_init__(self) -> None:
        for name in ("max_age_days", "max_total_bytes", "keep_last"):
            value = getattr(self, name)
            # Written as `not value >= 0`, so that NaN is rejected too.
            if value is not None and not value >= 0:
                raise ConfigError(f"`{name}` is {value}: expected 0 or more")


@dataclass(frozen=True)
class PrunedStream:
    """A stream to delete, and why."""

    stream_id: str
    run_id: str
    reason: str
    size: int
    looks: str
    """Fingerprint of the file when the plan was made. The file is deleted only if it is unchanged."""


@dataclass(frozen=True)
class PrunedBlob:
    """A blob to delete. With `tombstone`, digest and size are kept, because kept streams reference it."""

    digest: str
    size: int
    tombstone: bool


@dataclass(frozen=True)
class PrunePlan:
    """What a prune would delete. Nothing is deleted yet."""

    state_dir: Path
    now: datetime
    streams: tuple[PrunedStream, ...]
    """Streams to delete; with `blobs_only`, streams whose blobs are deleted."""
    blobs: tuple[PrunedBlob, ...]
    blobs_only: bool = False

    @property
    def bytes_freed(self) -> int:
        """Bytes on disk that would be freed."""
        streams = 0 if self.blobs_only else sum(stream.size for stream in self.streams)
        return streams + sum(blob.size for blob in self.blobs)


def plan_prune(state_dir: Path, retention: Retention, now: datetime, *, blobs_only: bool = False) -> PrunePlan:
    """What `retention` would delete at `now`. Deletes nothing."""
    blobs = scan_blobs(state_dir)
    return make_plan(state_dir, scan_streams(state_dir, blobs), blobs, retention, now, blobs_only=blobs_only)


def make_plan(
    state_dir: Path,
    streams: Sequence[StreamFacts],
    blobs: Mapping[str, BlobFacts],
    retention: Retention,
    now: datetime,
    *,
    blobs_only: bool,
) -> PrunePlan:
    """The plan for these streams and blobs. Pure."""
    reasons = decide(streams, blobs, retention, now)
    going = tuple(
        PrunedStream(each.stream_id, each.run_id, reasons[each.stream_id], each.size, each.looks)
        for each in streams
        if each.stream_id in reasons
    )
    return PrunePlan(state_dir, now, going, _deletable_blobs(streams, blobs, reasons, now, blobs_only), blobs_only)


def decide(
    streams: Sequence[StreamFacts], blobs: Mapping[str, BlobFacts], retention: Retention, now: datetime
) -> dict[str, str]:
    """The reason for each stream that may be deleted, by stream id. Pure."""
    agents = [each for each in streams if each.kind == "traces"]
    agents.sort(key=_order)
    kept = _kept_by_rules(agents, retention)
    free = [each for each in agents if each.over and not each.locked and each.stream_id not in kept]
    reasons = {each.stream_id: why for each in free if (why := _rule(each, retention, now))}
    _keep_parents(agents, reasons)
    if retention.max_total_bytes is not None:
        _shrink(streams, free, blobs, reasons, retention.max_total_bytes)
    return reasons | _runs(streams, reasons, retention, now)


def _order(stream: StreamFacts) -> tuple[str, str]:
    """The order of recording: by id, or by the time of the last event if the name is not one of our ids."""
    return order_of(stream.stream_id.partition("/")[2], stream.last_ts), stream.stream_id


def _kept_by_rules(agents: Sequence[StreamFacts], retention: Retention) -> set[str]:
    """Streams that a rule keeps. `agents` are in the order of recording."""
    kept = {each.stream_id for each in agents if retention.keep_failed and each.outcome not in _NOT_FAILED}
    seen: Counter[str] = Counter()
    for each in reversed(agents):
        seen[each.operation] += 1
        if seen[each.operation] <= (retention.keep_last or 0):
            kept.add(each.stream_id)
    return kept


def _rule(stream: StreamFacts, retention: Retention, now: datetime) -> str:
    """Why the stream may be deleted, apart from the total size; empty if it may not."""
    if _is_old(stream, retention, now):
        return f"it ended more than {retention.max_age_days:g} days ago"
    if retention.keep_last is not None and retention.max_age_days is None and retention.max_total_bytes is None:
        return f"it is not among the last {retention.keep_last} of `{stream.operation}`"
    return ""


def _is_old(stream: StreamFacts, retention: Retention, now: datetime) -> bool:
    return retention.max_age_days is not None and stream.last_ts < timestamp(
        now - timedelta(days=retention.max_age_days)
    )


def _keep_parents(agents: Iterable[StreamFacts], reasons: dict[str, str]) -> None:
    """Keep the parents of kept streams."""
    parents = {each.stream_id: f"traces/{each.parent}" for each in agents if each.parent}
    while spared := {parents[child] for child in parents if child not in reasons} & reasons.keys():
        for stream_id in spared:
            del reasons[stream_id]


def _shrink(
    streams: Sequence[StreamFacts],
    free: Sequence[StreamFacts],
    blobs: Mapping[str, BlobFacts],
    reasons: dict[str, str],
    limit: int,
) -> None:
    """Delete the oldest streams until the rest takes at most `limit` bytes, or nothing more may be deleted."""
    staying = [each for each in streams if each.stream_id not in reasons]
    names = Counter(digest for each in staying for digest in each.blobs)
    total = sum(each.size for each in staying) + sum(blobs[digest].size for digest in names)
    children = Counter(each.parent for each in staying)
    candidates = [each for each in free if each.stream_id not in reasons]
    while total > limit and (oldest := next((each for each in candidates if not children[each.agent_id]), None)):
        candidates.remove(oldest)
        reasons[oldest.stream_id] = f"streams and blobs take more than {limit:,} bytes"
        children[oldest.parent] -= 1
        names.subtract(oldest.blobs)
        total -= oldest.size + sum(blobs[digest].size for digest in oldest.blobs if not names[digest])


def _runs(
    streams: Sequence[StreamFacts], reasons: Mapping[str, str], retention: Retention, now: datetime
) -> dict[str, str]:
    """Streams of ended runs without kept agents; if age is the only rule, only old ones."""
    needed = {each.run_id for each in streams if each.kind == "traces" and each.stream_id not in reasons}
    runs = [each for each in streams if each.kind == "runs" and each.over and not each.locked]
    only_age = retention.keep_last is None and retention.max_total_bytes is None
    return {
        each.stream_id: "none of its agents stays"
        for each in runs
        if each.run_id not in needed and (_is_old(each, retention, now) or (bool(each.agents) and not only_age))
    }


def _deletable_blobs(
    streams: Sequence[StreamFacts],
    blobs: Mapping[str, BlobFacts],
    reasons: Mapping[str, str],
    now: datetime,
    blobs_only: bool,
) -> tuple[PrunedBlob, ...]:
    kept = {digest for each in streams if each.stream_id not in reasons for digest in each.blobs}
    named = {digest for each in streams for digest in each.blobs}
    before = (now - RECENT).timestamp()
    return tuple(
        PrunedBlob(blob.digest, blob.size, tombstone=blobs_only and blob.digest in named)
        for blob in blobs.values()
        if blob.digest not in kept and blob.newest < before and not (blobs_only and blob.bare and blob.digest in named)
    )
