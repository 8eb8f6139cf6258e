"""The daemon: watches the project and keeps the index equal to it, until it is stopped.

Started by `start_daemon`. Where events may be lost (the first files of a new folder, a storm of changes, an overflow of
the kernel's queue) it sweeps over the files.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from remora.errors import KVDamaged, KVError
from remora.hub._catch_up import Hides, bring_up_to_date, make_state_dir, open_index, repair
from remora.hub._lock import BEAT_S, WriterLock
from remora.hub._models import DB
from remora.ignore import RULES

STEP_MS = 10
"""A change is indexed after this time without further changes,"""
DEBOUNCE_MS = 50
"""or this long after the first one."""
MAX_SINGLE_UPDATES = 300
"""Number of simultaneous changes above which a sweep replaces single updates."""
SWEEP_S = 10.0
"""Interval between sweeps in any case: events may have been lost."""
_SWEEP_TIMES = 50
_FIRST_BEAT_S = 0.02
_RETRY_S = 0.1
log = logging.getLogger("remora.hub")


class Daemon:
    """Keeps one project's index fresh."""

    def __init__(
        self, root: Path, state_dir: Path, exclude: Sequence[str] = (), hides: Hides = lambda _: False
    ) -> None:
        self._root, self._state_dir = root.resolve(), state_dir
        self._index = open_index(self._root, state_dir, exclude, "daemon", hides)
        self._lock = WriterLock(state_dir)
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._inode = 0
        self._next_sweep = 0.0

    def run(self, ready: Callable[[str], None]) -> int:
        """Run until stopped.

        `ready` is called with `ready` once no change is missed, or with the reason why it cannot run.
        """
        make_state_dir(self._state_dir)
        if not self._lock.take("daemon", datetime.now(UTC).isoformat(timespec="seconds")):
            holder = self._lock.holder()
            ready(f"another process writes the index: {holder.pid if holder else 'unknown'}")
            return 1
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        beating = threading.Thread(target=self._beat, name="remora-hub-beat", daemon=True)
        beating.start()
        try:
            self._watch(ready)
        finally:
            self._stop.set()
            self._index.close()
            self._lock.release()
        log.info("stopped")
        return 0

    def _watch(self, ready: Callable[[str], None]) -> None:
        for batch in self._batches():
            if not self._still_owns_project():
                log.info("the project or its state is gone")
                return
            self._retry_on_error(lambda batch=batch: self._update({path for _, path in batch}))  # type: ignore[misc]
            if not self._ready.is_set():
                # The watch is active now, so changes that the sweep misses will be reported.
                self._retry_on_error(self._sweep)
                self._ready.set()
                ready("ready")

    def _batches(self) -> Iterator[set[tuple[Any, str]]]:
        """Batches of changes, until the end. A watch that fails is restarted, followed by a sweep."""
        from watchfiles import watch
        from watchfiles._rust_notify import WatchfilesRustInternalError

        while not self._stop.is_set():
            try:
                yield from watch(
                    self._root,
                    watch_filter=None,
                    step=STEP_MS,
                    debounce=DEBOUNCE_MS,
                    rust_timeout=int(BEAT_S * 1000),
                    yield_on_timeout=True,
                    stop_event=self._stop,
                    raise_interrupt=False,
                    ignore_permission_denied=True,
                )
            except WatchfilesRustInternalError as error:
                log.warning("the watch broke: %s", error)
                self._next_sweep = 0.0
                self._stop.wait(_RETRY_S)
            else:
                return

    def _update(self, paths: set[str]) -> None:
        if repair(self._index, self._state_dir) or self._was_replaced():
            self._next_sweep = 0.0
        inside = [path for path in map(self._relative, paths) if path]
        # Ignore rules changed: any file may have become visible or hidden.
        ruled = any(path.rpartition("/")[2] == RULES for path in inside)
        if ruled or len(inside) > MAX_SINGLE_UPDATES or time.monotonic() > self._next_sweep:
            self._sweep()
        elif inside:
            self._index.touch(inside)

    def _sweep(self) -> None:
        began = time.monotonic()
        done = bring_up_to_date(self._index, lambda _: None, should_continue=lambda: not self._stop.is_set())
        took = time.monotonic() - began
        self._next_sweep = time.monotonic() + max(SWEEP_S, _SWEEP_TIMES * took)
        self._inode = _inode(self._state_dir / DB)
        if done.changed:
            log.info("looked at %d files in %.1f s: %d had changed", done.total, took, done.changed)

    def _retry_on_error(self, work: Callable[[], None]) -> None:
        """Rebuild a damaged index. If it is busy, retry at the next sweep."""
        try:
            work()
        except KVDamaged as error:
            log.warning("%s", error.message)
            self._index.start_again()
            self._sweep()
        except (KVError, OSError) as error:
            log.warning("%s", error)
            self._next_sweep = 0.0

    def _relative(self, path: str) -> str:
        """The path relative to the root; empty for Remora's own state and for files that are never code."""
        try:
            inside = Path(path).relative_to(self._root)
        except ValueError:
            return ""
        if Path(path).is_relative_to(self._state_dir) or any(part.startswith(".") for part in inside.parts[:-1]):
            return ""
        return inside.as_posix()

    def _beat(self) -> None:
        # Each beat also triggers the watch, which shows early that it is active.
        while not self._stop.wait(BEAT_S if self._ready.is_set() else _FIRST_BEAT_S):
            self._lock.beat()

    def _still_owns_project(self) -> bool:
        return self._root.is_dir() and self._lock.is_ours()

    def _was_replaced(self) -> bool:
        if _inode(self._state_dir / DB) == self._inode:
            return False
        self._index.forget()
        return True


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def main(argv: Sequence[str], hides: Hides = lambda _: False) -> int:
    """Run the daemon that the arguments describe. Reports readiness to the file descriptor in the first argument."""
    handle, root, state_dir, exclude = int(argv[0]), Path(argv[1]), Path(argv[2]), argv[3:]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)

    def ready(text: str) -> None:
        log.info("%s", text)
        try:
            os.write(handle, text.encode())
            os.close(handle)
        except OSError:
            return  # the caller is gone

    return Daemon(root, state_dir, exclude, hides).run(ready)
