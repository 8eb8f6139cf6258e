"""Both tracks of one agent run: what happens is recorded, then folded; what the model sees is rendered from the fold.

`remora.runner` drives it for our agents; anyone's own loop can drive it the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

from remora._version import __version__
from remora.context.calls import BadCall, read_call
from remora.context.chat import read_reply, tool_spec
from remora.context.checks import Extension
from remora.context.contracts import ToolLike
from remora.context.manager import ContextManager
from remora.context.models import DecisionPacket
from remora.context.projection import PROJECTOR, project
from remora.context.recall import Remembered, recall
from remora.context.render import Calling, Style
from remora.context.secrets import Secrets
from remora.context.summarizers import Distilled, Summarizer, Unguarded, is_built_in
from remora.context.text import one_line
from remora.errors import DecisionError, RemoraError
from remora.events import (
    FORMAT,
    AgentEndEvent,
    AgentErrorEvent,
    AgentResumedEvent,
    AgentStartEvent,
    Call,
    CandidateAction,
    ErrorDelta,
    Event,
    KnowledgeDelta,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
)
from remora.keeping import MAX_INLINE, Keeper
from remora.keeping import Identity as Identity
from remora.ports import BlobStore, Clock, Decision, Prompt, SummaryGuard, TokenCounter, TraceWriter
from remora.prompting import Manner, Memory, Prompting
from remora.results import Changes, Results, misread, output_of, too_large
from remora.resuming import Standing
from remora.subagent import CandidateRule

MAX_USER_TEXT = 500
"""Characters of a person's words that the packet holds; the stream holds all of them."""


class TwoTrack:
    """One agent's stream and packet. Nothing enters the packet that is not in the stream first.

    Raises `BudgetError` at once if a prompt could ever be over the limit.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        goal: str,
        tools: Sequence[ToolLike],
        system_prompt: str,
        limit: int,
        writer: TraceWriter,
        blobs: BlobStore,
        counter: TokenCounter,
        clock: Clock,
        summarizers: dict[str, Summarizer] | None = None,
        secrets: Secrets | None = None,
        extensions: Mapping[str, Extension] | None = None,
        style: Style = "json",
        calling: Calling = "text",
        guard: SummaryGuard | None = None,
        fallback: Summarizer | None = None,
        memory: Memory = "packet",
        keep_messages: bool = False,
        rules: Sequence[CandidateRule] = (),
    ) -> None:
        self._secrets = secrets or Secrets()
        self.identity = identity
        self.goal = self._secrets.clean(goal)
        self.tools = tuple(map(tool_spec, tools))
        self.limit = limit
        self.largest_prompt = 0
        self.last_seq = -1
        self.begun = False
        """Whether a stream exists, or is just being made: it must be sealed then."""
        self._keeper = Keeper(blobs, self._secrets)
        self._prompts = Prompting(
            self._secrets.clean(system_prompt),
            self.tools,
            Manner(limit, style, calling, memory, keep_messages),
            counter,
            self._keeper,
        )
        self._writer = writer
        self._clock = clock
        guard = guard or Unguarded()
        for tool, summarizer in (summarizers or {}).items():
            if not is_built_in(summarizer):
                guard.check(tool, summarizer)
        initial = identity.fields() | {"goal": self.goal}
        self.context = ContextManager(initial, summarizers, record=self._append, clock=clock.now)
        self._results = Results(
            self.tools,
            blobs=blobs,
            secrets=self._secrets,
            extensions=extensions or {},
            summarizers=self.context.summarizers,
            guard=guard,
            fallback=fallback,
            rules=rules,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Seal the stream; what ended the block early is in it."""
        if error is None:
            await self.end(AgentEndEvent())
            return
        await self.fail(type(error).__name__, str(error))
        cancelled = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        await self.end(AgentEndEvent(outcome="cancelled" if cancelled else "error", reason=type(error).__name__))

    @property
    def packet(self) -> DecisionPacket:
        """What the model would see of the run now."""
        return self.context.packet

    async def start(
        self,
        *,
        version: str = __version__,
        node: Mapping[str, Any] | None = None,
        definition: Mapping[str, Any] | None = None,
        constraints: Mapping[str, Any] | None = None,
        model: Mapping[str, Any] | None = None,
        candidates: Sequence[CandidateAction] = (),
        check: Mapping[str, Any] | None = None,
        parent: Mapping[str, Any] | None = None,
    ) -> None:
        """Record all that a reader needs to understand the run alone."""
        self.begun = True
        await self.context.record(
            AgentStartEvent(
                format=FORMAT,
                remora=version,
                goal=self.goal,
                node=dict(node or {}),
                definition=dict(definition or {}),
                tools=tuple(tool.model_dump() for tool in self.tools),
                budget={"limit": self.limit, "exact": self._prompts.counter.exact},
                constraints=dict(constraints or {}),
                projector=PROJECTOR,
                renderer=self._prompts.manner.renderer,
                model=dict(model or {}),
                delta=PacketDelta(candidate_actions=tuple(candidates)) if candidates else None,
                check=dict(check or {}),
                parent=dict(parent) if parent else None,
            )
        )
        for misfit in self._prompts.manner.misfits(model or {}, self.identity.operation):
            await self.context.record(misfit)

    async def resume(self, past: Sequence[Event], reason: str) -> None:
        """Take up a run where its stream ends: the packet, and all that depends on what was done, are as they were.

        A stream that is sealed stays as it is: there is nothing to add to it.
        """
        self.begun = True
        args: dict[str, dict[str, Any]] = {}
        for event in past:
            if isinstance(event, ToolCallEvent):
                args[event.call_id] = event.args
            if isinstance(event, ToolResultEvent):
                await self._results.remember(args.pop(event.call_id, {}), event)
            self.context.apply_event(event)
            await self._remember(event)
        if not isinstance(past[-1], AgentEndEvent):
            await self.context.record(AgentResumedEvent(reason=reason, turn=self.packet.turn))

    async def request(self, *, taken_up: Standing | None = None) -> Prompt:
        """Begin the next turn and give its prompt: within the limit, its receipt recorded before anyone sees it.

        With `taken_up`, the turn that was interrupted goes on: what is recorded of it is not recorded twice.
        """
        begun = taken_up is not None and taken_up.turn_begun
        news: list[Event] = [] if begun else [TurnStartEvent(turn=self.packet.turn + 1)]
        if pulled := await self.context.pulled(self.packet.turn + len(news)):
            await self._record([*news, *pulled])
            news = []
        # Where nothing lies between the turn's beginning and its prompt, both are recorded by one append.
        shown = project(news, start=self.packet)
        offered = tuple(tool for tool in self.tools if not self._results.is_worn_out(tool))
        try:
            messages, receipt = await self._prompts.make(shown, offered)
        except RemoraError:
            await self._record(news)
            raise
        if taken_up is None or taken_up.asked is None or taken_up.asked.prompt_sha256 != receipt.prompt_sha256:
            news.append(receipt)
        await self._record(news)
        return Prompt(messages, offered, tuple(shown.candidate_actions), shown.turn)

    async def response(self, reply: object) -> tuple[Call, ...]:
        """The calls of a reply, recorded: of a `Decision`, of a chat completion, or of its dict.

        A call with arguments that are no JSON object, or to a tool that nobody offered, is not among them: it is in
        the stream as it was written, and the packet tells the model. Raises `DecisionError` for what is no reply.
        """
        decision = reply
        if not isinstance(decision, Decision):
            in_text = self._prompts.manner.calling == "text"
            decision = read_reply(reply, self.tools, turn=self.packet.turn, in_text=in_text)
        calls = await self._decided(decision)
        for bad in decision.bad:
            await self._refused(bad)
        return calls

    async def undecided(self, error: DecisionError) -> None:
        """Record a reply without a call that can be made, as far as it came; the packet tells the model why."""
        line = error.message
        delta = PacketDelta(error=ErrorDelta(set=line), diagnostics=(line,))
        await self._answered(Decision((), error.text, error.model, error.usage, error.finish), error.code, delta)

    async def _decided(self, decision: Decision) -> tuple[Call, ...]:
        refused = decision.bad[0].error.code if decision.bad and not decision.calls else ""
        await self._answered(decision, refused)
        return decision.calls

    async def _answered(self, decision: Decision, error: str, delta: PacketDelta | None = None) -> None:
        turn = self.packet.turn
        answer = ModelResponseEvent(
            **await self._keeper.text(decision.text),
            calls=tuple([await self._keeper.call(call) for call in decision.calls]),
            model=decision.model,
            usage=dict(decision.usage),
            finish=decision.finish,
            error=error,
            turn=turn,
            delta=delta,
        )
        note = self._prompts.counted_otherwise(decision.usage)
        await self._record([answer, note.model_copy(update={"turn": turn})] if note else [answer])

    async def call(
        self,
        call: object,
        use: Callable[..., Awaitable[Any] | Any],
        *,
        changes: Callable[[], Changes] = tuple,
    ) -> ToolResultEvent:
        """Run `use(**call.args)`: intent recorded, then the effect, then what came back, raw and distilled.

        A tool call in OpenAI's shape will do. If its arguments are no JSON object, `use` is not run, and that is the
        result.
        """
        read = read_call(call, number=f"call-{self.packet.turn}")
        if isinstance(read, BadCall):
            return await self._call(read.call, partial(misread, read), changes)
        return await self._call(read, use, changes)

    async def _call(self, call: Call, use: Callable[..., Any], changes: Callable[[], Changes]) -> ToolResultEvent:
        spec = next((tool for tool in self.tools if tool.name == call.tool), None)
        effects = spec.effects if spec else "outside"
        intent = await self._keeper.call(call)
        await self.context.record(
            ToolCallEvent(
                call_id=call.call_id, tool=call.tool, args=intent.args, effects=effects, turn=self.packet.turn
            )
        )
        if intent.args is not call.args:
            use = partial(too_large, call.tool)
        return await self.ended(call, use, changes=changes)

    async def ended(
        self, call: Call, use: Callable[..., Any], *, changes: Callable[[], Changes] = tuple, unknown: bool = False
    ) -> ToolResultEvent:
        """Run a call whose intent is recorded already, and record what came back; `unknown` where nobody can know."""
        began = self._clock.monotonic()
        output = await output_of(use, call.args)
        duration = max(0.0, self._clock.monotonic() - began) * 1000
        event = await self._results.make(call, output, changes(), duration, self.packet.knowledge)
        update = {"turn": self.packet.turn} | ({"outcome": "unknown"} if unknown else {})
        event = event.model_copy(update=update)
        await self.context.record(event)
        return event

    async def notice(self, code: str, message: str) -> None:
        """Record something a reader should know that changes nothing."""
        await self.context.record(NoticeEvent(code=code, message=message, turn=self.packet.turn))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The run as a chat, where it is kept as one: with `keep_messages`, and without the packet."""
        return self._prompts.messages

    @property
    def repeats(self) -> int:
        """How many times in a row the latest call has given the same result."""
        return self._results.repeats

    async def unanswered(self, call: Call, why: str) -> None:
        """Record a call whose result nobody knows: the intent alone, and why."""
        args, turn = (await self._keeper.call(call)).args, self.packet.turn
        await self.context.record(ToolCallEvent(call_id=call.call_id, tool=call.tool, args=args, turn=turn))
        await self.context.record(NoticeEvent(code="no_result", message=f"{call.tool}: {why}", turn=turn))

    async def recall(self, text: str) -> dict[str, Any]:
        """What earlier tool results of this run say about `text`, as a tool result: for `call(…, track.recall)`."""
        events = self._writer.read(self.identity.stream_id)
        results = [event async for event in events if isinstance(event, ToolResultEvent)]
        past = [Remembered(event.seq, event.turn, event.tool, await self._results.text(event)) for event in results]
        return recall(past, text)

    async def submit(self, result: Call | Mapping[str, Any] | str) -> None:
        """Record what the agent says it has done: its call of `submit_result`, a dict, or a line."""
        call_id, said = (result.call_id, result.args) if isinstance(result, Call) else ("", result)
        fields = {"summary": said} if isinstance(said, str) else dict(said)
        await self.context.record(
            SubmitResultEvent(call_id=call_id, result=fields, turn=self.packet.turn),
        )

    async def user(self, text: str) -> None:
        """Record what a person says to the agent; the newest words stay in the packet as pinned knowledge `user`."""
        said = self._secrets.clean(text)
        known = KnowledgeDelta(value=one_line(said, MAX_USER_TEXT), pinned=True)
        delta = PacketDelta(knowledge={"user": known})
        await self.context.record(UserInputEvent(**await self._keeper.text(said), turn=self.packet.turn, delta=delta))

    async def fail(self, code: str, message: str) -> None:
        """Record what stopped the agent."""
        await self.context.record(AgentErrorEvent(code=code, message=message[:MAX_INLINE], turn=self.packet.turn))

    async def end(self, event: AgentEndEvent) -> str:
        """Seal the stream and give its head."""
        await self.context.record(event.model_copy(update={"turn": self.packet.turn}))
        return await self.head()

    async def head(self) -> str:
        """The digest of the stream's last line."""
        return await self._writer.head(self.identity.stream_id)

    async def distill(self, tool: str, value: Any) -> Distilled:
        """What `value` would come to as a result of `tool`. Nothing is recorded."""
        return await self._results.distilled(tool, self._secrets.clean(value))

    async def _refused(self, bad: BadCall) -> None:
        """A call that cannot be made: all of it for the developer, a line for the model."""
        turn, line = self.packet.turn, bad.error.message
        written = f"{bad.call.call_id} {bad.call.tool} {bad.written}"
        await self.context.record(NoticeEvent(code=bad.error.code, message=written[:MAX_INLINE], turn=turn))
        delta = PacketDelta(error=ErrorDelta(set=line), diagnostics=(line,))
        await self.context.record(PacketUpdateEvent(source="model_response", delta=delta, turn=turn))

    async def _append(self, draft: Event) -> Event:
        (event,) = await self._write([draft])
        return event

    async def _record(self, drafts: Sequence[Event]) -> None:
        """Make the events durable by one append, then fold them."""
        for event in await self._write(drafts):
            self.context.apply_event(event)

    async def _write(self, drafts: Sequence[Event]) -> Sequence[Event]:
        whose = self.identity.fields()
        stamped = [self._keeper.cleaned(draft).model_copy(update=whose) for draft in drafts]
        events = await self._writer.append(self.identity.stream_id, stamped)
        for event in events:
            await self._remember(event)
        return events

    async def _remember(self, event: Event) -> None:
        """Keep up what depends on the past of the run, beside the packet."""
        self.last_seq = event.seq
        if isinstance(event, ModelRequestEvent):
            self.largest_prompt = max(self.largest_prompt, event.tokens.get("total", 0))
        manner = self._prompts.manner
        if manner.memory != "packet" or manner.keep_messages:
            self._prompts.take(event, await self._results.text(event) if isinstance(event, ToolResultEvent) else "")
