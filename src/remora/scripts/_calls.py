"""The host functions of one running script, ended with it.

Cancelling a Monty feed leaves its pending host coroutines running (seen with 1.4.0): a write could happen after the run
was given up. So a feed is never cancelled: its host calls are, each then raising an ordinary error inside the script,
which ends by itself or by its own time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remora.scripts._values import MAX_IN, NotPlain, plain, weigh

MAX_ERROR = 16 * 1024
"""Characters of a host function's error that a script can read."""
AT_ONCE = 4
"""Host calls of one run that are carried out at the same time. The others wait for their turn."""
MAX_WAITING = 6 * 1024 * 1024
"""Bytes that the arguments of calls in flight may hold together."""
MAX_ANSWERS = 24 * 1024 * 1024
"""Bytes that host functions may give to one run of a script. Monty holds answers until the script waits for one, so we
cannot know which it has taken (1.4.0)."""

HostFunction = Callable[..., Awaitable[Any]]


class HostCalls:
    """Wraps host functions so that every call in flight can be stopped and waited for, and all stay within bounds."""

    def __init__(self) -> None:
        self._stopped = False
        self._inner: set[asyncio.Task[Any]] = set()
        self._outer: set[asyncio.Task[Any]] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._asked = 0
        self._answered = 0

    def wrap(self, functions: Mapping[str, HostFunction]) -> dict[str, HostFunction]:
        """The same functions, stoppable."""
        return {name: self._stoppable(function) for name, function in functions.items()}

    def stop(self) -> None:
        """No host call begins from now on, and those in flight are cancelled."""
        self._stopped = True
        for task in self._inner:
            task.cancel()

    async def ended(self) -> None:
        """Returns once no call is in flight, so nothing outlives its script."""
        self.stop()
        if self._outer:
            await asyncio.wait(self._outer)

    def _stoppable(self, function: HostFunction) -> HostFunction:
        async def call(*args: Any, **kwargs: Any) -> Any:
            answer = await self._answer(function, args, kwargs)
            # An error keeps the frames that it went through: none of them may hold what the script gave us.
            del args, kwargs
            if not isinstance(answer, _Failure):
                return answer
            error = answer.error
            del answer
            try:
                raise error
            finally:
                del error

        return call

    async def _answer(self, function: HostFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function gives, or its failure. Raises nothing."""
        if self._stopped:
            return _Failure(RuntimeError("the script was stopped"))
        try:
            given, named = _checked(args, kwargs)
            size = self._take_in(weigh([given, named]))
        except (TypeError, OSError) as error:
            return _Failure(_bare(error))
        outer = asyncio.current_task()
        inner = asyncio.ensure_future(self._run(function, given, named))
        self._inner.add(inner)
        if outer:
            self._outer.add(outer)
            outer.add_done_callback(self._outer.discard)
        inner.add_done_callback(lambda done: self._ended(done, size))
        await asyncio.wait({inner})
        return _Failure(RuntimeError("the script was stopped")) if inner.cancelled() else inner.result()

    def _take_in(self, size: int) -> int:
        """The size of a call's arguments, now counted. Raises `OSError` if too much is in flight already."""
        if self._asked + size > MAX_WAITING:
            raise OSError(f"too much at once: host calls in flight may hold {MAX_WAITING:,} bytes together")
        self._asked += size
        return size

    def _ended(self, inner: asyncio.Task[Any], size: int) -> None:
        self._inner.discard(inner)
        self._asked -= size

    async def _run(self, function: HostFunction, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What the function gives, in its turn, or its failure: what cannot cross is an ordinary error."""
        async with self._turns:
            try:
                self._check_answers()
                value = plain(await function(*args, **kwargs), MAX_IN)
                self._answered += weigh(value)
                self._check_answers()
            except Exception as error:  # noqa: BLE001 - foreign code: whatever it raises is for the script
                return _Failure(_bare(_ordinary(error)))
            return value

    def _check_answers(self) -> None:
        if self._answered > MAX_ANSWERS:
            raise OSError(f"too much in all: host functions give a script {MAX_ANSWERS:,} bytes in one run")


@dataclass(frozen=True)
class _Failure:
    """How a host call failed."""

    error: Exception


def _bare(error: Exception) -> Exception:
    """The error without the frames it went through, and what they hold."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _checked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments, if a host function can rely on them. Raises `TypeError` as the check inside the sandbox does."""
    try:
        return plain(list(args)), plain(kwargs)
    except NotPlain as error:
        raise TypeError(str(error)) from error


def _ordinary(error: Exception) -> Exception:
    """The error, if a text can be made of it; Monty gives the script the nearest built-in class."""
    try:
        text = str(error)
        text.encode()
    except Exception:  # noqa: BLE001 - foreign code: even its text may fail
        return RuntimeError(f"a host function failed with `{type(error).__name__}`, which has no text")
    return error if len(text) <= MAX_ERROR else RuntimeError(text[:MAX_ERROR])
