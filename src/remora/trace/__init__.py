"""The Long Track on disk: writing and reading streams and blobs, and the views over them that can be rebuilt.

Import names from here; the subpackages are private. Names are loaded when they are first used, so that a reader loads
no writer.

    files            streams and blobs as files: writer, reader, blobs, heads, ownership of the state folder
    index            the SQLite index over all streams
    turns            tool calls by trace key
    postgres         streams and blobs in a Postgres database
    retention        which streams and blobs may be deleted, and deleting them
    verification     what the bytes prove
    library          all streams of one project, for readers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora._lazy import lazy_names

if TYPE_CHECKING:
    from remora.trace.files.blobs import FileBlobs
    from remora.trace.files.disk import Disk
    from remora.trace.files.lines import MAX_LINE, StreamKind, check_stream_id
    from remora.trace.files.memory import MemoryBlobs, MemoryTrace
    from remora.trace.files.outline import Outline, OutlinedTurn
    from remora.trace.files.ownership import (
        Standing,
        check_state_dir,
        claim,
        forget_own,
        make_own,
        private_folder,
        standing,
        user_state_home,
    )
    from remora.trace.files.reader import Position, Record, read_events, read_lines, read_records
    from remora.trace.files.skim import pick_events, read_changes, read_picked
    from remora.trace.files.state import find_streams, new_stream_id, resolve
    from remora.trace.files.stream import SyncMode
    from remora.trace.files.windows import BlobWindows, Window
    from remora.trace.files.writer import FileTrace, StreamEmitter
    from remora.trace.index.index import StreamInfo, TraceIndex
    from remora.trace.index.query import Filter, Found, Hit
    from remora.trace.index.update import CatchUp
    from remora.trace.library import Intact, Library
    from remora.trace.postgres.address import Address, is_store_url, parse_address, without_password
    from remora.trace.postgres.blobs import PostgresBlobs
    from remora.trace.postgres.copy import Copied, copy_in, copy_out
    from remora.trace.postgres.store import StoreStatus, init_store, store_status
    from remora.trace.postgres.writer import PostgresTrace
    from remora.trace.retention.plan import PrunedBlob, PrunedStream, PrunePlan, Retention, plan_prune
    from remora.trace.retention.prune import PruneResult, prune
    from remora.trace.retention.scan import is_locked
    from remora.trace.stores import PostgresStore, StoredBlobs, StreamWriter
    from remora.trace.turns.keys import TraceKey, parse_key, trace_key
    from remora.trace.turns.kv import KVTraceView
    from remora.trace.turns.store import TraceEntry, TraceStore
    from remora.trace.verification.state import BlobCounts, HeadCounts, Verification
    from remora.trace.verification.stream import StreamReport, verify

__all__ = [
    "MAX_LINE",
    "Address",
    "BlobCounts",
    "BlobWindows",
    "CatchUp",
    "Copied",
    "Disk",
    "FileBlobs",
    "FileTrace",
    "Filter",
    "Found",
    "HeadCounts",
    "Hit",
    "Intact",
    "KVTraceView",
    "Library",
    "MemoryBlobs",
    "MemoryTrace",
    "Outline",
    "OutlinedTurn",
    "Position",
    "PostgresBlobs",
    "PostgresStore",
    "PostgresTrace",
    "PrunePlan",
    "PruneResult",
    "PrunedBlob",
    "PrunedStream",
    "Record",
    "Retention",
    "Standing",
    "StoreStatus",
    "StoredBlobs",
    "StreamEmitter",
    "StreamInfo",
    "StreamKind",
    "StreamReport",
    "StreamWriter",
    "SyncMode",
    "TraceEntry",
    "TraceIndex",
    "TraceKey",
    "TraceStore",
    "Verification",
    "Window",
    "check_state_dir",
    "check_stream_id",
    "claim",
    "copy_in",
    "copy_out",
    "find_streams",
    "forget_own",
    "init_store",
    "is_locked",
    "is_store_url",
    "make_own",
    "new_stream_id",
    "parse_address",
    "parse_key",
    "pick_events",
    "plan_prune",
    "private_folder",
    "prune",
    "read_changes",
    "read_events",
    "read_lines",
    "read_picked",
    "read_records",
    "resolve",
    "standing",
    "store_status",
    "trace_key",
    "user_state_home",
    "verify",
    "without_password",
]

_MODULES = {
    "files.blobs": "FileBlobs",
    "files.disk": "Disk",
    "files.lines": "MAX_LINE StreamKind check_stream_id",
    "files.memory": "MemoryBlobs MemoryTrace",
    "files.outline": "Outline OutlinedTurn",
    "files.ownership": "Standing check_state_dir claim forget_own make_own private_folder standing user_state_home",
    "files.reader": "Position Record read_events read_lines read_records",
    "files.skim": "pick_events read_changes read_picked",
    "files.state": "find_streams new_stream_id resolve",
    "files.stream": "SyncMode",
    "files.writer": "FileTrace StreamEmitter",
    "files.windows": "BlobWindows Window",
    "index.index": "StreamInfo TraceIndex",
    "index.query": "Filter Found Hit",
    "index.update": "CatchUp",
    "library": "Intact Library",
    "postgres.address": "Address is_store_url parse_address without_password",
    "postgres.blobs": "PostgresBlobs",
    "postgres.copy": "Copied copy_in copy_out",
    "postgres.store": "StoreStatus init_store store_status",
    "postgres.writer": "PostgresTrace",
    "retention.plan": "PrunedBlob PrunedStream PrunePlan Retention plan_prune",
    "retention.prune": "PruneResult prune",
    "retention.scan": "is_locked",
    "stores": "PostgresStore StoredBlobs StreamWriter",
    "turns.kv": "KVTraceView",
    "turns.keys": "TraceKey parse_key trace_key",
    "turns.store": "TraceEntry TraceStore",
    "verification.state": "BlobCounts HeadCounts Verification",
    "verification.stream": "StreamReport verify",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
