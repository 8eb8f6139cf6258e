"""What may go: a pure decision over the facts of all streams, and the plan that comes of it.

An agent's stream goes as a whole, if a rule names it and nothing speaks for it:

    for its going     it ended more than `max_age_days` ago by the clock that its events are stamped with; the streams
                      and blobs take more than `max_total_bytes` (those recorded first go first); or `keep_last` is
                      the only rule, and it is not among the last
    for its staying   it is open, damaged, or held by a writer; it is among the `keep_last` newest of its operation;
                      it failed, with `keep_failed`; a stream that stays was forked from it

A run's stream goes when its run is over and none of its agents stays. A blob goes when no stream that stays names it
in any way, and it was not put lately: a writer puts a blob before it records the event that names it.
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

LATELY = timedelta(hours=1)
"""How long ago a blob must have been put, for nobody to be about to name it."""

_NOT_FAILED = ("success", "partial", "cancelled")


@dataclass(frozen=True)
class Retention:
    """What to keep. Without any of the first three rules, everything."""

    max_age_days: float | None = None
    max_total_bytes: int | None = None
    keep_last: int | None = None
    """The newest of each operation, which stay whatever the other rules say; alone, all others go."""
    keep_failed: bool = True
    """Runs that ended as `error` or `degraded` stay."""

    def __post_init__(self) -> None:
        for name in ("max_age_days", "max_total_bytes", "keep_last"):
            value = getattr(self, name)
            # Said this way round, because nan is neither below nor above anything.
            if value is not None and not value >= 0:
                raise ConfigError(f"`{name}` is {value}: expected 0 or more")


@dataclass(frozen=True)
class PrunedStream:
    """A stream that may go, and why."""

    stream_id: str
    run_id: str
    reason: str
    size: int
    looks: str
    """How the file looked when this was decided: it goes only if it still does."""


@dataclass(frozen=True)
class PrunedBlob:
    """A blob that may go. With `tombstone` its digest and size stay, as streams that stay for now name it."""

    digest: str
    size: int
    tombstone: bool


@dataclass(frozen=True)
class PrunePlan:
    """What would go. Nothing has gone yet."""

    state_dir: Path
    now: datetime
    streams: tuple[PrunedStream, ...]
    """Whole streams that go; with `blobs_only`, those whose blobs do."""
    blobs: tuple[PrunedBlob, ...]
    blobs_only: bool = False

    @property
    def bytes_freed(self) -> int:
        """How many bytes on the disk would go."""
        streams = 0 if self.blobs_only else sum(stream.size for stream in self.streams)
        return streams + sum(blob.size for blob in self.blobs)


def plan_prune(state_dir: Path, retention: Retention, now: datetime, *, blobs_only: bool = False) -> PrunePlan:
    """What `retention` lets go of at `now`, as the disk is; nothing is touched."""
    blobs = scan_blobs(state_dir)
    streams = scan_streams(state_dir, blobs)
    reasons = decide(streams, blobs, retention, now)
    going = tuple(
        PrunedStream(each.stream_id, each.run_id, reasons[each.stream_id], each.size, each.looks)
        for each in streams
        if each.stream_id in reasons
    )
    return PrunePlan(state_dir, now, going, _going_blobs(streams, blobs, reasons, now, blobs_only), blobs_only)


def decide(
    streams: Sequence[StreamFacts], blobs: Mapping[str, BlobFacts], retention: Retention, now: datetime
) -> dict[str, str]:
    """Why each stream that may go may go, by stream id. Pure."""
    agents = [each for each in streams if each.kind == "traces"]
    agents.sort(key=_order)
    kept = _kept(agents, retention)
    free = [each for each in agents if each.over and not each.locked and each.stream_id not in kept]
    reasons = {each.stream_id: why for each in free if (why := _rule(each, retention, now))}
    _spare_parents(agents, reasons)
    if retention.max_total_bytes is not None:
        _shrink(streams, free, blobs, reasons, retention.max_total_bytes)
    return reasons | _runs(streams, reasons, retention, now)


def _order(stream: StreamFacts) -> tuple[str, str]:
    """As they were recorded: by id; a name that is no id of ours stands where its last event's time puts it."""
    return order_of(stream.stream_id.partition("/")[2], stream.last_ts), stream.stream_id


def _kept(agents: Sequence[StreamFacts], retention: Retention) -> set[str]:
    """The streams that a rule speaks for; `agents` are in the order of recording."""
    kept = {each.stream_id for each in agents if retention.keep_failed and each.outcome not in _NOT_FAILED}
    seen: Counter[str] = Counter()
    for each in reversed(agents):
        seen[each.operation] += 1
        if seen[each.operation] <= (retention.keep_last or 0):
            kept.add(each.stream_id)
    return kept


def _rule(stream: StreamFacts, retention: Retention, now: datetime) -> str:
    """Why it may go by itself, not counting the total size."""
    if _is_old(stream, retention, now):
        return f"it ended more than {retention.max_age_days:g} days ago"
    if retention.keep_last is not None and retention.max_age_days is None and retention.max_total_bytes is None:
        return f"it is not among the last {retention.keep_last} of `{stream.operation}`"
    return ""


def _is_old(stream: StreamFacts, retention: Retention, now: datetime) -> bool:
    return retention.max_age_days is not None and stream.last_ts < timestamp(
        now - timedelta(days=retention.max_age_days)
    )


def _spare_parents(agents: Iterable[StreamFacts], reasons: dict[str, str]) -> None:
    """No stream goes that one which stays goes on from."""
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
    """The oldest go, too, until what stays takes `limit` bytes at most, or nothing more may go."""
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
    """The streams of runs that are over and none of whose agents stays; where age is the only rule, old ones."""
    needed = {each.run_id for each in streams if each.kind == "traces" and each.stream_id not in reasons}
    runs = [each for each in streams if each.kind == "runs" and each.over and not each.locked]
    only_age = retention.keep_last is None and retention.max_total_bytes is None
    return {
        each.stream_id: "none of its agents stays"
        for each in runs
        if each.run_id not in needed and (_is_old(each, retention, now) or (bool(each.agents) and not only_age))
    }


def _going_blobs(
    streams: Sequence[StreamFacts],
    blobs: Mapping[str, BlobFacts],
    reasons: Mapping[str, str],
    now: datetime,
    blobs_only: bool,
) -> tuple[PrunedBlob, ...]:
    kept = {digest for each in streams if each.stream_id not in reasons for digest in each.blobs}
    named = {digest for each in streams for digest in each.blobs}
    before = (now - LATELY).timestamp()
    return tuple(
        PrunedBlob(blob.digest, blob.size, tombstone=blobs_only and blob.digest in named)
        for blob in blobs.values()
        if blob.digest not in kept and blob.newest < before and not (blobs_only and blob.bare and blob.digest in named)
    )
