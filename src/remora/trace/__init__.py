"""Everything that writes and reads streams and blobs: the Long Track on the disk, and the disposable views over it."""

from remora.trace.files.blobs import FileBlobs
from remora.trace.files.disk import Disk
from remora.trace.files.lines import MAX_LINE, StreamKind, check_stream_id
from remora.trace.files.memory import MemoryBlobs, MemoryTrace
from remora.trace.files.ownership import (
    Standing,
    check_state_dir,
    claim,
    make_own,
    private_folder,
    standing,
    user_state_home,
)
from remora.trace.files.reader import Position, Record, read_events, read_lines, read_records
from remora.trace.files.skim import pick_events, read_changes
from remora.trace.files.state import find_streams, new_stream_id, resolve
from remora.trace.files.stream import SyncMode
from remora.trace.files.writer import FileTrace, StreamEmitter
from remora.trace.index.index import StreamInfo, TraceIndex
from remora.trace.index.query import Filter, Found, Hit
from remora.trace.index.update import CatchUp
from remora.trace.library import Library
from remora.trace.retention.plan import PrunedBlob, PrunedStream, PrunePlan, Retention, plan_prune
from remora.trace.retention.prune import PruneResult, prune
from remora.trace.turns.kv import KVTraceView
from remora.trace.turns.store import TraceStore
from remora.trace.turns.view import TraceEntry, TraceKey, parse_key, trace_key
from remora.trace.verification.state import BlobCounts, HeadCounts, Verification
from remora.trace.verification.stream import StreamReport, verify

__all__ = [
    "MAX_LINE",
    "BlobCounts",
    "CatchUp",
    "Disk",
    "FileBlobs",
    "FileTrace",
    "Filter",
    "Found",
    "HeadCounts",
    "Hit",
    "KVTraceView",
    "Library",
    "MemoryBlobs",
    "MemoryTrace",
    "Position",
    "PrunePlan",
    "PruneResult",
    "PrunedBlob",
    "PrunedStream",
    "Record",
    "Retention",
    "Standing",
    "StreamEmitter",
    "StreamInfo",
    "StreamKind",
    "StreamReport",
    "SyncMode",
    "TraceEntry",
    "TraceIndex",
    "TraceKey",
    "TraceStore",
    "Verification",
    "check_state_dir",
    "check_stream_id",
    "claim",
    "find_streams",
    "make_own",
    "new_stream_id",
    "parse_key",
    "pick_events",
    "plan_prune",
    "private_folder",
    "prune",
    "read_changes",
    "read_events",
    "read_lines",
    "read_records",
    "resolve",
    "standing",
    "trace_key",
    "user_state_home",
    "verify",
]
