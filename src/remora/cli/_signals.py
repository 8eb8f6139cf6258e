"""Signals: the first one seals open streams and ends the command; a second one, or a timeout, ends it at once."""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import os
import select
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

Handler = Callable[[int, Any], Any] | signal.Handlers
CANCELLED = 130
_ENDING = threading.Lock()
STOP_S = 1.5
"""Seconds that sealing may take. A stream that is not sealed by then is intact up to its last event: resume it."""


class _Terminal(io.FileIO):
    """A terminal's output stream. Writes to a closed terminal are discarded instead of raising."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(memoryview(data).cast("B"))


class _Received:
    """Counts the signals received."""

    def __init__(self) -> None:
        self.times: Counter[int] = Counter()
        self._raised = 0

    def end(self, *_: object) -> None:
        """Start to end the command, as Ctrl-C does, unless it is ending already."""
        if not self._raised and not self.times[signal.SIGINT]:
            self._raised += 1
            signal.raise_signal(signal.SIGINT)

    @property
    def is_repeated(self) -> bool:
        """Whether the user asked twice. SIGHUP does not count: the kernel and a shell may both send it."""
        return self.times[signal.SIGINT] - self._raised + self.times[signal.SIGTERM] > 1


def listen() -> None:
    """Install handlers: Ctrl-C, SIGTERM and SIGHUP end the command; a second Ctrl-C or SIGTERM ends it at once.

    A separate thread counts signals, so the command ends even if the main thread is stuck. Under `nohup` SIGHUP is
    ignored. SIGQUIT (Ctrl-\\) ends the process by default action: streams are intact but not sealed.
    """
    sys.stdout, sys.stderr = _ignore_closed_terminal(sys.stdout), _ignore_closed_terminal(sys.stderr)
    received = _Received()
    for number in _ending_signals():
        if number != signal.SIGINT:
            signal.signal(number, received.end)
    # Without this, a signal during interpreter shutdown makes a finished command look killed.
    atexit.register(_set_handlers, signal.SIG_IGN)
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    threading.Thread(target=_count, args=(read_fd, received), name="remora-signals", daemon=True).start()


def leave() -> None:
    """Stop interrupting after the command has ended. The counting thread still limits the time of the shutdown."""
    _set_handlers(lambda *_: None)


def _ending_signals() -> list[signal.Signals]:
    """The signals that end a command. SIGHUP stays ignored if it is ignored at the start, as under `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored else [signal.SIGHUP])]


def _set_handlers(handler: Handler) -> None:
    for number in _ending_signals():
        signal.signal(number, handler)


def _ignore_closed_terminal(stream: TextIO) -> TextIO:
    """The same stream; one of a terminal no longer fails when the terminal is closed."""
    try:
        if not stream.isatty():
            return stream
        stream.flush()
        raw = _Terminal(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError, AttributeError):
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def _count(read_fd: int, received: _Received) -> None:
    until: float | None = None
    while until is None or select.select([read_fd], [], [], max(0.0, until - time.monotonic()))[0]:
        received.times.update(os.read(read_fd, 64))
        if received.is_repeated:
            break
        until = until or time.monotonic() + STOP_S
    _end()


def end_now() -> NoReturn:
    """Flush output, end all child processes, and exit.

    Skips interpreter shutdown, where native threads of the script pool can abort the process (seen with 1.4.0).
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    _end()


def _end() -> NoReturn:
    """End all child processes and exit. Acknowledged events are on disk.

    Only one thread does so, and never releases the lock: if another one exited while this one had stopped a child and
    not killed it yet, the child would stay stopped forever.
    """
    _ENDING.acquire()
    try:
        if sys.platform == "linux":
            from remora.sandbox import end_descendants

            end_descendants(os.getpid())
    finally:
        os._exit(CANCELLED)
