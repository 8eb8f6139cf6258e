"""Opens the logs of other programs: files, folders of them, and Inspect's archives. Follows no link in a folder."""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

import orjson

from remora.analysis.logs import LogFile, LogProblem

SUFFIXES = frozenset({".jsonl", ".ndjson", ".json", ".traj", ".eval"})
"""Names of logs in a folder. A file that you name yourself may have any name."""
MAX_FILES = 100_000
MAX_DEPTH = 16
MAX_SAMPLE = 1024 * 1024 * 1024
"""Bytes of one sample of an archive."""
MAX_RATIO = 2_000
"""How many times larger a sample may be than what the archive holds of it."""
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_AGENT = "agent-"
MAX_META = 64 * 1024
"""Bytes of a file beside the log of a sub-agent that are read."""
_ZIP = b"PK\x03\x04"
_ZSTD = 93
_OURS = (".agentfs",)


@dataclass(frozen=True)
class LogPath:
    """A log to read."""

    path: Path
    size: int
    named: bool
    """Whether the user named the file itself. One in a folder may be something else, which is no mistake."""


def find_logs(paths: Sequence[Path]) -> tuple[list[LogPath], list[str]]:
    """The logs that the paths mean, parents before their sub-agents, and a sentence for what is left out."""
    found: list[LogPath] = []
    notices: list[str] = []
    for path in paths:
        if path.is_dir():
            before = len(found)
            links = _walk(path, found, 0)
            if len(found) == before:
                notices.append(f"no log in {path}: expected files that end with {', '.join(sorted(SUFFIXES))}")
            if links:
                notices.append(f"{links} links in {path} are not followed")
        else:
            size = path.stat().st_size if path.is_file() else 0
            found.append(LogPath(path, size, named=True))
    if len(found) > MAX_FILES:
        notices.append(f"more than {MAX_FILES:,} files: the others are left out")
    return found[:MAX_FILES], notices


def _walk(folder: Path, found: list[LogPath], depth: int) -> int:
    """Add the logs of a folder: its own files first, then those of its folders. Returns the number of links."""
    links, folders = 0, []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: (_depth(entry), entry.name))
    except OSError:
        return 0
    for entry in entries:
        if entry.is_symlink():
            links += 1
        elif entry.is_dir(follow_symlinks=False):
            folders += [Path(entry.path)] if entry.name not in _OURS else []
        elif Path(entry.name).suffix.lower() in SUFFIXES and len(found) <= MAX_FILES:
            found.append(LogPath(Path(entry.path), entry.stat(follow_symlinks=False).st_size, named=False))
    for inner in folders if depth < MAX_DEPTH else []:
        links += _walk(inner, found, depth + 1)
    return links


def _depth(entry: os.DirEntry[str]) -> int:
    """How deep below its session the sub-agent of Claude Code is whose log this is; 0 for any other file.

    A file beside the log says it, because a sub-agent may start others.
    """
    if not entry.name.startswith(_AGENT):
        return 0
    beside = Path(entry.path).with_suffix(".meta.json")
    try:
        with os.fdopen(os.open(beside, _OPEN | os.O_NOFOLLOW), "rb") as file:
            found = orjson.loads(file.read(MAX_META))
    except (OSError, ValueError):
        return 1
    depth = found.get("spawnDepth") if isinstance(found, dict) else None
    return min(max(depth, 1), MAX_DEPTH) if isinstance(depth, int) else 1


@contextmanager
def open_log(log: LogPath) -> Iterator[BinaryIO]:
    """Open a log for reading. Raises `LogProblem` if it is no regular file, `OSError` if it cannot be opened."""
    handle = os.open(log.path, _OPEN if log.named else _OPEN | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise LogProblem(f"{log.path}: not a regular file")
        yield opened


def is_archive(stream: BinaryIO) -> bool:
    """Whether a file is a zip archive."""
    stream.seek(0)
    return stream.read(len(_ZIP)) == _ZIP


def archived(name: str, stream: BinaryIO) -> Iterator[LogFile | LogProblem]:
    """The samples of an Inspect archive, one at a time, each unpacked into a temporary file."""
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        yield LogProblem(f"{name}: not an archive that can be read: {error}")
        return
    samples = [info for info in archive.infolist() if info.filename.startswith("samples/")]
    if not samples:
        yield LogProblem(f"{name}: an archive without `samples/`: expected an Inspect log")
    for info in samples[:MAX_FILES]:
        place = f"{name}#{info.filename:.200}"
        try:
            with tempfile.SpooledTemporaryFile(max_size=16 << 20) as unpacked:
                _unpack(archive, info, stream, unpacked)
                yield LogFile(place, unpacked)  # type: ignore[arg-type]
        except LogProblem as problem:
            yield LogProblem(f"{place}: {problem}")
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
            yield LogProblem(f"{place}: cannot be unpacked: {error}")


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, stream: BinaryIO, to: IO[bytes]) -> None:
    limit = min(MAX_SAMPLE, max(info.compress_size * MAX_RATIO, 1 << 20))
    if info.file_size > limit:
        raise LogProblem(f"{info.file_size:,} bytes, packed into {info.compress_size:,}; the limit is {limit:,}")
    written = 0
    for chunk in _zstd_chunks(info, stream) if info.compress_type == _ZSTD else _chunks(archive, info):
        written += len(chunk)
        if written > limit:
            raise LogProblem(f"more than {limit:,} bytes, packed into {info.compress_size:,}")
        to.write(chunk)


def _chunks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as member:
        while chunk := member.read(1 << 20):
            yield chunk


def _zstd_chunks(info: zipfile.ZipInfo, stream: BinaryIO) -> Iterator[bytes]:
    """Unpack a member that is compressed with Zstandard, which Python reads only since 3.14."""
    try:
        import zstandard
    except ImportError:
        raise LogProblem(
            "compressed with Zstandard: install it with `pip install 'remora-agents[logs]'`, "
            "or convert the log with `inspect log convert --to json`"
        ) from None
    stream.seek(info.header_offset)
    header = stream.read(30)
    name, extra = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    stream.seek(info.header_offset + 30 + name + extra)
    reader: Any = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    try:
        with reader.stream_reader(_Part(stream, info.compress_size), closefd=False) as unpacked:
            while chunk := unpacked.read(1 << 20):
                yield chunk
    except zstandard.ZstdError as error:
        raise LogProblem(f"cannot be unpacked: {error}") from None


class _Part:
    """The next bytes of a stream, up to a length."""

    def __init__(self, stream: BinaryIO, length: int) -> None:
        self._stream, self._left = stream, length

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._stream.read(wanted)
        self._left -= len(data)
        return data
