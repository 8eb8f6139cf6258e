"""The embedded model: llama.cpp in a child process of ours, on loopback, with a key that nobody else knows.

A crash or a hang of native code ends the child and never the run: the request that it met ends in a typed error, and
the next one finds a new child. It starts at the first use and ends with us, also when we are killed.
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
"""Children in a row that gave no reply, after which no more are started."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""All that the child sees of our environment."""


@dataclass(frozen=True)
class Child:
    """A child that listens."""

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
        start_s: float = START_S,
    ) -> None:
        _check_installed()
        self.gguf = gguf
        self.context = context
        self.slots = slots
        self.adapters = tuple(adapters)
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
        """A child that listens, started if there is none. Raises `ServerUnreachable` after `MAX_FAILURES` in a row."""
        async with self._turn:
            if self._child is None or self._child.process.poll() is not None:
                self._discard()
                if self._failures >= MAX_FAILURES:
                    raise self._failed(f"it failed {self._failures} times in a row")
                self._failures += 1
                self._child = await self._start()
            return self._child

    def worked(self) -> None:
        """A reply came: failures before it count no more."""
        self._failures = 0

    async def check(self, child: Child) -> bool:
        """Whether `child` still answers. If not, it is gone, and the next request gets another."""
        if self._child is child and not await _healthy(child):
            self.kill(child)
        return self._child is child

    def kill(self, child: Child) -> None:
        """`child` is dead, unless another has long taken its place."""
        if self._child is child:
            self._discard()

    async def close(self) -> None:
        """No child is left."""
        async with self._turn:
            child, self._child = self._child, None
            if child is not None:
                _hang_up(child.process)
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
            # From this thread, not a worker's: the child dies with the thread that started it.
            process = _spawn(self._log)
        except (OSError, RuntimeError) as error:  # no room for a file, a process or a thread
            raise self._failed(f"it could not be started ({error})") from error
        try:
            async with asyncio.timeout(self._start_s):
                url = await asyncio.to_thread(self._greet, process, key, threads)
        except TimeoutError as error:
            _end(process)
            raise self._failed(f"it did not listen within {self._start_s:g} s") from error
        except BaseException:
            _end(process)
            raise
        return Child(process, url, key)

    def _greet(self, process: subprocess.Popen[bytes], key: str, threads: int) -> str:
        """Say what is wanted, and give the address where it is served."""
        assert process.stdin and process.stdout  # noqa: S101 - both are pipes
        wanted = {
            "gguf": str(self.gguf.absolute()), "key": key, "slots": self.slots, "context": self.context,
            "threads": threads, "adapters": [str(path.absolute()) for path in self.adapters],
            "paths": [str(Path(path).absolute()) for path in sys.path], "parent": os.getpid(),
        }  # fmt: skip
        try:
            process.stdin.write(orjson.dumps(wanted) + b"\n")
            process.stdin.flush()
            told = orjson.loads(process.stdout.readline() or b"{}")
        except (OSError, ValueError) as error:
            raise self._failed(f"it broke off ({type(error).__name__})") from error
        if "url" not in told:
            raise self._failed(one_line(str(told.get("error", "it ended before it listened")), 200))
        return str(told["url"])

    def _discard(self) -> None:
        if self._child is not None:
            _end(self._child.process)
            self._child = None

    def _failed(self, why: str) -> ServerUnreachable:
        return ServerUnreachable(
            f"The embedded model `{self.gguf.name}` cannot be used: {why}",
            hint=one_line(self._last_words(), 200) or None,
        )

    def _last_words(self) -> str:
        """The end of what the child printed."""
        if self._log is None or self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), 400, max(0, size - 400)).decode(errors="replace")


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("xllamacpp") is None:
        raise MissingExtra("The embedded model", extra="embedded")


def check_gguf(path: Path) -> None:
    """Raises `ConfigError` if `path` is no GGUF file."""
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
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
        start_new_session=True,  # Ctrl-C is ours to handle: the reply being given may still be wanted
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


def _hang_up(process: subprocess.Popen[bytes]) -> None:
    """Tell the child to end."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """The child is dead and its pipes are closed."""
    process.kill()
    process.wait()
    _hang_up(process)
    if process.stdout is not None:
        process.stdout.close()
