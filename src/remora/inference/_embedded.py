"""The embedded model: llama.cpp in a child process, on loopback, with a secret key.

A crash or hang of native code ends the child, never the run: the current request fails with a typed error, and the next
one starts a new child. The child starts on first use and ends with this process, also when it is killed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

import orjson

from remora.context.text import one_line
from remora.errors import ConfigError, MissingExtra, ServerUnreachable
from remora.inference._threads import threads_to_use

CHILD = Path(__file__).with_name("_embedded_child.py")
START_S = 60.0
STOP_S = 2.0
HEALTH_S = 2.0
MAX_FAILURES = 5
"""Consecutive children without a reply, after which no more are started."""
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""Environment variables that the child gets."""


@dataclass(frozen=True)
class Child:
    """A running child and its address."""

    process: subprocess.Popen[bytes]
    url: str
    key: str = field(repr=False)


class EmbeddedServer:
    """Serves a GGUF file from a child process. Close it: `async with EmbeddedServer(path)`."""

    def __init__(
        self,
        gguf: Path,
        *,
        context: int = 4096,
        slots: int = 1,
        threads: int | None = None,
        adapters: Sequence[Path] = (),
        special: bool = False,
        start_s: float = START_S,
    ) -> None:
        _check_installed()
        self.gguf = gguf
        self.context = context
        self.slots = slots
        self.adapters = tuple(adapters)
        self._special = special
        """Whether control tokens appear in the text, for models whose call markup consists of them."""
        self._threads = threads
        self._start_s = start_s
        self._child: Child | None = None
        self._failures = 0
        self._turn = asyncio.Lock()
        self._log: IO[bytes] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ready(self) -> Child:
        """The running child, started if necessary. Raises `ServerUnreachable` after `MAX_FAILURES` in a row."""
        async with self._turn:
            if self._child is None or self._child.process.poll() is not None:
                self._discard()
                if self._failures >= MAX_FAILURES:
                    raise self._failed(f"it failed {self._failures} times in a row")
                self._failures += 1
                self._child = await self._start()
            return self._child

    def worked(self) -> None:
        """Reset the failure count after a reply."""
        self._failures = 0

    async def check(self, child: Child) -> bool:
        """Whether `child` still responds. If not, kill it, and the next request starts another."""
        if self._child is child and not await _healthy(child):
            self.kill(child)
        return self._child is child

    def kill(self, child: Child) -> None:
        """Kill `child`, unless it was already replaced."""
        if self._child is child:
            self._discard()

    async def close(self) -> None:
        """Stop the child."""
        async with self._turn:
            child, self._child = self._child, None
            if child is not None:
                _close_stdin(child.process)
                with suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(child.process.wait, STOP_S)
                _end(child.process)
            if self._log is not None:
                self._log.close()

    async def _start(self) -> Child:
        key = secrets.token_urlsafe(32)
        try:
            threads = self._threads if self._threads else await asyncio.to_thread(threads_to_use)
            self._log = self._log or tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
            # From this thread, not a worker: the child dies with the thread that started it.
            process = _spawn(self._log)
        except (OSError, RuntimeError) as error:  # cannot create a file, a process or a thread
            raise self._failed(f"it did not start ({error})") from error
        try:
            async with asyncio.timeout(self._start_s):
                url = await asyncio.to_thread(self._handshake, process, key, threads)
        except TimeoutError as error:
            _end(process)
            raise self._failed(f"it did not listen within {self._start_s:g} s") from error
        except BaseException:
            _end(process)
            raise
        return Child(process, url, key)

    def _handshake(self, process: subprocess.Popen[bytes], key: str, threads: int) -> str:
        """Send the settings to the child and return the address where it serves."""
        assert process.stdin and process.stdout  # noqa: S101 - both are pipes
        wanted = {
            "gguf": str(self.gguf.absolute()), "key": key, "slots": self.slots, "context": self.context,
            "threads": threads, "special": self._special, "adapters": [str(path.absolute()) for path in self.adapters],
            "paths": [str(Path(path).absolute()) for path in sys.path], "parent": os.getpid(),
        }  # fmt: skip
        try:
            process.stdin.write(orjson.dumps(wanted) + b"\n")
            process.stdin.flush()
            answer = orjson.loads(process.stdout.readline() or b"{}")
        except (OSError, ValueError) as error:
            raise self._failed(f"the connection broke ({type(error).__name__})") from error
        if "url" not in answer:
            raise self._failed(one_line(str(answer.get("error", "it ended before it listened")), 200))
        return str(answer["url"])

    def _discard(self) -> None:
        if self._child is not None:
            _end(self._child.process)
            self._child = None

    def _failed(self, reason: str) -> ServerUnreachable:
        return ServerUnreachable(
            f"The embedded model `{self.gguf.name}` cannot be used: {reason}",
            hint=one_line(self._log_tail(), 200) or None,
        )

    def _log_tail(self) -> str:
        """The end of the child's log."""
        if self._log is None or self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), 400, max(0, size - 400)).decode(errors="replace")


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("xllamacpp") is None:
        raise MissingExtra("The embedded model", extra="embedded")


def check_gguf(path: Path) -> None:
    """Raises `ConfigError` if `path` is not a GGUF file."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {error.strerror or error}") from error
    if start != b"GGUF":
        raise ConfigError(f"`{path}` is not a GGUF file: it does not begin with `GGUF`")


def _spawn(log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", str(CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        start_new_session=True,  # we handle Ctrl-C: the current reply may still be needed
    )


async def _healthy(child: Child) -> bool:
    import httpx2

    from remora.inference._door import http_client

    if child.process.poll() is not None:
        return False
    try:
        async with asyncio.timeout(HEALTH_S), http_client(child.url, child.key, HEALTH_S) as client:
            return bool((await client.get(f"{child.url}/health")).status_code == 200)
    except (httpx2.HTTPError, TimeoutError):
        return False


def _close_stdin(process: subprocess.Popen[bytes]) -> None:
    """Close stdin, which tells the child to exit."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the child and close its pipes."""
    process.kill()
    process.wait()
    _close_stdin(process)
    if process.stdout is not None:
        process.stdout.close()
