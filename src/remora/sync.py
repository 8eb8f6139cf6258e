"""`remora.sync.TwoTrack`: the same as `remora.TwoTrack`, without `await`.

Each has an event loop on a thread of its own. Your tools run on your thread.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from remora.context.calls import CallLike
from remora.context.chat import Reply
from remora.context.contracts import ToolLike
from remora.context.models import DecisionPacket
from remora.events import Call, ToolResultEvent
from remora.ports import Prompt
from remora.twotrack import GivenOutcome, Running, TrackSettings
from remora.twotrack import TwoTrack as AsyncTwoTrack

T = TypeVar("T")
_Job = tuple[dict[str, Any], asyncio.Future[Any]]


class LoopThread:
    """An event loop on a thread of its own, started when it is first used."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, running."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="remora-twotrack", daemon=True)
                self._thread.start()
            return self._loop

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the thread and wait for its result. An interrupt leaves it running to its end."""
        return self.submit(work).result()

    def stop(self) -> None:
        """Stop the thread. It starts again when it is used again."""
        with self._starting:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


class TwoTrack:
    """`remora.TwoTrack` for code without `async`: the same arguments, methods and results. Threads may share it."""

    def __init__(self, goal: str, **settings: Unpack[TrackSettings]) -> None:
        """`settings` are those of `remora.TwoTrack`."""
        self._begin(AsyncTwoTrack(goal, **settings))

    def _begin(self, track: AsyncTwoTrack, thread: LoopThread | None = None) -> None:
        self.track = track
        """The `remora.TwoTrack` behind it, for what needs no `await`."""
        self._thread = thread or LoopThread()

    @classmethod
    def of(cls, track: AsyncTwoTrack, thread: LoopThread) -> Self:
        """The twin of a `remora.TwoTrack` whose coroutines run on this thread."""
        made = cls.__new__(cls)
        made._begin(track, thread)
        return made

    @classmethod
    def continue_(
        cls, stream: str | Path | AsyncTwoTrack | TwoTrack, *, goal: str = "", **settings: Unpack[TrackSettings]
    ) -> Self:
        """As `remora.TwoTrack.continue_`: a new stream that goes on where `stream` ended, with its packet."""
        made = cls.__new__(cls)
        source = stream.track if isinstance(stream, TwoTrack) else stream
        made._begin(AsyncTwoTrack.continue_(source, goal=goal, **settings))
        return made

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)

    def open(self) -> Self:
        """Create the stream and record its beginning, as `with` does."""
        self._run(self.track.open())
        return self

    def close(self, error: BaseException | str | None = None) -> None:
        """Seal the stream and stop the thread, as the end of `with` does. A second call does nothing."""
        try:
            if self.track.begun and not self.track.closed:
                self._run(self.track.close(error))
        finally:
            self._thread.stop()

    @property
    def packet(self) -> DecisionPacket:
        """The Short Track as it is now."""
        return self.track.packet

    @property
    def path(self) -> Path | None:
        """The file of the Long Track."""
        return self.track.path

    @property
    def last_result(self) -> ToolResultEvent | None:
        """The event of the latest finished call."""
        return self.track.last_result

    def request(self, *, tools: Sequence[ToolLike] | None = None, system: str | None = None) -> Prompt:
        """Start the next turn and return its prompt, which is within the limit."""
        return self._run(self.track.request(tools=tools, system=system))

    def response(self, reply: Reply, *, calls: Iterable[CallLike] | None = None) -> tuple[Call, ...]:
        """Record a reply and return its valid calls."""
        return self._run(self.track.response(reply, calls=calls))

    def call(self, call: CallLike, use: Callable[..., Any], *, raises: bool = False) -> Any:
        """Record the intent, run `use(**call.args)` on this thread, record the result, and return the value.

        With `raises`, an exception of the tool is raised again after it is recorded.
        """
        loop, jobs = self._thread.loop, SimpleQueue[_Job | None]()

        async def use_there(**args: Any) -> Any:
            answer: asyncio.Future[Any] = loop.create_future()
            jobs.put((args, answer))
            value = await answer
            return await value if inspect.isawaitable(value) else value

        done = self._thread.submit(self.track.call(call, use_there, raises=raises))
        done.add_done_callback(lambda _: jobs.put(None))
        try:
            while (job := jobs.get()) is not None:
                self._use_here(use, *job)
        except BaseException:
            done.cancel()  # the call stays without a result, as after a crash
            raise
        return done.result()

    def _use_here(self, use: Callable[..., Any], args: dict[str, Any], answer: asyncio.Future[Any]) -> None:
        try:
            value = use(**args)
        except Exception as error:  # noqa: BLE001 - foreign code: the model reads any failure as the result
            self._thread.loop.call_soon_threadsafe(answer.set_exception, error)
        else:
            self._thread.loop.call_soon_threadsafe(answer.set_result, value)

    def called(self, call: CallLike) -> Call:
        """Record that your loop is about to run this call. `returned` records the result."""
        return self._run(self.track.called(call))

    def returned(
        self,
        call_id: str,
        value: Any = None,
        *,
        error: BaseException | str | None = None,
        outcome: GivenOutcome | None = None,
    ) -> ToolResultEvent:
        """Record the result of a call that `called` recorded."""
        return self._run(self.track.returned(call_id, value, error=error, outcome=outcome))

    @contextmanager
    def running(self, call: CallLike) -> Iterator[Running]:
        """Record a call that the block runs: the intent before it, then the `value` that it sets, or its exception."""
        run = Running(self.called(call))
        try:
            yield run
        except Exception as error:
            self.returned(run.call.call_id, error=error)
            raise
        self.returned(run.call.call_id, run.value, outcome=run.outcome)

    def fold(
        self, messages: Iterable[Any], *, tools: Sequence[ToolLike] | None = None, system: str | None = None
    ) -> Prompt:
        """Turn a growing chat history into a prompt within the budget, and record what is new in it."""
        return self._run(self.track.fold(messages, tools=tools, system=system))

    def observe(self, messages: Iterable[Any]) -> str:
        """Record what is new in a growing chat history, without a new prompt. Returns its system text."""
        return self._run(self.track.observe(messages))

    def skip(self, messages: Iterable[Any]) -> None:
        """Take these messages as recorded: the stream that this one continues has them."""
        self.track.skip(messages)

    def recall(self, text: str = "", seq: int | None = None, lines: str = "") -> dict[str, Any]:
        """Look up event `seq`, or search earlier results for `text`. Returns a bounded tool result."""
        return self._run(self.track.recall(text, seq, lines))

    def said(self, reply: Reply) -> tuple[Call, ...]:
        """Record a reply, also one to a prompt that was not made here, such as a plan."""
        return self._run(self.track.said(reply))

    def user(self, text: str) -> None:
        """Record a person's message."""
        self._run(self.track.user(text))

    def error(self, text: str) -> None:
        """Record a failure outside tools. The next prompt shows it."""
        self._run(self.track.error(text))

    def notice(self, code: str, message: str) -> None:
        """Record a notice. It does not change the packet."""
        self._run(self.track.notice(code, message))

    def submit(self, result: object) -> None:
        """Record the agent's own report."""
        self._run(self.track.submit(result))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.run(work)
