"""Everything that writes and reads streams and blobs: the Long Track on the disk, and the disposable views over it."""

from remora.trace._blobs import FileBlobs
from remora.trace._changes import read_changes
from remora.trace._disk import Disk
from remora.trace._emitter import StreamEmitter
from remora.trace._index import StreamInfo, TraceIndex
from remora.trace._index_checkpoints import Checkpoint
from remora.trace._index_update import CatchUp
from remora.trace._keys import TraceKey, parse_key, trace_key
from remora.trace._kv_view import KVTraceView
from remora.trace._library import Library
from remora.trace._lines import MAX_LINE, StreamKind, check_stream_id
from remora.trace._memory import MemoryBlobs, MemoryTrace
from remora.trace._ownership import (
    Standing,
    check_state_dir,
    claim,
    forget_own,
    make_own,
    private_folder,
    standing,
    user_state_home,
)
from remora.trace._pick import pick_events
from remora.trace._prune import PruneResult, prune
from remora.trace._reader import Position, Record, read_events, read_lines, read_records
from remora.trace._retention import PrunedBlob, PrunedStream, PrunePlan, Retention, plan_prune
from remora.trace._search import Filter, Found, Hit
from remora.trace._state import find_streams, new_stream_id, resolve
from remora.trace._store import TraceEntry, TraceStore
from remora.trace._stream import SyncMode
from remora.trace._verification import BlobCounts, HeadCounts, Verification
from remora.trace._verify import StreamReport, verify
from remora.trace._writer import FileTrace

__all__ = [
    "MAX_LINE",
    "BlobCounts",
    "CatchUp",
    "Checkpoint",
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
    "forget_own",
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
