"""Hooks of frameworks: the same hook with and without `async`, and objects with some attributes replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from remora.sync import LoopThread

Work = Coroutine[Any, Any, Any]


class HookThread(LoopThread):
    """The thread on which the tracks of a framework live that has hooks with and without `async`."""

    async def wait(self, work: Work) -> Any:
        """Run a coroutine on the thread, and wait for it in the caller's loop."""
        return await asyncio.wrap_future(self.submit(work))

    @contextmanager
    def recording(self, failed: Callable[[BaseException], Work]) -> Iterator[None]:
        """Record an exception, also a cancellation, before it goes on."""
        try:
            yield
        except BaseException as error:
            self.run(failed(error))
            raise


@dataclass(frozen=True)
class Answer:
    """What a hook answers itself, instead of the framework's handler."""

    value: Any


def twins(work: Callable[[Any, Any], Work]) -> tuple[Any, Any]:
    """A hook without and with `async`, as methods: both do `work(self, state)` on the thread `self.thread`."""

    def hook(self: Any, state: Any, runtime: Any) -> Any:
        return self.thread.run(work(self, state))

    async def hook_async(self: Any, state: Any, runtime: Any) -> Any:
        return await self.thread.wait(work(self, state))

    return hook, hook_async


def twins_around(before: Callable[[Any, Any], Work], after: Callable[[Any, Any, Any], Work]) -> tuple[Any, Any]:
    """Hooks around a handler, without and with `async`, as methods.

    `before(self, request)` gives the request to hand on, or an `Answer`. `after(self, request, value)` gets what the
    handler gave, or the exception that it raised.
    """

    def hook(self: Any, request: Any, handler: Callable[[Any], Any]) -> Any:
        with self.thread.recording(lambda error: after(self, request, error)):
            asked = self.thread.run(before(self, request))
            value = asked.value if isinstance(asked, Answer) else handler(asked)
        self.thread.run(after(self, request, value))
        return value

    async def hook_async(self: Any, request: Any, handler: Callable[[Any], Any]) -> Any:
        with self.thread.recording(lambda error: after(self, request, error)):
            asked = await self.thread.wait(before(self, request))
            value = asked.value if isinstance(asked, Answer) else await handler(asked)
        await self.thread.wait(after(self, request, value))
        return value

    return hook, hook_async


class Replaced:
    """An object with some of its attributes replaced; `call` is what calling it does."""

    def __init__(self, inner: Any, **replaced: Any) -> None:
        self._inner = inner
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


def replace_attributes(thing: Any, **attributes: Any) -> Callable[[], None]:
    """Give an object other attributes, methods too. Returns the function that undoes it."""
    before = {name: value for name, value in vars(thing).items() if name in attributes}
    vars(thing).update(attributes)

    def undo() -> None:
        for name in attributes:
            vars(thing).pop(name, None)
        vars(thing).update(before)

    return undo
