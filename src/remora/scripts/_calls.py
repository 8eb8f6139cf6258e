"""The host functions of one running script, ended with it.

Cancelling a Monty feed leaves its pending host coroutines running (seen with 1.4.0): a write could happen after the run
was given up. So a feed is never cancelled: its host calls are, each then raising an ordinary error inside the script,
which ends by itself or by its own time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from remora.scripts._values import MAX_IN, NotPlain, plain

MAX_ERROR = 16 * 1024
"""Characters of a host function's error that a script can read."""

HostFunction = Callable[..., Awaitable[Any]]


class HostCalls:
    """Wraps host functions so that every call in flight can be stopped and waited for."""

    def __init__(self) -> None:
        self._stopped = False
        self._inner: set[asyncio.Task[Any]] = set()
        self._outer: set[asyncio.Task[Any]] = set()

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
            if self._stopped:
                raise RuntimeError("the script was stopped")
            outer = asyncio.current_task()
            inner = asyncio.ensure_future(_run(function, args, kwargs))
            self._inner.add(inner)
            if outer:
                self._outer.add(outer)
                outer.add_done_callback(self._outer.discard)
            inner.add_done_callback(self._inner.discard)
            return await _result(inner)

        return call


async def _run(function: HostFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the function gives for values that it can rely on; what cannot cross is an ordinary error in the script."""
    try:
        args, kwargs = tuple(plain(list(args))), plain(kwargs)
    except NotPlain as error:
        raise TypeError(str(error)) from error  # as the check inside the sandbox says it
    try:
        value = await function(*args, **kwargs)
    except Exception as error:
        raise _ordinary(error) from error
    return plain(value, MAX_IN)


def _ordinary(error: Exception) -> Exception:
    """The error, if a text can be made of it; Monty gives the script the nearest built-in class."""
    try:
        text = str(error)
        text.encode()
    except Exception:  # noqa: BLE001 - foreign code: even its text may fail
        return RuntimeError(f"a host function failed with `{type(error).__name__}`, which has no text")
    return error if len(text) <= MAX_ERROR else RuntimeError(text[:MAX_ERROR])


async def _result(inner: asyncio.Task[Any]) -> Any:
    await asyncio.wait({inner})
    if inner.cancelled():
        raise RuntimeError("the script was stopped")
    return inner.result()
