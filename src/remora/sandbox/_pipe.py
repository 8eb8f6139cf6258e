"""A child of ours that answers questions over its pipes, each within a time limit that holds. Blocking: for threads."""

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


class Silent(Exception):
    """The child gave no answer that can be taken. The text says why."""


class ChildPipe:
    """One child at a time, with the clean environment of every program we start."""

    def __init__(self, max_answer: int) -> None:
        self._max_answer = max_answer
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """There is a child. True if it is a new one. Raises `Silent` if none can be started."""
        if self._process is not None and self._process.poll() is None:
            return False
        self.stop()
        try:
            self._process = _spawn()
        except OSError as error:
            raise Silent(f"no child process could be started ({error.strerror})") from error
        limit_child(self._process.pid)
        _, send = self._ends()
        os.set_blocking(send, False)
        # As its parent finds modules, so does the child; and no more than that is taken over.
        paths = [str(Path(path).absolute()) for path in sys.path]
        self._send(pickle.dumps((paths, self._max_answer)), KILL_S)
        return True

    def exchange(self, question: bytes, limit_s: float) -> bytes:
        """The child's answer. Raises `Silent` after `limit_s`, or if it ended or said too much."""
        until = time.monotonic() + limit_s
        self._send(question, limit_s)
        try:
            (size,) = struct.unpack(">I", self._receive(4, until))
            if size > self._max_answer:
                raise Silent(f"it gave {size} bytes: at most {self._max_answer} are taken")
            return self._receive(size, until)
        except TimeoutError:
            raise Silent(f"it took longer than {limit_s:g} s") from None

    def kill(self) -> None:
        """The child's whole group is dead. May be called from any thread."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """No child is left."""
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
            raise Silent(self._how_it_ended()) from None
        except TimeoutError:
            raise Silent(f"it took longer than {limit_s:g} s") from None

    def _receive(self, size: int, until: float) -> bytes:
        receive, _ = self._ends()
        data = b""
        while len(data) < size:
            _wait(receive, selectors.EVENT_READ, until)
            chunk = os.read(receive, size - len(data))
            if not chunk:
                raise Silent(self._how_it_ended())
            data += chunk
        return data

    def _ends(self) -> tuple[int, int]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise Silent("it has no child process")
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
