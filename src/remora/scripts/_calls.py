"""The host functions of one running script, stopped together with it.

Cancelling a Monty feed leaves its pending host coroutines running (seen with 1.4.0), so a write could happen after the
run was abandoned. So a feed is never cancelled. Its host calls are: each then raises an ordinary error inside the
script, which ends by itself or at its time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remora.scripts._values import MAX_IN, NotPlain, measure, plain

MAX_ERROR = 16 * 1024
"""Characters of a host function's error that a script can read."""
MAX_CONCURRENT = 4
"""Host calls of one run that run concurrently. The others wait."""
MAX_ARGUMENTS = 6 * 1024 * 1024
"""Total bytes of the arguments of calls in flight."""
MAX_ANSWERS = 24 * 1024 * 1024
"""Total bytes that host functions may return to one run of a script.

Monty holds answers until the script awaits one, so we cannot know which were consumed (1.4.0).
"""

HostFunction = Callable[..., Awaitable[Any]]


class HostCalls:
    """Wraps host functions so that calls in flight are bounded, and can be stopped and awaited."""

    def __init__(self) -> None:
        self._stopped = False
        self._inner: set[asyncio.Task[Any]] = set()
        self._outer: set[asyncio.Task[Any]] = set()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._arguments_size = 0
        self._answers_size = 0

    def wrap(self, functions: Mapping[str, HostFunction]) -> dict[str, HostFunction]:
        """Wrap the functions so that they can be stopped."""
        return {name: self._stoppable(function) for name, function in functions.items()}

    def stop(self) -> None:
        """Refuse new host calls and cancel those in flight."""
        self._stopped = True
        for task in self._inner:
            task.cancel()

    async def wait_stopped(self) -> None:
        """Stop, and wait until no call is in flight, so that nothing outlives its script."""
        self.stop()
        if self._outer:
            await asyncio.wait(self._outer)

    def _stoppable(self, function: HostFunction) -> HostFunction:
        async def call(*args: Any, **kwargs: Any) -> Any:
            answer = await self._answer(function, args, kwargs)
            # A traceback keeps its frames alive. None of them may hold the script's values.
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
        """Call the function and return its result or its failure. Raises nothing."""
        if self._stopped:
            return _Failure(RuntimeError("the script was stopped"))
        try:
            given, named = _check_arguments(args, kwargs)
            size = self._count_arguments(measure([given, named]))
        except (TypeError, OSError) as error:
            return _Failure(_without_traceback(error))
        outer = asyncio.current_task()
        inner = asyncio.ensure_future(self._run(function, given, named))
        self._inner.add(inner)
        if outer:
            self._outer.add(outer)
            outer.add_done_callback(self._outer.discard)
        inner.add_done_callback(lambda done: self._forget(done, size))
        await asyncio.wait({inner})
        return _Failure(RuntimeError("the script was stopped")) if inner.cancelled() else inner.result()

    def _count_arguments(self, size: int) -> int:
        """Count the size of a call's arguments and return it. Raises `OSError` if too much is in flight."""
        if self._arguments_size + size > MAX_ARGUMENTS:
            raise OSError(
                f"too much at once: the arguments of host calls in flight are limited to {MAX_ARGUMENTS:,} bytes"
            )
        self._arguments_size += size
        return size

    def _forget(self, inner: asyncio.Task[Any], size: int) -> None:
        self._inner.discard(inner)
        self._arguments_size -= size

    async def _run(self, function: HostFunction, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Run the function in its turn and return its result or failure. A result that is not JSON is a failure."""
        async with self._slots:
            try:
                self._check_answers()
                value = plain(await function(*args, **kwargs), MAX_IN)
                self._answers_size += measure(value)
                self._check_answers()
            except Exception as error:  # noqa: BLE001 - third-party code: the script gets whatever it raises
                return _Failure(_without_traceback(_usable_error(error)))
            return value

    def _check_answers(self) -> None:
        if self._answers_size > MAX_ANSWERS:
            raise OSError(f"too much in total: host functions may return {MAX_ANSWERS:,} bytes to a script in one run")


@dataclass(frozen=True)
class _Failure:
    """A failed host call."""

    error: Exception


def _without_traceback(error: Exception) -> Exception:
    """Remove the traceback from the error, so that its frames and their values are freed."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _check_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Check that the arguments are JSON. Raises `TypeError` like the check inside the sandbox."""
    try:
        return plain(list(args)), plain(kwargs)
    except NotPlain as error:
        raise TypeError(str(error)) from error


def _usable_error(error: Exception) -> Exception:
    """The error, if its text can be used. Monty raises the nearest built-in class in the script."""
    try:
        text = str(error)
        text.encode()
    except Exception:  # noqa: BLE001 - third-party code: even its text may fail
        return RuntimeError(f"a host function failed with `{type(error).__name__}`, which has no text")
    return error if len(text) <= MAX_ERROR else RuntimeError(text[:MAX_ERROR])
