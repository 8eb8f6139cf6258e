"""`heads.log`: the heads of closed streams, stored outside the streams.

    {"v":1,"stream":"runs/01K…","records":12,"head":"sha256:…","check":"9f86d081884c7d65"}

Nothing in a stream confirms its last line, and nothing in a folder shows that a file was deleted. So a writer notes
the number of records and the last digest each time it closes a stream. `check` is the beginning of the SHA-256 of the
line up to it, so that damage to this file is not blamed on a stream.

Each line is appended with one write after the stream's sync, and is not synced itself: a lost line only means that less
is covered. Lines are not chained. Several processes append at once, so a chain would need a lock, and anyone who can
rewrite one line can rewrite all of them.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

import orjson

from remora.errors import TraceError
from remora.trace.files.blobs import open_plain
from remora.trace.files.disk import Disk
from remora.trace.files.lines import check_stream_id

FILE = "heads.log"
_CHECK = b',"check":"'
_CHECK_LENGTH = 16
_MAX_LINE = 1024


class Note(NamedTuple):
    """How far a stream went when it was closed."""

    stream_id: str
    records: int
    head: str
    """The digest of the last record."""


@dataclass(frozen=True)
class Heads:
    """The contents of `heads.log`."""

    file: Path
    there: bool = False
    noted: Mapping[str, Sequence[Note]] = field(default_factory=dict)
    """Notes by stream, oldest first."""
    damaged: tuple[int, ...] = ()
    """Numbers of lines whose checksum is wrong, 1-based."""
    torn: tuple[int, ...] = ()
    """Numbers of lines that a crash left incomplete."""


class Ledger:
    """Appends to the `heads.log` of one state directory."""

    def __init__(self, state_dir: Path, *, disk: Disk) -> None:
        self._path = state_dir / FILE
        self._disk = disk
        self._whole = False
        """Whether the file is known to end with a newline."""
        self._lock = threading.Lock()

    def note(self, note: Note) -> None:
        """Append a note. Errors are ignored: no acknowledged event depends on it."""
        with self._lock, suppress(OSError, TraceError):
            handle = self._disk.open_append(self._path)
            try:
                lead = b"" if self._whole or _ends_whole(self._path) else b"\n"
                self._whole = False
                self._disk.write(handle, lead + _line(note))
                self._whole = True
            finally:
                self._disk.close(handle)


def read_heads(state_dir: Path) -> Heads:
    """Read `heads.log`. Raises `TraceError` if it exists and cannot be read."""
    path = state_dir / FILE
    noted: dict[str, list[Note]] = {}
    damaged: list[int] = []
    torn: list[int] = []
    try:
        with open_plain(str(path)) as raw, BufferedReader(raw) as file:
            for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE), b""), start=1):
                note = _read(line)
                if note is not None:
                    noted.setdefault(note.stream_id, []).append(note)
                elif (
                    line != b"\n"
                ):  # a writer may add an empty line if it took another's unfinished line for a torn one
                    (damaged if line.endswith((b'"}\n', b'"}')) else torn).append(number)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
            return Heads(path)
        raise TraceError(f"`{path}` cannot be read: {error.strerror}") from error
    return Heads(path, True, noted, tuple(damaged), tuple(torn))


def _line(note: Note) -> bytes:
    body = orjson.dumps({"v": 1, "stream": note.stream_id, "records": note.records, "head": note.head})[:-1]
    return body + _CHECK + _check(body) + b'"}\n'


def _read(line: bytes) -> Note | None:
    """Parse one line; None if its checksum is wrong."""
    body, found, check = line.rpartition(_CHECK)
    if not found or check != _check(body) + b'"}\n':
        return None
    try:
        fields = orjson.loads(body + b"}")
        note = Note(fields["stream"], fields["records"], fields["head"])
        check_stream_id(note.stream_id)
    except (orjson.JSONDecodeError, KeyError, TypeError, TraceError):
        return None
    return note if type(note.records) is int and note.records > 0 and isinstance(note.head, str) else None


def _check(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_CHECK_LENGTH].encode()


def _ends_whole(path: Path) -> bool:
    """Whether the file ends with a newline. After a crash it may not."""
    with open_plain(str(path)) as file:
        size = os.fstat(file.fileno()).st_size
        return size == 0 or os.pread(file.fileno(), 1, size - 1) == b"\n"
