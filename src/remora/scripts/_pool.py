"""Runs scripts on pydantic-monty: workers without files, network or environment, one fresh session per call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from remora.errors import MissingExtra, ToolError, ToolFailed, ToolLimitExceeded
from remora.scripts._calls import HostCalls, HostFunction
from remora.scripts._inside import REFUSED, Surroundings
from remora.scripts._modules import Module, join_sources, locate_line
from remora.scripts._values import NotPlain, plain

if TYPE_CHECKING:
    import pydantic_monty

MB = 1024 * 1024
MAX_PRINTS = MB
MAX_ERROR_TEXT = 1000
"""Characters kept of a script's own error."""
GRACE_S = 1.0
"""Seconds past its limit before a worker is killed from outside."""
HOST_S = 120.0
"""Seconds for all host calls of one run together, in addition to the script's own time."""

SETTLE_S = 0.05
"""Pause after closing, for Monty's own threads.

A thread that still releases a Python object while the interpreter exits aborts the process (1.4.0: 38 of 100 exits
without this pause, 0 of 480 with one of a millisecond or more).
"""


@dataclass(frozen=True)
class Limits:
    """Resources of one run of a script. Time spent in host functions is counted separately."""

    memory_mb: int
    seconds: float


STRICT = Limits(8, 0.5)
DEFAULT = Limits(16, 2.0)
PERMISSIVE = Limits(64, 10.0)


@dataclass(frozen=True)
class ScriptOutput:
    """The result of a script: the value of its last expression, and what it printed."""

    value: Any
    prints: str = ""


class ScriptPool:
    """Worker processes that scripts share. Open it once: `async with ScriptPool() as pool`."""

    def __init__(self, max_processes: int = 4) -> None:
        try:
            import pydantic_monty
        except ImportError as error:
            raise MissingExtra("pydantic-monty, which runs tool scripts,", extra="agents") from error
        self._surroundings = Surroundings()
        self._monty = pydantic_monty.AsyncMonty(
            max_processes=max_processes,
            request_timeout=PERMISSIVE.seconds + 2 * GRACE_S,
            feed_duration_limit_grace=GRACE_S,
        )

    async def __aenter__(self) -> ScriptPool:
        await self._monty.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._monty.__aexit__(kind, error, trace)
        await asyncio.sleep(SETTLE_S)

    async def run(
        self,
        file: str,
        source: str,
        *,
        inputs: Mapping[str, Any],
        externals: Mapping[str, HostFunction],
        limits: Limits = DEFAULT,
        modules: Sequence[Module] = (),
    ) -> ScriptOutput:
        """Run a script and return its result and prints.

        Raises `ToolError`, with the prints, for anything the script does.
        """
        prints = _Prints()
        session = self._monty.checkout(
            limits={"max_feed_duration_secs": limits.seconds, "max_memory": limits.memory_mb * MB},
            os_policy={"sleep": "zero"},
        )
        try:
            async with session:
                code, offset = self._surroundings.around(join_sources(modules, source), tuple(externals))
                named = {self._surroundings.hidden(name): function for name, function in externals.items()}
                run = _Run(session, file, prints, limits, offset, modules)
                value = await run.feed(code, dict(inputs), named)
            return ScriptOutput(_check_result(file, value), prints.text())
        except ToolError as error:
            error.prints = prints.text()
            raise


@dataclass(frozen=True)
class _Run:
    """One script in its session."""

    session: pydantic_monty.AsyncMontySession
    file: str
    prints: _Prints
    limits: Limits
    offset: int
    """Lines of ours before the modules and the script."""
    modules: Sequence[Module] = ()

    async def feed(self, code: str, inputs: dict[str, Any], externals: Mapping[str, HostFunction]) -> Any:
        """Run the code and return the value of the last expression. Raises `ToolError`; leaves nothing running."""
        calls = HostCalls()
        lookup = calls.wrap(externals)
        feed = asyncio.ensure_future(
            self.session.feed_run(code, inputs=inputs, external_lookup=lookup, print_callback=self.prints)
        )
        try:
            await asyncio.wait({feed}, timeout=self.limits.seconds + GRACE_S + HOST_S)
            if not feed.done():
                raise ToolLimitExceeded(self.file, limit=f"{HOST_S:g} s in host functions")
            return self._outcome(feed)
        finally:
            await _end(feed, calls)

    def _outcome(self, feed: asyncio.Future[Any]) -> Any:
        import pydantic_monty

        # Never raised: as a cause or in a traceback, its text would outlive the call.
        error = feed.exception()
        if error is None:
            return feed.result()
        if isinstance(error, pydantic_monty.MontyCrashedError):
            if getattr(error, "timed_out", False):
                raise ToolLimitExceeded(self.file, limit=f"{self.limits.seconds:g} s")
            raise ToolFailed(f"{self.file}: its worker process died: {error}")
        if isinstance(error, pydantic_monty.MontyError):
            raise self._translate(error)
        raise error

    def _translate(self, error: pydantic_monty.MontyError) -> ToolError:
        # Truncated at once: the text of a script's error can be as large as its memory limit.
        kind, _, message = str(error)[:MAX_ERROR_TEXT].partition(": ")
        frames = error.traceback() if hasattr(error, "traceback") else []
        if limit := self._limit(kind, message, raised=bool(frames)):
            return ToolLimitExceeded(self.file, limit=limit)
        if kind == "TypeError" and message.startswith(REFUSED):
            return ToolFailed(f"{self.file}: its result is not valid: {message[len(REFUSED) :]}")
        line = next((frame.line - self.offset for frame in reversed(frames) if frame.line > self.offset), None)
        file, line = (self.file, None) if line is None else locate_line(line, self.file, self.modules)
        place = file if line is None else f"{file}:{line}"
        return ToolFailed(f"{place}: {kind}: {message}" if message else f"{place}: {kind}")

    def _limit(self, kind: str, message: str, *, raised: bool) -> str:
        """The limit that an error reports, or empty. An error raised by the script itself has a traceback."""
        if kind == "TimeoutError" and "time limit exceeded" in message and not raised:
            return f"{self.limits.seconds:g} s"
        if kind == "MemoryError" and "memory limit" in message:
            return f"{self.limits.memory_mb} MB of memory"
        if kind == "RuntimeError" and "suspension limit" in message:
            return "1000 host calls"
        return "1000 nested calls" if kind == "RecursionError" else ""


async def _end(feed: asyncio.Future[Any], calls: HostCalls) -> None:
    """Stop the host calls and wait until the feed has ended."""
    calls.stop()
    await asyncio.wait({feed})
    if not feed.cancelled():
        feed.exception()
    await calls.wait_stopped()


class _Prints:
    """What a script prints, up to a limit. The text says if more was dropped."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = MAX_PRINTS

    def __call__(self, stream: str, text: str) -> None:
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)

    def text(self) -> str:
        return "".join(self._parts) + ("\n[output truncated]\n" if self._room < 0 else "")


def _check_result(file: str, value: Any) -> Any:
    try:
        return plain(value)
    except NotPlain as error:
        raise ToolFailed(f"{file}: its result is not valid: {error}") from error
