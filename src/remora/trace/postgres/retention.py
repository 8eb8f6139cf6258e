"""Retention in a Postgres store: the same rules as for files, carried out by the store's owner.

A stream is deleted in one transaction, if it did not change since the plan and nobody writes it. Blobs are deleted
afterwards, if no kept stream references them and they were not stored recently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from remora.trace.index.update import scan
from remora.trace.postgres.connection import driver, query, store_error
from remora.trace.retention.plan import RECENT, PrunePlan, Retention, make_plan
from remora.trace.retention.prune import PruneResult, label
from remora.trace.retention.scan import BlobFacts, named_blobs, scan_streams

if TYPE_CHECKING:
    from remora.trace.postgres.mirror import StoreReader
    from remora.trace.retention.plan import PrunedStream


def plan_store(
    reader: StoreReader, copies: Path, retention: Retention, now: datetime, *, blobs_only: bool
) -> PrunePlan:
    """What `retention` would delete at `now`. `copies` are up to date."""
    blobs = _blobs(reader)
    looks = {
        stream_id: (f"{records}:{head.hex()}", alive)
        for stream_id, records, head, alive in reader.ask(
            "SELECT t.stream_id, t.records, t.head, coalesce(w.lease_until > clock_timestamp(), false) "
            "FROM @.streams t LEFT JOIN @.writers w ON w.id = t.writer WHERE t.records > 0"
        )
    }
    found = [
        replace(each, looks=looks[each.stream_id][0], locked=looks[each.stream_id][1])
        for each in scan_streams(copies, blobs)
        if each.stream_id in looks
    ]
    return make_plan(copies, found, blobs, retention, now, blobs_only=blobs_only)


def delete_planned(reader: StoreReader, plan: PrunePlan, refresh: Callable[[], None]) -> PruneResult:
    """Delete what the plan names, except what has changed since. Raises `ConfigError` if the role may not."""
    streams: list[PrunedStream] = []
    skipped: list[str] = []
    needed: set[str] = set()
    if not plan.blobs_only:
        for stream in sorted(plan.streams, key=lambda each: each.stream_id.startswith("runs/")):
            if stream.stream_id.startswith("runs/") and stream.run_id in needed:
                skipped.append(f"{label(stream)}: one of its agents is kept")
            elif _delete_stream(reader, stream):
                streams.append(stream)
            else:
                needed.add(stream.run_id)
                skipped.append(f"{label(stream)}: it has changed")
    refresh()
    going = {stream.stream_id for stream in plan.streams} if plan.blobs_only else set()
    there = _blobs(reader)
    staying = [plan.state_dir / f"{name}.jsonl" for name in scan(plan.state_dir) if name not in going]
    named = set[str]().union(*(named_blobs(path, there) for path in staying))
    blobs = [
        blob
        for blob in plan.blobs
        if blob.digest not in named and _delete_blob(reader, blob.digest, plan, blob.tombstone)
    ]
    freed = sum(stream.size for stream in streams) + sum(blob.size for blob in blobs)
    names = tuple(stream.stream_id for stream in streams)
    return PruneResult(names, tuple(blob.digest for blob in blobs), freed, tuple(skipped))


def _blobs(reader: StoreReader) -> dict[str, BlobFacts]:
    rows = reader.ask("SELECT digest, size, extract(epoch FROM stored)::float8, pruned FROM @.blobs")
    facts = (BlobFacts(f"sha256:{name.hex()}", (), 0 if bare else size, at, bare) for name, size, at, bare in rows)
    return {each.digest: each for each in facts}


def _delete_stream(reader: StoreReader, stream: PrunedStream) -> bool:
    """Delete one stream, if it is still as planned."""
    records, _, head = stream.looks.partition(":")
    return _in_transaction(
        reader,
        "SELECT t.id FROM @.streams t LEFT JOIN @.writers w ON w.id = t.writer WHERE stream_id = %s AND records = %s "
        "AND head = decode(%s, 'hex') AND NOT coalesce(w.lease_until > clock_timestamp(), false) FOR UPDATE OF t",
        [stream.stream_id, int(records), head],
        (
            "DELETE FROM @.records WHERE stream = %s",
            "DELETE FROM @.index_events WHERE stream = %s",
            "DELETE FROM @.index_streams WHERE stream = %s",
            "INSERT INTO @.pruned_streams (stream_id) SELECT stream_id FROM @.streams WHERE id = %s "
            "ON CONFLICT DO NOTHING",
            "DELETE FROM @.streams WHERE id = %s",
        ),
    )


def _delete_blob(reader: StoreReader, digest: str, plan: PrunePlan, tombstone: bool) -> bool:
    """Delete one blob, unless it was stored again."""
    end = "UPDATE @.blobs SET pruned = true WHERE digest = %s" if tombstone else "DELETE FROM @.blobs WHERE digest = %s"
    return _in_transaction(
        reader,
        "SELECT digest FROM @.blobs WHERE digest = decode(%s, 'hex') AND stored < %s FOR UPDATE",
        [digest.removeprefix("sha256:"), plan.now - RECENT],
        ("DELETE FROM @.blob_parts WHERE digest = %s", end),
    )


def _in_transaction(reader: StoreReader, choose: str, values: Sequence[object], deletes: Sequence[str]) -> bool:
    connection, schema = reader.connection(), reader.address.schema
    try:
        with connection.transaction():
            row = connection.execute(query(choose, schema), values).fetchone()
            if row is None:
                return False
            for sql in deletes:
                connection.execute(query(sql, schema), [row[0]])
    except driver().Error as error:
        raise store_error(error, reader.address, "Only the store's owner may delete: connect as that role") from error
    return True
