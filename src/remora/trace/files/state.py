"""The state directory: its folders, and finding the streams in it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from remora.errors import ConfigError, TraceError, TraceNotFound
from remora.events import is_id, next_id, order_of, short_id
from remora.trace.files.disk import Disk
from remora.trace.files.lines import StreamKind
from remora.trace.files.ownership import claim

KINDS: tuple[StreamKind, ...] = ("traces", "runs")
_SHOWN = 5
_SUFFIX = ".jsonl"


class Folders:
    """Creates the folders of a state directory when they are first needed."""

    def __init__(self, state_dir: Path, *, disk: Disk, sync: bool = True) -> None:
        self._state_dir = state_dir
        self._disk = disk
        self._sync = sync
        self._ready: set[Path] = set()
        self._lock = threading.RLock()

    def ready(self, folder: Path) -> None:
        """Create `folder` (at or below the state directory) durably, with a `.gitignore` in the state directory."""
        with self._lock:
            if folder in self._ready or (folder.exists() and not folder.is_relative_to(self._state_dir)):
                return
            self.ready(folder.parent)
            is_new = folder == self._state_dir and not folder.exists()
            self._disk.make_dir(folder)
            if self._sync:
                # Even if it exists: the process that created it may have been killed before its sync.
                self._disk.sync_dir(folder.parent)
            if folder == self._state_dir:
                self._ignore(folder / ".gitignore")
            if is_new:
                # Recording needs no home folder. Commands that need an owned folder report it themselves.
                with suppress(ConfigError, OSError):
                    claim(folder)
            self._ready.add(folder)

    def _ignore(self, path: Path) -> None:
        if path.exists():
            return
        handle = self._disk.open_append(path)
        try:
            self._disk.write(handle, b"*\n")
        finally:
            self._disk.close(handle)


def find_streams(state_dir: Path, kind: StreamKind) -> list[Path]:
    """The stream files of one kind, by id. Files whose name is not one of our ids come first."""
    return [_path(state_dir, stream) for stream in sorted(_streams(state_dir, (kind,)), key=_order)]


def new_stream_id(state_dir: Path, now: datetime) -> str:
    """A new id that sorts after every stream in this folder: ids are in the order of recording.

    Two processes that start at the same moment get different ids, in either order.
    """
    return next_id(now, newest_id(name.partition(".")[0] for kind in KINDS for name in _listed(state_dir / kind)))


def newest_id(names: Iterable[str]) -> str:
    """The largest id of ours among the names; empty if there is none."""
    return max(filter(is_id, names), default="")


def resolve(state_dir: Path, fragment: str, kind: StreamKind | None = None) -> Path:
    """The stream whose id starts or ends with `fragment`. Raises `TraceNotFound`, or `TraceError` if several do."""
    return _path(state_dir, _choose(list(_streams(state_dir, (kind,) if kind else KINDS)), fragment, str(state_dir)))


def choose(stream_ids: Iterable[str], fragment: str, where: str) -> str:
    """Like `resolve`, of streams that are not files. `where` names their store in messages."""
    parts = (stream_id.partition("/") for stream_id in stream_ids)
    streams = [_Stream("runs" if kind == "runs" else "traces", name) for kind, _, name in parts]
    return "/".join(_choose(streams, fragment, where))


def _choose(streams: Sequence[_Stream], fragment: str, where: str) -> _Stream:
    wanted = fragment.lower()
    found = [stream for stream in streams if _matches(stream.name.lower(), wanted)]
    found = [stream for stream in found if stream.name.lower() == wanted] or found
    if not found:
        recent = sorted(streams, key=_order, reverse=True)
        hint = f"The newest are {_names(recent, short=True)}" if recent else f"Nothing is recorded in `{where}` yet"
        raise TraceNotFound(f"No stream has an id that starts or ends with `{fragment}`", hint=hint)
    if len(found) > 1:
        can_be_short = len({short_id(stream.name) for stream in found}) == len(found)
        names = _names(sorted(found, key=_order), short=can_be_short)
        raise TraceError(f"`{fragment}` matches {len(found)} streams: {names}", hint="Give more of the id")
    return found[0]


class _Stream(NamedTuple):
    """A stream by name. Building thousands of paths would take longer than finding them."""

    kind: StreamKind
    name: str


def _streams(state_dir: Path, kinds: Iterable[StreamKind]) -> Iterator[_Stream]:
    for kind in kinds:
        for name in _listed(state_dir / kind):
            if name.endswith(_SUFFIX):
                yield _Stream(kind, name[: -len(_SUFFIX)])


def _listed(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        return  # nothing recorded; if it cannot be read, the writer reports it


def _path(state_dir: Path, stream: _Stream) -> Path:
    return state_dir / stream.kind / f"{stream.name}{_SUFFIX}"


def _order(stream: _Stream) -> tuple[str, str]:
    return order_of(stream.name), stream.name


def _matches(id_: str, wanted: str) -> bool:
    return bool(wanted) and (id_.startswith(wanted) or id_.endswith(wanted))


def _names(streams: Iterable[_Stream], *, short: bool = False) -> str:
    """The first few names; `short` as people read and type them, if they are ids of ours."""
    listed = (stream.name for stream in islice(streams, _SHOWN + 1))
    names = [f"`{short_id(name) if short and is_id(name) else name}`" for name in listed]
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
