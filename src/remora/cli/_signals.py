"""How a command ends when it is told to: once, by sealing what is open; twice, or when that takes too long, at once."""

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
STOP_S = 1.5
"""What sealing may take. A stream that is not sealed by then is whole up to its last event, and can be resumed."""


class _Terminal(io.FileIO):
    """A terminal to write to. Once it is closed, what is said to it goes nowhere: nobody is there to hear it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(memoryview(data).cast("B"))


class _Heard:
    """Which signals came, and how often."""

    def __init__(self) -> None:
        self.times: Counter[int] = Counter()
        self._raised = 0

    def end(self, *_: object) -> None:
        """Begin to end, as Ctrl-C does; if the command ends already, that goes on."""
        if not self._raised and not self.times[signal.SIGINT]:
            self._raised += 1
            signal.raise_signal(signal.SIGINT)

    @property
    def impatient(self) -> bool:
        """Whether somebody asked twice. A terminal does not ask: the kernel and a shell may both say that it closed."""
        return self.times[signal.SIGINT] - self._raised + self.times[signal.SIGTERM] > 1


def listen() -> None:
    """From here on, Ctrl-C, a polite kill and a closed terminal end the command alike; asked twice, it ends now.

    A thread of its own counts them, so that it ends even where the main one is stuck. Under `nohup` a closed terminal
    ends nothing. SIGQUIT (Ctrl-\\) ends at once, as the system does it: streams are whole, and not sealed.
    """
    sys.stdout, sys.stderr = _outlives(sys.stdout), _outlives(sys.stderr)
    heard = _Heard()
    for number in _ending():
        if number != signal.SIGINT:
            signal.signal(number, heard.end)
    # Else the interpreter's last steps would be the system's to end, and a finished command would look killed.
    atexit.register(_set, signal.SIG_IGN)
    hear, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_count, args=(hear, heard), name="remora-signals", daemon=True).start()


def leave() -> None:
    """The command has ended: Ctrl-C no longer interrupts the interpreter's own end, and still bounds it."""
    _set(lambda *_: None)


def _ending() -> list[signal.Signals]:
    """The signals that end a command. `nohup` starts it deaf to a closed terminal, and so it stays."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored else [signal.SIGHUP])]


def _set(handler: Handler) -> None:
    for number in _ending():
        signal.signal(number, handler)


def _outlives(stream: TextIO) -> TextIO:
    """The same stream; a terminal's does not fail when the terminal is closed."""
    try:
        if not stream.isatty():
            return stream
        stream.flush()
        raw = _Terminal(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError, AttributeError):
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def _count(hear: int, heard: _Heard) -> None:
    until: float | None = None
    while until is None or select.select([hear], [], [], max(0.0, until - time.monotonic()))[0]:
        heard.times.update(os.read(hear, 64))
        if heard.impatient:
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
