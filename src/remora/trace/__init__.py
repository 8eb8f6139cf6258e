"""Everything that writes and reads streams and blobs: the Long Track on the disk."""

from remora.trace._blobs import FileBlobs
from remora.trace._disk import Disk
from remora.trace._lines import MAX_LINE, StreamKind, check_stream_id
from remora.trace._memory import MemoryBlobs, MemoryTrace
from remora.trace._reader import Position, Record, read_events, read_lines, read_records
from remora.trace._state import find_streams, resolve
from remora.trace._stream import SyncMode
from remora.trace._verify import StreamReport, verify
from remora.trace._writer import FileTrace

__all__ = [
    "MAX_LINE",
    "Disk",
    "FileBlobs",
    "FileTrace",
    "MemoryBlobs",
    "MemoryTrace",
    "Position",
    "Record",
    "StreamKind",
    "StreamReport",
    "SyncMode",
    "check_stream_id",
    "find_streams",
    "read_events",
    "read_lines",
    "read_records",
    "resolve",
    "verify",
]
