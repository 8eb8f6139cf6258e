"""Indexing on demand: at once and to the end, or beside a run and never in its way."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from remora.discovery import CodeFiles, languages
from remora.errors import HubError, KVDamaged, KVError
from remora.hub._index import Index, Progress
from remora.hub._lock import Holder, WriterLock
from remora.hub._models import DB, REPAIR, UpdateSource
from remora.kv import KVFile

Hides = Callable[[bytes], bool]
"""Whether a file's bytes hold something that must not be in a second place."""

PATIENCE_S = 0.25
"""How long the first pull of a run waits for an index that is just being made."""
_PAUSE_S = 2.0
"""Between two sweeps beside a run."""
_PAUSE_TIMES = 20
"""A sweep may take a twentieth of the time, no more."""


def make_state_dir(state_dir: Path) -> None:
    """The state directory is there, private, and git looks at none of it."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        file = os.open(state_dir / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(file, "w", encoding="utf-8") as rules:
        rules.write("*\n")


def open_index(
    root: Path, state_dir: Path, exclude: Sequence[str], source: UpdateSource, hides: Hides = lambda _: False
) -> Index:
    """The writing side of a project's index, for whoever holds the lock. What `hides` says yes to is left out."""
    files = CodeFiles(root, state_dir=state_dir, exclude=exclude, suffixes=tuple(languages()))
    return Index(KVFile(state_dir / DB, durable=False), files, source, hides)


def swept(index: Index, told: Callable[[Progress], None], *, keep_on: Callable[[], bool] = lambda: True) -> Progress:
    """Bring the index up to date. One that turns out damaged is set aside and made anew, once."""
    try:
        return _sweep(index, told, keep_on)
    except KVDamaged:
        index.start_again()
        return _sweep(index, told, keep_on)


def _sweep(index: Index, told: Callable[[Progress], None], keep_on: Callable[[], bool]) -> Progress:
    last = Progress(0, 0, 0)
    for last in index.sweep(keep_on=keep_on):
        told(last)
    return last


def index_now(
    root: Path,
    state_dir: Path,
    exclude: Sequence[str] = (),
    *,
    told: Callable[[Progress], None] = lambda _: None,
    hides: Hides = lambda _: False,
) -> Progress:
    """The index is as the files are. Raises `HubError` if somebody else is writing it."""
    make_state_dir(state_dir)
    lock = WriterLock(state_dir)
    if not lock.take("index", _now()):
        raise HubError(_busy(lock.holder()), hint="A daemon keeps the index fresh by itself: see `remora hub status`")
    index = open_index(root, state_dir, exclude, "index", hides)
    try:
        repair(index, state_dir)
        return swept(index, told)
    except KVError as error:
        raise HubError(f"The index cannot be written: {error.message}") from error
    finally:
        index.close()
        lock.release()


def repair(index: Index, state_dir: Path) -> bool:
    """Whether a reader had found the index damaged, and it was. It is empty then."""
    note = state_dir / REPAIR
    if not note.exists():
        return False
    note.unlink(missing_ok=True)
    try:
        index.check()
    except KVDamaged:
        index.start_again()
        return True
    return False


class CatchUp:
    """Keeps the index fresh while a run lasts, in a thread, unless a daemon does: `async with CatchUp(…) as hub`."""

    def __init__(
        self, root: Path, state_dir: Path, exclude: Sequence[str] = (), hides: Hides = lambda _: False
    ) -> None:
        self._root, self._state_dir, self._exclude, self._hides = root, state_dir, exclude, hides
        self._stop = threading.Event()
        self._done = asyncio.Event()
        self._said = "The index of the code is just being made"
        self._waited = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._work = asyncio.create_task(asyncio.to_thread(self._run))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        await asyncio.wait([self._work])

    async def __call__(self) -> str:
        """What is not in the index yet, and why; empty where nothing is missing. Waits a moment, the first time."""
        if not self._waited:
            self._waited = True
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._done.wait()
            except TimeoutError:
                pass
        return self._said

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            began = time.monotonic()
            self._said = self._once()
            pause = max(_PAUSE_S, _PAUSE_TIMES * (time.monotonic() - began))
            if not self._stop.is_set():
                self._loop.call_soon_threadsafe(self._done.set)

    def _once(self) -> str:
        lock = WriterLock(self._state_dir)
        try:
            make_state_dir(self._state_dir)
            if not lock.take("index", _now()):
                holder = lock.holder()
                return "" if holder is None or holder.is_daemon else _busy(holder)
            return self._index()
        except (KVError, OSError) as error:
            return f"The index cannot be written: {error}"
        finally:
            lock.release()

    def _index(self) -> str:
        index = open_index(self._root, self._state_dir, self._exclude, "index", self._hides)
        try:
            repair(index, self._state_dir)
            swept(index, self._tell, keep_on=lambda: not self._stop.is_set())
        finally:
            index.close()
        return ""

    def _tell(self, progress: Progress) -> None:
        self._said = f"The index is being made: {progress.done} of {progress.total} files so far"


def _busy(holder: Holder | None) -> str:
    if holder is None:
        return "Somebody else was just writing the index"
    if holder.role == "daemon" and not holder.is_daemon:
        return f"The Hub's daemon (process {holder.pid}) has been silent for {holder.silent_s:.0f} s"
    return f"Process {holder.pid} is writing the index"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
