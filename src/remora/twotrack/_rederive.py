"""Derives the deltas and prompts of a recorded run again, by other rules. No tool runs, and no model is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import ValidationError

from remora.context.budget import check_limit
from remora.context.contracts import ToolSpec
from remora.context.drafting import RENDERER as DRAFT
from remora.context.handover import LongTrack
from remora.context.projection import EMPTY, PROJECTOR, apply
from remora.context.render import (
    CHRONOLOGICAL,
    RENDERERS,
    Calling,
    Style,
    fixed_tokens,
    render_within,
    reserved_tokens,
    system_text,
)
from remora.context.signatures import starts_with
from remora.errors import TraceError
from remora.events import (
    DELTA_VERSION,
    AgentStartEvent,
    BlobRef,
    Call,
    EscalationEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    PacketDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
    is_check,
    pack,
    readable,
    unpack,
)
from remora.ports import BlobStore, blob_limit
from remora.twotrack._evidence import agent_evidence, user_delta
from remora.twotrack._prompts import DOCUMENT
from remora.twotrack._tool_results import ToolResultBuilder, with_outcome
from remora.twotrack._wiring import Wiring


@dataclass(frozen=True)
class Rules:
    """What to change. The defaults apply today's rules with the recorded style and limit."""

    style: Style | None = None
    """How prompts are rendered; None: as they were."""
    budget: int | None = None
    """Tokens of the packet, beside system text and tools; None: the recorded limit of the whole prompt."""
    projector: str = PROJECTOR
    only_render: bool = False
    """Keep the recorded deltas: only the fold and the rendering are done again."""


@dataclass(frozen=True)
class Rederived:
    """One event of a run, as recorded and by other rules."""

    recorded: Event
    """Its prompt is complete: texts in blobs are read."""
    event: Event
    text: str = ""
    """The raw result of a tool, as text."""
    problem: str = ""
    """Why the recorded delta was kept."""


async def rederive(
    events: Iterable[Event] | AsyncIterable[Event], wiring: Wiring, rules: Rules
) -> AsyncGenerator[Rederived]:
    """Yield every event of a recorded run with the delta and the prompt that these rules give it.

    Summarizers, their guard, candidate rules, extensions, blobs and counter are those of `wiring`. Raises
    `ProjectionStopped`, and `BudgetError` if a packet of this style cannot fit.
    """
    run: _Run | None = None
    async for event in _each(events):
        if isinstance(event, AgentStartEvent):
            run = _Run(event, wiring, rules)
            if lacks_prompts(event):
                run.add_recall()
        if run is not None:
            yield await run.take(event)


async def _each(events: Iterable[Event] | AsyncIterable[Event]) -> AsyncIterator[Event]:
    if isinstance(events, AsyncIterable):
        async for event in events:
            yield event
    else:
        for event in events:
            yield event


def lacks_prompts(start: AgentStartEvent) -> bool:
    """Whether the stream is a log that was imported without packets."""
    imported = "sha256" in (start.parent or {}) and start.operation == "import"
    return imported and style_of(start.renderer) not in CHRONOLOGICAL


async def with_prompts(
    events: Iterable[Event], wiring: Wiring, tokens: int, wanted: Container[int] | None = None
) -> AsyncGenerator[Event]:
    """Yield the events of a run. Those of a log that was imported without packets get them by today's rules.

    Each of its replies follows the prompt that a packet of `tokens` would have been. Its `seq` is -1, because the
    stream does not have it. `wanted` are the turns that need their prompts; by default all.
    """
    run: _Run | None = None
    for event in events:
        if isinstance(event, AgentStartEvent) and lacks_prompts(event):
            run = _Run(event, wiring, Rules(style="account", budget=tokens))
            run.add_recall()
        if run is None:
            yield event
            continue
        yield (await run.take(event)).event
        if isinstance(event, TurnStartEvent) and (wanted is None or event.turn in wanted):
            yield await run.prompt(event)


class _Run:
    """One run, derived again event by event."""

    def __init__(self, start: AgentStartEvent, wiring: Wiring, rules: Rules) -> None:
        self._rules = rules
        self._style: Style = rules.style or style_of(start.renderer)
        self._tools = _specs(start.tools)
        self._extensions = dict(wiring.extensions)
        settings = replace(wiring.prompts, style=self._style)
        self._wiring = replace(
            wiring, goal=start.goal, tools=self._tools, prompts=settings, extensions=self._extensions
        )
        self._start = start
        self._results = ToolResultBuilder(self._wiring, self._tools, self._wiring.summarizers)
        self._calls: dict[str, Call] = {}
        self._packet = EMPTY
        self._long_track = LongTrack(start.goal)
        self._above = False
        """Whether a larger model of a ladder decides, whose prompts also show evidence of the Long Track."""
        self._system: tuple[str, int] | None = None
        self._whole_system: str | None = None

    def add_recall(self) -> None:
        """Offer `recall` too, as every run does whose prompts leave something out."""
        self._tools = self._results.tools = self._wiring.specs_of(self._tools)

    async def prompt(self, turn: Event) -> ModelRequestEvent:
        """The prompt for the packet as it is now, of a run that recorded none."""
        counter = self._wiring.counter
        blank = ModelRequestEvent(
            seq=-1,
            ts=turn.ts,
            turn=turn.turn,
            agent_id=turn.agent_id,
            operation=turn.operation,
            messages=({"role": "system", "content": system_text(await self._system_text(), self._tools, "native")},),
            offered=tuple(tool.name for tool in self._tools),
            counter={"name": counter.name, "exact": counter.exact},
        )
        return self._request(blank)

    async def _system_text(self) -> str:
        reference = self._start.system_ref
        if reference is None:
            return self._start.system
        if self._whole_system is None:
            data = await self._wiring.blobs.get(reference.blob, limit=blob_limit(reference))
            self._whole_system = data.decode(errors="replace")
        return self._whole_system

    async def take(self, event: Event) -> Rederived:
        derived = await self._derive(event)
        self._packet = apply(self._packet, derived.event)
        return derived

    async def _derive(self, event: Event) -> Rederived:
        match event:
            case AgentStartEvent():
                return Rederived(event, event.model_copy(update={"projector": self._rules.projector}))
            case ToolCallEvent(call_id=call_id, tool=tool, args=args):
                self._calls[call_id] = Call(call_id=call_id, tool=tool, args=args)
                self._long_track.take(event)
            case ToolResultEvent():
                return await self._result(event)
            case EscalationEvent(handed=handed):
                self._above = bool(handed)
            case ModelRequestEvent(renderer=renderer) if renderer in (DOCUMENT, DRAFT):
                recorded = await _whole_prompt(event, self._wiring.blobs)
                return Rederived(recorded, recorded)
            case ModelRequestEvent():
                recorded = await _whole_prompt(event, self._wiring.blobs)
                await self._offer(event)
                return Rederived(recorded, self._request(recorded))
            case UserInputEvent():
                self._long_track.take(event)
                return Rederived(event, event) if self._rules.only_render else await self._user(event)
            case ModelResponseEvent():
                self._long_track.take(event)
                return Rederived(event, event) if self._rules.only_render else self._reply(event)
            case _:
                pass
        return Rederived(event, event)

    async def _offer(self, receipt: ModelRequestEvent) -> None:
        """Use the tools of this receipt, if they are others than before."""
        tools: Any = receipt.tools
        if (reference := receipt.tools_ref) is not None:
            tools = orjson.loads(await self._wiring.blobs.get(reference.blob, limit=blob_limit(reference)))
        if isinstance(tools, list | tuple) and tools:
            self._tools = self._results.tools = _specs(tools)
            self._system = None

    async def _result(self, event: ToolResultEvent) -> Rederived:
        call = self._calls.pop(event.call_id, Call(call_id=event.call_id, tool=event.tool, args={}))
        try:
            value = await raw_value(event, self._wiring.blobs)
        except TraceError as error:
            return Rederived(event, event, problem=f"The result at seq {event.seq} is kept as it was: {error.message}")
        text = readable(value)
        self._long_track.take(event, value)
        if is_check(event) or self._rules.only_render:
            return Rederived(event, event, text)
        if isinstance(event.delta, PacketDelta):  # their schemas may be known only to the program that recorded them
            self._extensions |= {key: {} for key in event.delta.extensions if key not in self._extensions}
        distilled, delta = await self._results.derive(
            call, value, self._packet.knowledge, packed=pack(value), changed=bool(event.files)
        )
        derived = event.model_copy(update={"delta": delta})
        if event.outcome_given:
            derived = with_outcome(derived.model_copy(update={"outcome": distilled.outcome}), event.outcome)
        return Rederived(event, derived, text)

    async def _user(self, event: UserInputEvent) -> Rederived:
        text = event.text
        if event.text_ref is not None:
            data = await self._wiring.blobs.get(event.text_ref.blob, limit=blob_limit(event.text_ref))
            text = data.decode(errors="replace")
        return Rederived(event, event.model_copy(update={"delta": user_delta(text, self._style)}))

    def _reply(self, event: ModelResponseEvent) -> Rederived:
        """The agent's own words are evidence in styles `account` and `chat`. Other changes of a reply are kept."""
        recorded = event.delta if isinstance(event.delta, PacketDelta) else None
        kept = recorded.model_copy(update={"v": DELTA_VERSION, "evidence": None}) if recorded else None
        only_bad_calls = bool(event.error) and not event.calls and (kept is None or kept.error is None)
        words = event.text if self._style in CHRONOLOGICAL and not only_bad_calls else ""
        return Rederived(event, event.model_copy(update={"delta": agent_evidence(words, _or_none(kept))}))

    def _request(self, event: ModelRequestEvent) -> ModelRequestEvent:
        """The prompt for the packet as it is now. System text and tools stay as recorded."""
        system = str(event.messages[0].get("content", "")) if event.messages else ""
        fixed = self._fixed(system)
        limit = event.limit if self._rules.budget is None else fixed + self._rules.budget
        count = self._wiring.counter.count
        check_limit(fixed, limit, reserved_tokens(self._style, count))
        shown = self._packet
        if self._above:
            shown = shown.model_copy(update={"evidence": self._long_track.evidence})
        calling: Calling = "text" if self._are_listed_in(system) else "native"
        built = render_within(shown, system, fixed, limit=limit, count=count, style=self._style, calling=calling)
        return event.model_copy(
            update={
                "messages": tuple(dict(message) for message in built.messages),
                "tokens": built.tokens,
                "limit": limit,
                "left_out": built.left_out,
                "renderer": RENDERERS[self._style],
            }
        )

    def _fixed(self, system: str) -> int:
        if self._system is None or self._system[0] != system:
            beside = () if self._are_listed_in(system) else self._tools
            self._system = (system, fixed_tokens(system, self._wiring.counter, beside))
        return self._system[1]

    def _are_listed_in(self, system: str) -> bool:
        """Whether the system text lists the tools, so that they are not sent beside the messages."""
        listings = (lambda name: f'"name":"{name}"', starts_with)
        return bool(self._tools) and any(all(form(tool.name) in system for tool in self._tools) for form in listings)


def style_of(renderer: str) -> Style:
    """The style of a recorded renderer's version; `account` for chat history, which is no style of a packet."""
    name = renderer.partition("-")[0]
    return name if name in RENDERERS else "account"


async def raw_value(event: ToolResultEvent, blobs: BlobStore) -> Any:
    """What the tool returned. Raises `TraceError` if its blob is gone."""
    if event.raw_ref is None:
        return event.raw
    return unpack(await blobs.get(event.raw_ref.blob, limit=blob_limit(event.raw_ref)), event.raw_ref.encoding)


async def _whole_prompt(event: ModelRequestEvent, blobs: BlobStore) -> ModelRequestEvent:
    messages = tuple([await _whole_message(message, blobs) for message in event.messages])
    return event.model_copy(update={"messages": messages})


async def _whole_message(message: Mapping[str, Any], blobs: BlobStore) -> dict[str, Any]:
    if "content_ref" not in message:
        return dict(message)
    reference = BlobRef.model_validate(message["content_ref"])
    data = await blobs.get(reference.blob, limit=blob_limit(reference))
    return {name: value for name, value in message.items() if name != "content_ref"} | {
        "content": data.decode(errors="replace")
    }


def _specs(tools: Iterable[Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """The recorded tools. What is no tool, in a damaged or foreign stream, is left out."""
    found = []
    for tool in tools:
        try:
            found.append(ToolSpec.model_validate(tool))
        except ValidationError:
            continue
    return tuple(found)


def _or_none(delta: PacketDelta | None) -> PacketDelta | None:
    return delta if delta is not None and delta != PacketDelta() else None
