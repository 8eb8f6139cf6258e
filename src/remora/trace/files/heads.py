"""`heads.log`: the heads of streams that were closed, kept outside of the streams.

    {"v":1,"stream":"runs/01K…","records":12,"head":"sha256:…","check":"9f86d081884c7d65"}

Nothing in a stream vouches for its own last line, and nothing in a folder for a file that is gone. So a writer notes,
each time it closes a stream, how many records there are and the digest of the last. `check` is the beginning of the
SHA-256 of the line's bytes before it: a damaged line blames itself, and no stream.

Lines are appended by one write each, after the stream's own sync, and are not synced: a line that is lost only means
that less is covered. They are not chained. Several processes append at once, so a chain would need a lock that all of
them wait for, and whoever rewrites one line could as well rewrite them all.
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
    """A stream as it was when it was closed."""

    stream_id: str
    records: int
    head: str
    """The digest of the last of them."""


@dataclass(frozen=True)
class Heads:
    """What a ledger says."""

    file: Path
    there: bool = False
    noted: Mapping[str, Sequence[Note]] = field(default_factory=dict)
    """By stream, oldest first."""
    damaged: tuple[int, ...] = ()
    """Lines that are not as they were written, 1-based."""
    torn: tuple[int, ...] = ()
    """Lines that a crash left half written."""


class Ledger:
    """Appends to the ledger of one state directory."""

    def __init__(self, state_dir: Path, *, disk: Disk) -> None:
        self._path = state_dir / FILE
        self._disk = disk
        self._whole = False
        """Whether the file is known to end with a newline."""
        self._lock = threading.Lock()

    def note(self, note: Note) -> None:
        """The note stands in the ledger, if the disk takes it: what was acknowledged does not depend on it."""
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
    """All that the ledger of `state_dir` says. Raises `TraceError` if there is one that cannot be read."""
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
                elif line != b"\n":  # empty where a writer took another's line, half way in, for a torn one
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
    """The note of a line; None if it is not as it was written."""
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
    """Whether the next line can follow as it is. After a crash the last one may lack its newline."""
    with open_plain(str(path)) as file:
        size = os.fstat(file.fileno()).st_size
        return size == 0 or os.pread(file.fileno(), 1, size - 1) == b"\n"
