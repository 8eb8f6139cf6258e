"""`TwoTrack`: both tracks for a loop of your own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from remora.context.calls import BadCall, CallLike, read_call
from remora.context.chat import Reply, read_reply
from remora.context.checks import Extension
from remora.context.contracts import ToolLike, make_error_result
from remora.context.render import Calling, Style
from remora.context.summarizers import Summarizer
from remora.errors import ToolError, UsageError
from remora.events import (
    AgentEndEvent,
    Call,
    ErrorDelta,
    PacketDelta,
    PacketUpdateEvent,
    ToolResultEvent,
    TurnStartEvent,
)
from remora.ports import Prompt, SummaryGuard, TokenCounter, ToolOutput
from remora.twotrack._carry import Parent, carried
from remora.twotrack._history import Item, Replied, Returned, Said, Seen, read_history
from remora.twotrack._settings import TrackSettings
from remora.twotrack._tool_results import Changes
from remora.twotrack._track import Track
from remora.twotrack._wiring import Wiring

GivenOutcome = Literal["success", "error", "partial", "unknown"]
_LATE = "Calls were recorded after they ran, from the history: their intents were not durable before their effects"


@dataclass
class Running:
    """A call while it runs. Set its `value`, and the `outcome` if you know it."""

    call: Call
    value: Any = None
    outcome: GivenOutcome | None = None


class TwoTrack(Track):
    """One agent's stream and packet. Nothing enters the packet that is not in the stream first.

    `tools` are functions with `@remora.tool`, `ToolSpec`s, or dicts in OpenAI's or Anthropic's shape. With
    `calling="native"` they are sent beside the messages, by `prompt.openai_tools()`; with `"text"` the prompt lists
    them and asks for a call as JSON. Tools that you do not know yet can be given to `request`.

    `budget` bounds the tokens of every whole prompt. Without it, the packet may take 3,000 beside system and tools.
    `sync="turn"` makes events durable before every prompt leaves, before every tool runs, and at the end; `"always"`
    makes each one durable before its method returns; `"off"` leaves it to the operating system.

    `name` is shown in lists of runs. `counter` counts the tokens of every prompt: `remora.inference` has `GgufCounter`
    and `JsonCounter` for a tokenizer's file and `ServerCounter` for a server. Without one, tokens are estimated.
    `recall=False` does not offer the tool `recall`, for loops that cannot run it.

    Raises `BudgetError` at once if a prompt could ever be over the budget.
    """

    def __init__(
        self,
        goal: str,
        *,
        name: str = "",
        tools: Sequence[ToolLike] = (),
        budget: int | None = None,
        system_prompt: str = "",
        operation: str = "",
        node_id: str = "",
        state_dir: Path | str = ".agentfs",
        summarizers: Mapping[str, Summarizer] | None = None,
        secrets: Mapping[str, str] | None = None,
        calling: Calling = "native",
        style: Style = "chat",
        guard: SummaryGuard | None = None,
        counter: TokenCounter | None = None,
        extensions: Mapping[str, Extension] | None = None,
        recall: bool = True,
        sync: Literal["always", "turn", "off"] = "turn",
    ) -> None:
        from remora.app import local_wiring

        self._wire(
            local_wiring(
                goal,
                name=name,
                tools=tools,
                budget=budget,
                system_prompt=system_prompt,
                operation=operation,
                node_id=node_id,
                state_dir=Path(state_dir),
                summarizers=summarizers,
                secrets=secrets,
                calling=calling,
                style=style,
                guard=guard,
                counter=counter,
                extensions=extensions,
                recall=recall,
                sync=sync,
            )
        )

    def _wire(self, wiring: Wiring) -> None:
        super()._wire(wiring)
        self.closed = False
        """Whether the stream is sealed."""
        self.last_result: ToolResultEvent | None = None
        """The event of the latest finished call."""
        self._parent: Parent | None = None
        self._open_calls: dict[str, tuple[Call, float]] = {}
        """Calls without a result, and when `called` was told of them."""
        self._asked_for: list[Call] = []
        """Calls of the newest reply that have not begun."""
        self._seen = Seen()
        self._args: dict[str, Call] = {}
        """Calls of replies that have no result yet, by id."""
        self._done: set[str] = set()
        """Ids of calls whose results are recorded, so that a history does not record them again."""
        self._told_late = False

    @classmethod
    def continue_(cls, stream: str | Path | Track, *, goal: str = "", **settings: Unpack[TrackSettings]) -> Self:
        """A new stream that goes on where `stream` ended, with its packet. The old one stays as it is.

        `stream` is the start or end of an agent's id in `state_dir`, the path of its file, or a `TwoTrack`. The new
        stream names it as its `parent`. `goal` and `name` default to those of the old one; other settings are given
        as for a new `TwoTrack`. A call that the old stream left without a result is shown as interrupted.

        Raises `TraceNotFound` and `TraceDamaged`, and `TraceLocked` if the old stream is still being written.
        """
        from remora.app import local_parent

        source = stream.path or stream.identity.agent_id if isinstance(stream, Track) else stream
        if isinstance(source, Path):
            settings.setdefault("state_dir", source.parent.parent)
        parent = local_parent(source, Path(settings.get("state_dir", ".agentfs")))
        settings.setdefault("name", parent.start.name)
        settings.setdefault("operation", parent.start.operation)
        settings.setdefault("node_id", parent.start.node_id)
        track = cls(goal or parent.start.goal, **settings)
        track._parent = parent
        return track

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Seal the stream. An exception that ended the block is recorded in it."""
        await self.close(error)

    async def open(self) -> Self:
        """Create the stream and record its beginning, as `async with` does."""
        if self.begun:
            raise UsageError("This `TwoTrack` was opened before: expected a new one for each run")
        await self.start(parent=self._parent.record() if self._parent else None)
        if self._parent is not None:
            await self.context.record(*carried(self._parent))
        return self

    async def close(self, error: BaseException | str | None = None) -> None:
        """Seal the stream, as the end of `async with` does. `error` is why the run failed. A second call does nothing.

        Calls without a result are reported in a notice.
        """
        if self.closed or not self.begun:
            return
        self.closed = True
        for call, _ in self._open_calls.values():
            await self.notice("no_result", f"{call.tool}: It was called, and its result was never recorded")
        if error is None:
            await self.end(AgentEndEvent())
            return
        code = "error" if isinstance(error, str) else type(error).__name__
        await self.fail(code, str(error))
        cancelled = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        await self.end(AgentEndEvent(outcome="cancelled" if cancelled else "error", reason=code))

    async def call(
        self,
        call: CallLike,
        use: Callable[..., Awaitable[Any] | Any],
        *,
        raises: bool = False,
        changes: Callable[[], Changes] = tuple,
    ) -> Any:
        """Record the intent, run `use(**call.args)`, record the result, raw and distilled, and return the value.

        If the tool fails, the model reads the error, and the value is the error result; with `raises`, the exception
        is raised again after it is recorded. `last_result` is the recorded event.

        `call` may also be a tool call in OpenAI's or Anthropic's shape. If its arguments are not a JSON object, `use`
        is not run, and the result says so. `recall` is run by Remora itself.
        """
        event, output = await self._perform(call, use, changes)
        self._finished(event)
        if raises and output.raised is not None:
            raise output.raised
        return output.value

    async def response(self, reply: Reply, *, calls: Iterable[CallLike] | None = None) -> tuple[Call, ...]:
        """As `Track.response`; a call that comes later without an id is the one of this reply that it equals."""
        made = await super().response(reply, calls=calls)
        self._asked_for = list(made)
        self._args |= {call.call_id: call for call in made}
        return made

    def _read_call(self, call: object) -> Call | BadCall:
        read = read_call(call, number="")
        named = read.call if isinstance(read, BadCall) else read
        if not named.tool:
            raise UsageError(
                f"`{call!r:.200}` names no tool: expected a `Call`, or a dict with `tool` (or `name`) and `args`"
            )
        named = named.model_copy(update={"call_id": named.call_id or self._id_of(named)})
        self._asked_for = [each for each in self._asked_for if each.call_id != named.call_id]
        return replace(read, call=named) if isinstance(read, BadCall) else named

    def _id_of(self, call: Call) -> str:
        """The id of a call that was given without one: that of the newest reply's equal call, or else a new one."""
        for asked in self._asked_for:
            if (asked.tool, asked.args) == (call.tool, call.args):
                return asked.call_id
        first = f"call-{self.packet.turn}"
        ids = itertools.chain([first], (f"{first}-{number}" for number in itertools.count(2)))
        return next(each for each in ids if each not in self._done and each not in self._open_calls)

    async def _record_intent(self, call: Call) -> Mapping[str, Any] | None:
        self._open_calls.setdefault(call.call_id, (call, 0.0))
        return await super()._record_intent(call)

    async def called(self, call: CallLike) -> Call:
        """Record that your loop is about to run this call: durable when it returns. `returned` records the result."""
        read = self._read_call(call)
        if isinstance(read, BadCall):
            read = read.call.model_copy(update={"args": {"arguments": read.written}})
        if read.call_id in self._open_calls:
            raise UsageError(f"Call `{read.call_id}` has no result yet: expected another id, or `returned` first")
        self._open_calls[read.call_id] = (read, self._clock.monotonic())
        await self._record_intent(read)
        return read

    async def returned(
        self,
        call_id: str,
        value: Any = None,
        *,
        error: BaseException | str | None = None,
        outcome: GivenOutcome | None = None,
    ) -> ToolResultEvent:
        """Record the result of a call that `called` recorded: the tool's `value`, or the `error` that it raised.

        An exception as the value, as `asyncio.gather(…, return_exceptions=True)` returns it, is the error.
        `outcome` is what you know about it; without it, it is read from the value.
        """
        if call_id not in self._open_calls:
            raise UsageError(f"Call `{call_id}` is not open: expected the id of a call that `called` recorded")
        if isinstance(value, BaseException):
            value, error = None, value
        call, began = self._open_calls[call_id]
        duration = max(0.0, self._clock.monotonic() - began) * 1000
        output = ToolOutput(value) if error is None else ToolOutput(_error_result(error))
        event = await self._record_output(call, output, (), duration, outcome)
        self._finished(event)
        return event

    @asynccontextmanager
    async def running(self, call: CallLike) -> AsyncIterator[Running]:
        """Record a call that the block runs: the intent before it, then the `value` that it sets, or its exception.

        `called` and `returned` in one: `async with tt.running(call) as run: run.value = await use(**run.call.args)`.
        A cancelled block leaves the call without a result.
        """
        run = Running(await self.called(call))
        try:
            yield run
        except Exception as error:
            await self.returned(run.call.call_id, error=error)
            raise
        await self.returned(run.call.call_id, run.value, outcome=run.outcome)

    async def error(self, text: str) -> None:
        """Record a failure outside tools, such as output that did not validate. The next prompt shows it."""
        await self.context.record(PacketUpdateEvent(source="error", delta=PacketDelta(error=ErrorDelta(set=text))))

    async def fold(
        self, messages: Iterable[Any], *, tools: Sequence[ToolLike] | None = None, system: str | None = None
    ) -> Prompt:
        """Turn a growing chat history into a prompt within the budget, for hooks that see only messages.

        Records what is new in `messages` since the last time: people's words, replies, results. System messages
        replace the system text, unless `system` is given. Opens the stream if that is still to be done; without a
        goal, the first user message is the goal.

        It cannot promise that an intent is durable before its effect: calls are recorded when the history shows them,
        and a notice says so. Record them with `called` and `returned` for that. The last reply is recorded by
        `response` or `observe`.
        """
        found = await self.observe(messages)
        return await self.request(tools=tools, system=system if system is not None else found or None)

    async def observe(self, messages: Iterable[Any]) -> str:
        """Record what is new in a growing chat history, without a new prompt. Returns its system text."""
        system, items = read_history(messages)
        if not self.begun:
            first = next((item.text for item in items if isinstance(item, Said)), "")
            self._set_goal(self.goal or first)
            await self.open()
        news, changed = self._seen.news(items)
        if changed:
            await self.notice("history_changed", "Earlier messages were changed or removed; the stream keeps them")
        names = {key: tool for item in items if isinstance(item, Replied) for key, tool in _names(item)}
        for item in news:
            await self._observe_item(item, names)
        return system

    async def said(self, reply: Reply) -> tuple[Call, ...]:
        """Record a reply, also one to a prompt that was not made here, such as a plan: a turn without a receipt."""
        if self.awaits_reply:
            return await self.response(reply)
        await self.context.record(TurnStartEvent(turn=self.packet.turn + 1))
        self.awaits_reply = True
        return await self.response(reply)

    def skip(self, messages: Iterable[Any]) -> None:
        """Take these messages as recorded: the stream that this one continues has them."""
        _, items = read_history(messages)
        self._seen.news(items)

    async def _observe_item(self, item: Item, names: Mapping[str, str]) -> None:
        match item:
            case Said(text=text):
                if text != self.goal:
                    await self.user(text)
            case Replied(text=text, calls=calls):
                await self._observe_reply(text, calls)
            case Returned() if item.call_id not in self._done:
                await self._observe_result(item, names.get(item.call_id) or item.tool or "tool")

    async def _observe_reply(self, text: str, calls: Sequence[object]) -> None:
        if self.replied and not self.awaits_reply:
            self.replied = False
            return
        # The loop has made these calls, offered or not. A reply from before Remora was there has no request.
        await self.said(read_reply(text, (), turn=self.packet.turn, calls=calls))
        self.replied = False

    async def _observe_result(self, item: Returned, tool: str) -> None:
        if item.call_id not in self._open_calls:
            if not self._told_late:
                self._told_late = True
                await self.notice("recorded_late", _LATE)
            call = self._args.pop(item.call_id, None) or Call(call_id=item.call_id or "call", tool=tool)
            await self.called(call)
        await self.returned(item.call_id or "call", item.value, outcome="error" if item.failed else None)

    def _finished(self, event: ToolResultEvent) -> None:
        self.last_result = event
        self._open_calls.pop(event.call_id, None)
        self._done.add(event.call_id)
        self._args.pop(event.call_id, None)


def _names(reply: Replied) -> Iterable[tuple[str, str]]:
    for call in reply.calls:
        read = read_call(call)
        named = read.call if isinstance(read, BadCall) else read
        yield named.call_id, named.tool


def _error_result(error: BaseException | str) -> dict[str, Any]:
    """The result of a failed call, as `call` records it."""
    if isinstance(error, ToolError):
        return make_error_result(error.message) | {"code": error.code}
    return make_error_result(error if isinstance(error, str) else f"{type(error).__name__}: {error}")
