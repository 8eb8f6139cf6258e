"""A child process that answers requests over pipes, with a time limit for each. Blocking: call it from a thread."""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

from remora.sandbox._environment import ENVIRONMENT
from remora.sandbox._spawner import KILL_S
from remora.sandbox._spawner import _limit as limit_child

CHILD = Path(__file__).with_name("_guard_child.py")


class NoAnswer(Exception):
    """The child gave no usable answer. The text says why."""


class ChildPipe:
    """At most one child at a time, with the clean environment of every program we start."""

    def __init__(self, max_answer: int) -> None:
        self._max_answer = max_answer
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Start a child unless one is running. Returns True if it is new. Raises `NoAnswer` if that fails."""
        if self._process is not None and self._process.poll() is None:
            return False
        self.stop()
        try:
            self._process = _spawn()
        except OSError as error:
            raise NoAnswer(f"could not start a child process ({error.strerror})") from error
        limit_child(self._process.pid)
        _, send = self._ends()
        os.set_blocking(send, False)
        # The child imports modules from the same places as its parent. It inherits nothing else.
        paths = [str(Path(path).absolute()) for path in sys.path]
        self._send(pickle.dumps((paths, self._max_answer)), KILL_S)
        return True

    def exchange(self, question: bytes, limit_s: float) -> bytes:
        """Send a request and return the answer.

        Raises `NoAnswer` after `limit_s`, or if the child ended or its answer is too large.
        """
        until = time.monotonic() + limit_s
        self._send(question, limit_s)
        try:
            (size,) = struct.unpack(">I", self._receive(4, until))
            if size > self._max_answer:
                raise NoAnswer(f"it returned {size} bytes: the limit is {self._max_answer}")
            return self._receive(size, until)
        except TimeoutError:
            raise NoAnswer(f"it took longer than {limit_s:g} s") from None

    def kill(self) -> None:
        """Kill the child's process group. Safe to call from any thread."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill the child and close its pipes."""
        process = self._process
        if process is None:
            return
        self.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_S)
        self._process = None

    def _send(self, data: bytes, limit_s: float) -> None:
        _, send = self._ends()
        until = time.monotonic() + limit_s
        rest = memoryview(struct.pack(">Q", len(data)) + data)
        try:
            while rest:
                _wait(send, selectors.EVENT_WRITE, until)
                rest = rest[os.write(send, rest[: 1024 * 1024]) :]
        except BrokenPipeError:
            raise NoAnswer(self._how_it_ended()) from None
        except TimeoutError:
            raise NoAnswer(f"it took longer than {limit_s:g} s") from None

    def _receive(self, size: int, until: float) -> bytes:
        receive, _ = self._ends()
        data = b""
        while len(data) < size:
            _wait(receive, selectors.EVENT_READ, until)
            chunk = os.read(receive, size - len(data))
            if not chunk:
                raise NoAnswer(self._how_it_ended())
            data += chunk
        return data

    def _ends(self) -> tuple[int, int]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise NoAnswer("it has no child process")
        return process.stdout.fileno(), process.stdin.fileno()

    def _how_it_ended(self) -> str:
        code = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(KILL_S)
        if code is not None and code < 0:
            return f"its process was ended by signal {-code}"
        return f"its process ended with status {code}"


def _spawn() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", str(CHILD)],
        cwd="/",
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )


def _wait(descriptor: int, event: int, until: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, event)
        if not selector.select(max(0.0, until - time.monotonic())):
            raise TimeoutError
