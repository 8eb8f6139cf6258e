"""How a command ends when it is told to: once, by sealing what is open; twice, or when that takes too long, at once."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

Handler = Callable[[int, Any], Any] | signal.Handlers
CANCELLED = 130
STOP_S = 1.5
"""What sealing may take. A stream that is not sealed by then is whole up to its last event, and can be resumed."""


def listen() -> None:
    """From here on, Ctrl-C and a polite kill both end the command like Ctrl-C; the second one ends it now.

    A thread of its own counts them, so that it ends even where the main one is stuck.
    """
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    # Else the interpreter's last steps would be the system's to end, and a finished command would look killed.
    atexit.register(_set, signal.SIG_IGN)
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_count, args=(heard,), name="remora-signals", daemon=True).start()


def leave() -> None:
    """The command has ended: Ctrl-C no longer interrupts the interpreter's own end, and still bounds it."""
    _set(lambda *_: None)


def _set(handler: Handler) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _count(heard: int) -> None:
    times: Counter[int] = Counter()
    until: float | None = None
    while until is None or select.select([heard], [], [], max(0.0, until - time.monotonic()))[0]:
        times.update(os.read(heard, 64))
        if max(times[signal.SIGINT], times[signal.SIGTERM]) > 1:
            break
        until = until or time.monotonic() + STOP_S
    _end()


def end_now() -> NoReturn:
    """What was said is out, no child is left, nor are we.

    Without the interpreter's own end: native threads of the script pool can abort the process there (seen with 1.4.0).
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    _end()


def _end() -> NoReturn:
    """No child is left, nor are we. What was acknowledged is on the disk."""
    try:
        if sys.platform == "linux":
            from remora.sandbox import end_descendants

            end_descendants(os.getpid())
    finally:
        os._exit(CANCELLED)
