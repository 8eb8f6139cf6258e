"""`Track`: record, fold, render."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from remora._version import __version__
from remora.context.calls import BadCall, CallLike, read_call
from remora.context.chat import Reply
from remora.context.contracts import ToolLike, ToolSpec
from remora.context.cut import may_be_longer
from remora.context.models import DecisionPacket
from remora.context.projection import PROJECTOR, project
from remora.context.recall import RECALL
from remora.context.repeat import FAILURE_LIMIT
from remora.context.summarizers import Distilled
from remora.errors import DecisionError, RemoraError, UsageError
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
    ModelResponseEvent,
    PacketDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    is_check,
)
from remora.ports import Prompt, TokenCounter, ToolOutput
from remora.twotrack._handover import Handover
from remora.twotrack._parts import TrackParts
from remora.twotrack._prompts import PromptBuilder, PromptSettings
from remora.twotrack._recall import recall_from
from remora.twotrack._resume import ResumeState
from remora.twotrack._tool_results import Changes, bad_call_result, call_tool, unrecorded_result, with_outcome


class Track(TrackParts):
    """The stream and packet of one agent: what `remora.runner` drives, and what `TwoTrack` offers to other loops."""

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
        check: Mapping[str, Any] | None = None,
        system: str = "",
    ) -> None:
        """Record `agent_start`, with everything needed to understand the run from its stream alone.

        `system` is the system text of a run whose prompts are not recorded.
        """
        self.begun = True
        text = await self._offloader.text(system) if system else {}
        await self.context.record(
            AgentStartEvent(
                format=FORMAT,
                remora=version,
                name=self.name,
                goal=self.goal,
                system=text.get("text", ""),
                system_ref=text.get("text_ref"),
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
                check=dict(check or {}),
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

    async def request(
        self,
        *,
        tools: Sequence[ToolLike] | None = None,
        system: str | None = None,
        resumed: ResumeState | None = None,
    ) -> Prompt:
        """Start the next turn and return its prompt, which is within the limit. Records the receipt first.

        `tools` and `system` replace the tools and the system text from this turn on; the stream has the new ones.
        With `resumed`, continues the interrupted turn without recording anything twice.

        Raises `BudgetError` if the prompt could exceed its limit, and `UsageError` if another request is not done yet.
        """
        if self._requesting:
            raise UsageError(
                "A request is already being built: expected one turn at a time",
                hint="Use one `TwoTrack` for each conversation, or wait for the first `request()`",
            )
        self._requesting = True
        try:
            self._configure(tools, system)
            prompt = await self._request(resumed)
        finally:
            self._requesting = False
        self.awaits_reply = True
        return prompt

    async def _request(self, resumed: ResumeState | None) -> Prompt:
        begun = resumed is not None and resumed.turn_begun
        drafts: list[Event] = [] if begun else [TurnStartEvent(turn=self.packet.turn + 1)]
        if pulled := await self.context.hub_events(self.packet.turn + len(drafts)):
            await self.context.record(*drafts, *pulled)
            drafts = []
        # One append records the start of the turn and its prompt, unless the Hub has news between them.
        shown = project(drafts, start=self.packet)
        usable = tuple(tool for tool in self.tools if not self._is_worn_out(tool, shown))
        try:
            built = await self._asked.build(shown, usable, self._handover)
        except UsageError:
            raise
        except RemoraError:
            await self.context.record(*drafts)
            raise
        if resumed is None or resumed.asked is None or resumed.asked.prompt_sha256 != built.receipt.prompt_sha256:
            drafts.append(built.receipt)
        await self.context.record(*drafts)
        candidates = tuple(shown.candidate_actions)
        return Prompt(
            built.messages, built.offered, candidates, shown.turn, self._after_cut, shown.goal, built.drafting
        )

    def _is_worn_out(self, tool: ToolSpec, shown: DecisionPacket) -> bool:
        """Whether another call of the tool can tell nothing new."""
        called = [action.outcome for action in shown.recent_actions if action.tool == tool.name]
        once = tool.name == self._asked.settings.check_tool and called[-1:] != ["error"]
        worn_out = self._results.is_worn_out(tool, 1) if once else self._results.is_worn_out(tool)
        return worn_out or self._fails_alike(tool, shown)

    def _fails_alike(self, tool: ToolSpec, shown: DecisionPacket) -> bool:
        """Whether the newest calls were the same failing call of this tool, which nothing outside can change.

        Small models make such a call until a limit stops them. One turn without the tool makes them try another.
        """
        newest = shown.recent_actions[-1:]
        failed = bool(newest) and (newest[0].tool, newest[0].outcome) == (tool.name, "error")
        return failed and tool.effects != "outside" and self._results.repeats >= FAILURE_LIMIT

    async def response(self, reply: Reply, *, calls: Iterable[CallLike] | None = None) -> tuple[Call, ...]:
        """Record a reply and return its valid calls.

        A reply is text, a `Decision`, or what the clients of OpenAI (chat completions, Responses) and Anthropic
        (Messages) return, as an object or a dict. `calls` are its calls if you have parsed them from the text yourself.

        A call is invalid if its arguments are not a JSON object or if its tool was not offered. The stream records
        it as written, and the packet tells the model. Raises `DecisionError` if `reply` is not a reply, and
        `UsageError` if no request waits for one.
        """
        if not self.awaits_reply:
            raise UsageError(
                "There is no request that waits for this reply: expected `request()` first",
                hint="A reply belongs to one request. Two turns at once need one `TwoTrack` each",
            )
        made = await self._replies.record(reply, calls)
        self.awaits_reply, self.replied = False, True
        return made

    async def rule(
        self, call: Call, rule: str, delta: PacketDelta | None = None, *, resumed: ResumeState | None = None
    ) -> tuple[Call, ...]:
        """Start the next turn and record a call that no model chose, with the rule that made it."""
        begun = resumed is not None and resumed.turn_begun
        start = [] if begun else [TurnStartEvent(turn=self.packet.turn + 1)]
        turn = self.packet.turn + len(start)
        kept = await self._offloader.call(call)
        reply = ModelResponseEvent(turn=turn, calls=(kept,), finish="rule", rule=rule, delta=delta)
        await self.context.record(*start, reply)
        return (call,)

    async def undecided(self, error: DecisionError) -> None:
        """Record a reply without a valid call, as much of it as arrived. The packet tells the model why."""
        await self._replies.record_failure(error)
        self.awaits_reply = False

    async def perform(
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
        event, _ = await self._perform(call, use, changes)
        return event

    async def _perform(
        self, call: object, use: Callable[..., Awaitable[Any] | Any], changes: Callable[[], Changes]
    ) -> tuple[ToolResultEvent, ToolOutput]:
        read, bad = self._read_call(call), None
        if isinstance(read, BadCall):
            use, bad, read = partial(bad_call_result, read), read.error, read.call
        elif read.tool == RECALL.name and self._recalls_itself:
            use = self.recall
        if (kept := await self._record_intent(read)) is not None:
            use = partial(unrecorded_result, read.tool, kept)
        output, duration = await self._run_timed(use, read)
        event = await self._record_output(read, output, changes(), duration)
        return event, output if bad is None else replace(output, raised=bad)

    def _read_call(self, call: object) -> Call | BadCall:
        return read_call(call, number=f"call-{self.packet.turn}")

    async def _record_intent(self, call: Call) -> Mapping[str, Any] | None:
        """Record that a tool is about to run. If a record cannot hold its arguments, return what it holds instead."""
        intent = await self._offloader.call(call)
        await self.context.record(
            ToolCallEvent(call_id=call.call_id, tool=call.tool, args=intent.args, effects=self._effects(call.tool))
        )
        return None if intent.args is call.args else intent.args

    async def finish_call(
        self, call: Call, use: Callable[..., Any], *, changes: Callable[[], Changes] = tuple, unknown: bool = False
    ) -> ToolResultEvent:
        """Run a call whose intent is already recorded, and record its result. `unknown` sets that outcome."""
        output, duration = await self._run_timed(use, call)
        return await self._record_output(call, output, changes(), duration, "unknown" if unknown else None)

    async def _record_output(
        self, call: Call, output: ToolOutput, changes: Changes, duration: float, outcome: Any = None
    ) -> ToolResultEvent:
        event = await self._results.build(call, output, changes, duration, self.packet.knowledge)
        return await self._record_result(with_outcome(event, outcome) if outcome else event)

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

    async def _run_timed(self, use: Callable[..., Any], call: Call) -> tuple[ToolOutput, float]:
        began = self._clock.monotonic()
        output = await call_tool(use, call.args)
        return output, max(0.0, self._clock.monotonic() - began) * 1000

    async def _record_result(self, draft: ToolResultEvent) -> ToolResultEvent:
        (event,) = await self.context.record(draft)
        return cast(ToolResultEvent, event)

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

    async def recall(self, text: str = "", seq: int | None = None, lines: str = "") -> dict[str, Any]:
        """Look up event `seq`, or search earlier results for `text`. Returns a bounded tool result."""

        def read(agent_id: str, /, *, after: int) -> AsyncIterator[Event]:
            return self._writer.read(f"traces/{agent_id}", after=after)

        return await recall_from(self.identity.agent_id, read, self.last_seq, self._results, text, seq, lines)

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
        if not self.begun:
            raise UsageError("This `TwoTrack` is not open: expected `async with`, or `await tt.open()` first")
        identity, turn = self.identity.fields(), self.packet.turn
        stamped = [self._offloader.redact(draft).stamped(identity | {"turn": draft.turn or turn}) for draft in drafts]
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
        if isinstance(event, ModelResponseEvent):
            self._after_cut = bool(event.error) and may_be_longer(event.finish, event.text)
        elif isinstance(event, EscalationEvent):
            self._after_cut = False
        if isinstance(event, ModelRequestEvent):
            self.largest_prompt = max(self.largest_prompt, event.tokens.get("total", 0))
        if self._prompts.settings.uses_history and not is_check(event):
            raw = await self._results.text(event) if isinstance(event, ToolResultEvent) else ""
            self._prompts.add_to_history(event, raw)
