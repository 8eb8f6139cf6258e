"""Indexing on demand: at once and completely, or in the background of a run."""

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
"""Whether a file's bytes contain something that must not be stored in a second place."""

PATIENCE_S = 0.25
"""How long the first pull of a run waits for an index that is being built."""
_PAUSE_S = 2.0
"""Pause between two background sweeps."""
_PAUSE_TIMES = 20
"""A background sweep takes at most one twentieth of the time."""


def make_state_dir(state_dir: Path) -> None:
    """Create the state directory, private and ignored by git."""
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
    """Open the index for writing. The caller must hold the lock. Files for which `hides` is true are left out."""
    files = CodeFiles(root, state_dir=state_dir, exclude=exclude, suffixes=tuple(languages()))
    return Index(KVFile(state_dir / DB, durable=False), files, source, hides)


def bring_up_to_date(
    index: Index, on_progress: Callable[[Progress], None], *, should_continue: Callable[[], bool] = lambda: True
) -> Progress:
    """Bring the index up to date. A damaged index is set aside and rebuilt, once."""
    try:
        return _sweep(index, on_progress, should_continue)
    except KVDamaged:
        index.start_again()
        return _sweep(index, on_progress, should_continue)


def _sweep(index: Index, on_progress: Callable[[Progress], None], should_continue: Callable[[], bool]) -> Progress:
    last = Progress(0, 0, 0)
    for last in index.sweep(should_continue=should_continue):
        on_progress(last)
    return last


def index_now(
    root: Path,
    state_dir: Path,
    exclude: Sequence[str] = (),
    *,
    on_progress: Callable[[Progress], None] = lambda _: None,
    hides: Hides = lambda _: False,
) -> Progress:
    """Bring the index up to date. Raises `HubError` if another process is writing it."""
    make_state_dir(state_dir)
    lock = WriterLock(state_dir)
    if not lock.take("index", _now()):
        raise HubError(_busy(lock.holder()), hint="A daemon keeps the index fresh by itself: see `remora hub status`")
    index = open_index(root, state_dir, exclude, "index", hides)
    try:
        repair(index, state_dir)
        return bring_up_to_date(index, on_progress)
    except KVError as error:
        raise HubError(f"Cannot write the index: {error.message}") from error
    finally:
        index.close()
        lock.release()


def repair(index: Index, state_dir: Path) -> bool:
    """Check an index that a reader reported as damaged. Returns True if it was, and is now empty."""
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
    """Keeps the index fresh during a run, in a thread, unless a daemon does: `async with CatchUp(…) as hub`."""

    def __init__(
        self, root: Path, state_dir: Path, exclude: Sequence[str] = (), hides: Hides = lambda _: False
    ) -> None:
        self._root, self._state_dir, self._exclude, self._hides = root, state_dir, exclude, hides
        self._stop = threading.Event()
        self._done = asyncio.Event()
        self._message = "The index of the code is being built"
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
        """What is missing in the index, and why; empty if nothing is. Waits briefly on the first call."""
        if not self._waited:
            self._waited = True
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._done.wait()
            except TimeoutError:
                pass
        return self._message

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            began = time.monotonic()
            self._message = self._once()
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
            return f"Cannot write the index: {error}"
        finally:
            lock.release()

    def _index(self) -> str:
        index = open_index(self._root, self._state_dir, self._exclude, "index", self._hides)
        try:
            repair(index, self._state_dir)
            bring_up_to_date(index, self._report_progress, should_continue=lambda: not self._stop.is_set())
        finally:
            index.close()
        return ""

    def _report_progress(self, progress: Progress) -> None:
        self._message = f"The index is being built: {progress.done} of {progress.total} files so far"


def _busy(holder: Holder | None) -> str:
    if holder is None:
        return "Another process was writing the index"
    if holder.role == "daemon" and not holder.is_daemon:
        return f"The Hub's daemon (process {holder.pid}) has been silent for {holder.silent_s:.0f} s"
    return f"Process {holder.pid} is writing the index"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
