"""The daemon: watches the project and keeps the index equal to it, until it is told to stop.

Started by `start_daemon`. Where events may be lost (a new folder's
first files, a storm, an overflow of the kernel's queue) it looks at the files themselves.
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
from remora.hub._catch_up import Hides, make_state_dir, open_index, repair, swept
from remora.hub._lock import BEAT_S, WriterLock
from remora.hub._models import DB
from remora.ignore import RULES

STEP_MS = 10
"""A change is taken in once nothing more has happened for so long,"""
DEBOUNCE_MS = 50
"""or so long after the first one."""
STORM = 300
"""Changes at once from which on all files are looked at instead."""
SWEEP_S = 10.0
"""How often all files are looked at in any case: an event may have been lost."""
_SWEEP_TIMES = 50
_FIRST_BEAT_S = 0.02
_AGAIN_S = 0.1
log = logging.getLogger("remora.hub")


class Daemon:
    """One project's index, kept fresh by this process."""

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
        """Until it is told to stop. `ready` hears `ready` once no change is missed any more, or why it cannot run."""
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
            if not self._is_ours():
                log.info("the project or its state is gone")
                return
            self._do(lambda batch=batch: self._take({path for _, path in batch}))  # type: ignore[misc]
            if not self._ready.is_set():
                # The watch is in place by now, so what the sweep does not see will be told.
                self._do(self._sweep)
                self._ready.set()
                ready("ready")

    def _batches(self) -> Iterator[set[tuple[Any, str]]]:
        """What has changed, until the end. A watch that breaks is set up anew, and all files are looked at."""
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
                self._stop.wait(_AGAIN_S)
            else:
                return

    def _take(self, paths: set[str]) -> None:
        if repair(self._index, self._state_dir) or self._was_replaced():
            self._next_sweep = 0.0
        inside = [path for path in map(self._relative, paths) if path]
        # Rules of what is ignored: any file may have come in or gone out.
        ruled = any(path.rpartition("/")[2] == RULES for path in inside)
        if ruled or len(inside) > STORM or time.monotonic() > self._next_sweep:
            self._sweep()
        elif inside:
            self._index.touch(inside)

    def _sweep(self) -> None:
        began = time.monotonic()
        done = swept(self._index, lambda _: None, keep_on=lambda: not self._stop.is_set())
        took = time.monotonic() - began
        self._next_sweep = time.monotonic() + max(SWEEP_S, _SWEEP_TIMES * took)
        self._inode = _inode(self._state_dir / DB)
        if done.changed:
            log.info("looked at %d files in %.1f s: %d had changed", done.total, took, done.changed)

    def _do(self, work: Callable[[], None]) -> None:
        """A damaged index is made anew; one that is busy is tried again with the next look at all files."""
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
        """The path below the root; empty for Remora's own state, and for what is never code."""
        try:
            inside = Path(path).relative_to(self._root)
        except ValueError:
            return ""
        if Path(path).is_relative_to(self._state_dir) or any(part.startswith(".") for part in inside.parts[:-1]):
            return ""
        return inside.as_posix()

    def _beat(self) -> None:
        # Each beat is also a change that the watch tells: so it says soon that it is in place.
        while not self._stop.wait(BEAT_S if self._ready.is_set() else _FIRST_BEAT_S):
            self._lock.beat()

    def _is_ours(self) -> bool:
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
    """Run the daemon that the arguments describe; whoever waits is told by the file descriptor that comes first."""
    handle, root, state_dir, exclude = int(argv[0]), Path(argv[1]), Path(argv[2]), argv[3:]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)

    def ready(text: str) -> None:
        log.info("%s", text)
        try:
            os.write(handle, text.encode())
            os.close(handle)
        except OSError:
            return  # nobody waits

    return Daemon(root, state_dir, exclude, hides).run(ready)
