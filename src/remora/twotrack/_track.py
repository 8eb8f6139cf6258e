"""`TwoTrack`: record, fold, render."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

from remora._version import __version__
from remora.context.calls import BadCall, read_call
from remora.context.checks import Extension
from remora.context.contracts import ToolLike, ToolSpec
from remora.context.manager import ContextManager
from remora.context.models import DecisionPacket
from remora.context.projection import PROJECTOR, project
from remora.context.recall import RECALL
from remora.context.render import Calling, Style
from remora.context.summarizers import Distilled, Summarizer, is_built_in
from remora.errors import DecisionError, RemoraError
from remora.events import (
    FORMAT,
    AgentEndEvent,
    AgentResumedEvent,
    AgentStartEvent,
    Call,
    CandidateAction,
    EscalationEvent,
    Event,
    ModelRequestEvent,
    PacketDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    is_check,
)
from remora.ports import Prompt, SummaryGuard, TokenCounter
from remora.twotrack._handover import Handover
from remora.twotrack._offload import Offloader
from remora.twotrack._prompts import PromptBuilder, PromptSettings
from remora.twotrack._recall import recall_from
from remora.twotrack._records import Records
from remora.twotrack._replies import ReplyRecorder
from remora.twotrack._resume import ResumeState
from remora.twotrack._tool_results import Changes, ToolResultBuilder, bad_call_result, call_tool, too_large_result
from remora.twotrack._wiring import Wiring


class TwoTrack(Records):
    """One agent's stream and packet. Nothing enters the packet that is not in the stream first.

    `tools` are functions with `@remora.tool`, `ToolSpec`s, or dicts in OpenAI's shape. With `calling="native"` they are
    sent beside the messages, by `prompt.openai_tools()`; with `"text"` the prompt lists them and asks for a call as
    JSON.

    `budget` bounds the tokens of every whole prompt. Without it, the packet may take 3,000 beside system and tools.

    `counter` counts the tokens of every prompt: `remora.inference` has `GgufCounter` and `JsonCounter` for a
    tokenizer's file and `ServerCounter` for a server. Without one, tokens are estimated.

    Raises `BudgetError` at once if a prompt could ever be over the budget.
    """

    def __init__(
        self,
        goal: str,
        *,
        tools: Sequence[ToolLike] = (),
        budget: int | None = None,
        system_prompt: str = "",
        operation: str = "",
        node_id: str = "",
        state_dir: Path | str = ".agentfs",
        summarizers: Mapping[str, Summarizer] | None = None,
        secrets: Mapping[str, str] | None = None,
        calling: Calling = "native",
        style: Style = "account",
        guard: SummaryGuard | None = None,
        counter: TokenCounter | None = None,
        extensions: Mapping[str, Extension] | None = None,
    ) -> None:
        from remora.app import local_wiring

        self._wire(
            local_wiring(
                goal,
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
            )
        )

    @classmethod
    def of(cls, wiring: Wiring) -> Self:
        """A `TwoTrack` with the given parts, instead of files on this machine's disk."""
        track = cls.__new__(cls)
        track._wire(wiring)
        return track

    def _wire(self, wiring: Wiring) -> None:
        secrets, guard = wiring.secrets, wiring.guard
        self.identity = wiring.identity
        self.goal = secrets.clean(wiring.goal)
        self.tools = wiring.specs
        self._recalls_itself = RECALL in self.tools
        self.limit = wiring.prompts.limit
        self.path = wiring.path
        """The file of the Long Track, if it is on this machine's disk."""
        self.largest_prompt = 0
        self.last_seq = -1
        self.begun = False
        """Whether the stream exists or is being created, so that it must be sealed."""
        self._secrets, self._writer, self._clock, self._close = secrets, wiring.writer, wiring.clock, wiring.close
        self._offloader = Offloader(wiring.blobs, secrets)
        system = secrets.clean(wiring.system_prompt)
        self._prompts = PromptBuilder(system, self.tools, wiring.prompts, wiring.counter, self._offloader)
        self._system = system
        self._asked = self._prompts
        """The prompts of the rung that decides now."""
        self._handover: Handover | None = None
        self.observers: list[Callable[[Event], None]] = []
        """Called with every event of the stream, recorded now or before a resume."""
        for tool, summarizer in wiring.summarizers.items():
            if not is_built_in(summarizer):
                guard.check(tool, summarizer)
        initial = self.identity.fields() | {"goal": self.goal}
        self.context = ContextManager(initial, dict(wiring.summarizers), record=self._append, clock=self._clock.now)
        self.context.set_hub_client(wiring.hub)
        self._replies = ReplyRecorder(self.context, self._offloader, self._prompts, self.tools)
        self._results = ToolResultBuilder(wiring, self.tools, self.context.summarizers)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Seal the stream. An exception that ended the block is recorded in it."""
        if error is None:
            await self.end(AgentEndEvent())
            return
        await self.fail(type(error).__name__, str(error))
        cancelled = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        await self.end(AgentEndEvent(outcome="cancelled" if cancelled else "error", reason=type(error).__name__))

    @property
    def packet(self) -> DecisionPacket:
        """The Short Track as it is now."""
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
        parent: Mapping[str, Any] | None = None,
    ) -> None:
        """Record `agent_start`, with everything needed to understand the run from its stream alone."""
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
                renderer=self._prompts.settings.renderer,
                model=dict(model or {}),
                delta=PacketDelta(candidate_actions=tuple(candidates)) if candidates else None,
                parent=dict(parent) if parent else None,
            ),
            *self._prompts.settings.misfits(model or {}, self.identity.operation),
        )

    async def resume(self, past: Sequence[Event], reason: str) -> None:
        """Continue a run from its recorded events: fold them, then record that the run was resumed.

        Adds nothing to a sealed stream.
        """
        self.begun = True
        args: dict[str, dict[str, Any]] = {}
        for event in past:
            if isinstance(event, ToolCallEvent):
                args[event.call_id] = event.args
            if isinstance(event, ToolResultEvent) and not is_check(event):
                await self._results.remember(args.pop(event.call_id, {}), event)
            elif isinstance(event, EscalationEvent):
                self._results.forget_repeats()
            self.context.apply_event(event)
            await self._update_state(event)
        if not isinstance(past[-1], AgentEndEvent):
            await self.context.record(AgentResumedEvent(reason=reason))

    async def request(self, *, resumed: ResumeState | None = None) -> Prompt:
        """Start the next turn and return its prompt, which is within the limit. Records the receipt first.

        With `resumed`, continues the interrupted turn without recording anything twice.
        """
        begun = resumed is not None and resumed.turn_begun
        drafts: list[Event] = [] if begun else [TurnStartEvent(turn=self.packet.turn + 1)]
        if pulled := await self.context.hub_events(self.packet.turn + len(drafts)):
            await self.context.record(*drafts, *pulled)
            drafts = []
        # One append records the start of the turn and its prompt, unless the Hub has news between them.
        shown = project(drafts, start=self.packet)
        usable = tuple(tool for tool in self.tools if not self._results.is_worn_out(tool))
        try:
            messages, offered, receipt = await self._asked.build(shown, usable, self._handover)
        except RemoraError:
            await self.context.record(*drafts)
            raise
        if resumed is None or resumed.asked is None or resumed.asked.prompt_sha256 != receipt.prompt_sha256:
            drafts.append(receipt)
        await self.context.record(*drafts)
        return Prompt(messages, offered, tuple(shown.candidate_actions), shown.turn)

    async def response(self, reply: object) -> tuple[Call, ...]:
        """Record a reply and return its valid calls. A reply is a `Decision`, a chat completion or its dict.

        A call is invalid if its arguments are not a JSON object or if its tool was not offered. The stream records
        it as written, and the packet tells the model. Raises `DecisionError` if `reply` is not a reply.
        """
        return await self._replies.record(reply)

    async def undecided(self, error: DecisionError) -> None:
        """Record a reply without a valid call, as much of it as arrived. The packet tells the model why."""
        await self._replies.record_failure(error)

    async def call(
        self,
        call: object,
        use: Callable[..., Awaitable[Any] | Any],
        *,
        changes: Callable[[], Changes] = tuple,
    ) -> ToolResultEvent:
        """Record the intent, run `use(**call.args)`, and record the result, raw and distilled.

        `call` may also be a tool call in OpenAI's shape. If its arguments are not a JSON object, `use` is not run,
        and the result says so.
        """
        read = read_call(call, number=f"call-{self.packet.turn}")
        if isinstance(read, BadCall):
            use, read = partial(bad_call_result, read), read.call
        elif read.tool == RECALL.name and self._recalls_itself:
            use = self.recall
        intent = await self._offloader.call(read)
        await self.context.record(
            ToolCallEvent(call_id=read.call_id, tool=read.tool, args=intent.args, effects=self._effects(read.tool))
        )
        if intent.args is not read.args:
            use = partial(too_large_result, read.tool)
        return await self.finish_call(read, use, changes=changes)

    async def finish_call(
        self, call: Call, use: Callable[..., Any], *, changes: Callable[[], Changes] = tuple, unknown: bool = False
    ) -> ToolResultEvent:
        """Run a call whose intent is already recorded, and record its result. `unknown` sets that outcome."""
        output, duration = await self._run_timed(use, call)
        event = await self._results.build(call, output, changes(), duration, self.packet.knowledge)
        return await self._record_result(event.model_copy(update={"outcome": "unknown"}) if unknown else event)

    async def check(
        self, call: Call, use: Callable[..., Any], key: str, *, changes: Callable[[], Changes] = tuple
    ) -> ToolResultEvent:
        """Run the agent's check. Records intent and result like a call, but never shows them to the model.

        `key` names the knowledge in its result that holds the number of problems.
        """
        effects = self._effects(call.tool)
        await self.context.record(
            ToolCallEvent(call_id=call.call_id, tool=call.tool, args=call.args, effects=effects, purpose="check")
        )
        return await self.finish_check(call, use, key, changes=changes)

    async def finish_check(
        self,
        call: Call,
        use: Callable[..., Any],
        key: str,
        *,
        changes: Callable[[], Changes] = tuple,
        unknown: bool = False,
    ) -> ToolResultEvent:
        """Like `finish_call`, for the agent's check."""
        output, duration = await self._run_timed(use, call)
        event = await self._results.build_check(call, output, changes(), duration, key)
        return await self._record_result(event.model_copy(update={"outcome": "unknown"}) if unknown else event)

    def _effects(self, tool: str) -> Any:
        spec = next((spec for spec in self.tools if spec.name == tool), None)
        return spec.effects if spec else "outside"

    async def _run_timed(self, use: Callable[..., Any], call: Call) -> tuple[Any, float]:
        began = self._clock.monotonic()
        output = await call_tool(use, call.args)
        return output, max(0.0, self._clock.monotonic() - began) * 1000

    async def _record_result(self, draft: ToolResultEvent) -> ToolResultEvent:
        (event,) = await self.context.record(draft)
        return cast(ToolResultEvent, event)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The run as a chat history; empty without `keep_messages`, unless prompts are built from it."""
        return self._prompts.messages

    def use_first_rung(self) -> None:
        """Build prompts for the first model again: from the packet alone, within its limit."""
        self._asked = self._replies.prompts = self._prompts
        self._handover = None

    async def use_rung(self, settings: PromptSettings, counter: TokenCounter, tools: Sequence[ToolSpec]) -> Handover:
        """Build prompts for another model: from the packet, and as much of the Long Track as its limit holds.

        Raises `BudgetError` if the limit is too small, and changes nothing then.
        """
        prompts = PromptBuilder(self._system, tools, settings, counter, self._offloader)
        handover = Handover(self.goal, self._results)
        if self.last_seq >= 0:
            await handover.read(self._writer.read(self.identity.stream_id))
        self._asked = self._replies.prompts = prompts
        self._handover = handover
        return handover

    async def escalation(self, event: EscalationEvent) -> None:
        """Record the move to another model. It starts with no failures and no repeated calls."""
        self._results.forget_repeats()
        await self.context.record(event)

    @property
    def repeats(self) -> int:
        """How many times in a row the latest call returned the same result."""
        return self._results.repeats

    async def recall(self, text: str = "", seq: int | None = None, lines: str = "") -> dict[str, Any]:
        """Look up event `seq`, or search earlier results for `text`. Returns a bounded tool result."""
        events = self._writer.read(self.identity.stream_id)
        return await recall_from(events, self._results, text, seq, lines)

    async def end(self, event: AgentEndEvent) -> str:
        """Seal the stream and return its head."""
        try:
            await self.context.record(event)
            return await self.head()
        finally:
            await self._close()

    async def head(self) -> str:
        """The digest of the stream's last line."""
        return await self._writer.head(self.identity.stream_id)

    async def distill(self, tool: str, value: Any) -> Distilled:
        """Distill `value` as a result of `tool`, without recording anything."""
        return await self._results.distill(tool, self._secrets.clean(value))

    async def _append(self, drafts: Sequence[Event]) -> Sequence[Event]:
        """Stamp the drafts with identity and turn, redact secrets, and write all of them with one append."""
        identity, turn = self.identity.fields(), self.packet.turn
        stamped = [
            self._offloader.redact(draft).model_copy(update=identity | {"turn": draft.turn or turn}) for draft in drafts
        ]
        events = await self._writer.append(self.identity.stream_id, stamped)
        for event in events:
            await self._update_state(event)
        return events

    async def _update_state(self, event: Event) -> None:
        """Update the state beside the packet: last seq, largest prompt, chat history."""
        self.last_seq = event.seq
        for observe in self.observers:
            observe(event)
        if self._handover is not None:
            await self._handover.take(event)
        if isinstance(event, ModelRequestEvent):
            self.largest_prompt = max(self.largest_prompt, event.tokens.get("total", 0))
        if self._prompts.settings.uses_history and not is_check(event):
            raw = await self._results.text(event) if isinstance(event, ToolResultEvent) else ""
            self._prompts.add_to_history(event, raw)
