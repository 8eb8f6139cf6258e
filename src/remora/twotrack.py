"""Both tracks of one agent run: what happens is recorded, then folded; what the model sees is rendered from the fold.

`remora.runner` drives it for our agents; anyone's own loop can drive it the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from remora.context.budget import check_limit
from remora.context.checks import checked
from remora.context.contracts import ToolSpec, make_error_result
from remora.context.manager import ContextManager
from remora.context.models import DecisionPacket
from remora.context.projection import PROJECTOR
from remora.context.recall import Remembered, recall
from remora.context.render import RENDERERS, Rendered, Style, fixed_tokens, render, system_text
from remora.context.repeat import RepeatGuard
from remora.context.secrets import Secrets
from remora.context.summarizers import Summarizer, distill
from remora.errors import ToolError
from remora.events import (
    FORMAT,
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    BlobRef,
    Call,
    CandidateAction,
    Event,
    FileChange,
    Inline,
    ModelRequestEvent,
    ModelResponseEvent,
    Packed,
    PacketDelta,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
    canonical,
    digest,
    pack,
    readable,
    unpack,
)
from remora.ports import BlobStore, Clock, Decision, Prompt, TokenCounter, ToolOutput, TraceWriter

Changes = Sequence[tuple[str, bytes | None, bytes | None]]
"""Path, content before, content after."""


@dataclass(frozen=True)
class Identity:
    """Whose stream it is: the part of every record's envelope that never changes."""

    agent_id: str
    run_id: str = ""
    operation: str = ""
    node_id: str = ""

    @property
    def stream_id(self) -> str:
        return f"traces/{self.agent_id}"

    def fields(self) -> dict[str, str]:
        return {
            "agent_id": self.agent_id,
            "run_id": self.run_id,
            "operation": self.operation,
            "node_id": self.node_id,
        }


class TwoTrack:
    """One agent's stream and packet. Nothing enters the packet that is not in the stream first.

    Raises `BudgetError` at once if a prompt could ever be over the limit.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        goal: str,
        tools: Sequence[ToolSpec],
        system_prompt: str,
        limit: int,
        writer: TraceWriter,
        blobs: BlobStore,
        counter: TokenCounter,
        clock: Clock,
        summarizers: dict[str, Summarizer] | None = None,
        secrets: Secrets | None = None,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
        style: Style = "json",
    ) -> None:
        self._secrets = secrets or Secrets()
        self._extensions = dict(extensions or {})
        self._repeats = RepeatGuard()
        self._style: Style = style
        self.identity = identity
        self.goal = self._secrets.clean(goal)
        self.tools = tuple(tools)
        self.limit = limit
        self.largest_prompt = 0
        self.last_seq = -1
        self._system_prompt = self._secrets.clean(system_prompt)
        self._system: BlobRef | None = None
        self._writer = writer
        self._blobs = blobs
        self._counter = counter
        self._clock = clock
        check_limit(fixed_tokens(system_text(self._system_prompt, self.tools), counter), limit)
        initial = identity.fields() | {"goal": self.goal}
        self.context = ContextManager(initial, summarizers, record=self._append, clock=clock.now)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Seal the stream; what ended the block early is in it."""
        if error is None:
            await self.end(AgentEndEvent())
            return
        await self.fail(type(error).__name__, str(error))
        await self.end(AgentEndEvent(outcome="error", reason=type(error).__name__))

    @property
    def packet(self) -> DecisionPacket:
        """What the model would see of the run now."""
        return self.context.packet

    async def start(
        self,
        *,
        version: str = "",
        node: Mapping[str, Any] | None = None,
        definition: Mapping[str, Any] | None = None,
        constraints: Mapping[str, Any] | None = None,
        model: Mapping[str, Any] | None = None,
        candidates: Sequence[CandidateAction] = (),
        parent: Mapping[str, Any] | None = None,
    ) -> None:
        """Record all that a reader needs to understand the run alone."""
        await self.context.record(
            AgentStartEvent(
                format=FORMAT,
                remora=version,
                goal=self.goal,
                node=dict(node or {}),
                definition=dict(definition or {}),
                tools=tuple(tool.model_dump() for tool in self.tools),
                budget={"limit": self.limit, "exact": self._counter.exact},
                constraints=dict(constraints or {}),
                projector=PROJECTOR,
                renderer=RENDERERS[self._style],
                model=dict(model or {}),
                delta=PacketDelta(candidate_actions=tuple(candidates)) if candidates else None,
                parent=dict(parent) if parent else None,
            )
        )

    async def request(self) -> Prompt:
        """Begin the next turn and give its prompt: within the limit, its receipt recorded before anyone sees it."""
        await self.context.record(TurnStartEvent(turn=self.packet.turn + 1))
        await self.context.pull_hub_context()
        rendered = render(
            self.packet,
            system_prompt=self._system_prompt,
            tools=self.tools,
            limit=self.limit,
            counter=self._counter,
            style=self._style,
        )
        await self.context.record(await self._receipt(rendered))
        self.largest_prompt = max(self.largest_prompt, rendered.tokens["total"])
        return Prompt(
            messages=rendered.messages,
            tools=self.tools,
            candidates=tuple(self.packet.candidate_actions),
            turn=self.packet.turn,
        )

    async def response(self, decision: Decision) -> tuple[Call, ...]:
        """The calls of a decision, recorded."""
        await self.context.record(
            ModelResponseEvent(
                text=self._secrets.clean(decision.text),
                calls=tuple(
                    call.model_copy(update={"args": self._secrets.clean(call.args)}) for call in decision.calls
                ),
                model=decision.model,
                usage=dict(decision.usage),
                finish=decision.finish,
                turn=self.packet.turn,
            )
        )
        return decision.calls

    async def call(
        self,
        call: Call,
        use: Callable[..., Awaitable[Any] | Any],
        *,
        changes: Callable[[], Changes] = tuple,
    ) -> ToolResultEvent:
        """Run `use(**call.args)`: intent recorded, then the effect, then what came back, raw and distilled."""
        spec = next((tool for tool in self.tools if tool.name == call.tool), None)
        effects = spec.effects if spec else "outside"
        turn = self.packet.turn
        await self.context.record(
            ToolCallEvent(
                call_id=call.call_id, tool=call.tool, args=self._secrets.clean(call.args), effects=effects, turn=turn
            )
        )
        began = self._clock.monotonic()
        output = await _output(use, call.args)
        duration = max(0.0, self._clock.monotonic() - began) * 1000
        event = await self._result(call, output, changes(), duration)
        await self.context.record(event)
        return event

    async def recall(self, text: str) -> dict[str, Any]:
        """What earlier tool results of this run say about `text`, as a tool result: for `call(…, track.recall)`."""
        events = self._writer.read(self.identity.stream_id)
        results = [event async for event in events if isinstance(event, ToolResultEvent)]
        past = [Remembered(event.seq, event.turn, event.tool, await self._raw_text(event)) for event in results]
        return recall(past, text)

    async def submit(self, call: Call) -> None:
        """Record what the agent says it has done."""
        await self.context.record(
            SubmitResultEvent(call_id=call.call_id, result=self._secrets.clean(call.args), turn=self.packet.turn),
        )

    async def user(self, text: str) -> None:
        """Record what a person says to the agent."""
        await self.context.record(UserInputEvent(text=self._secrets.clean(text), turn=self.packet.turn))

    async def fail(self, code: str, message: str) -> None:
        """Record what stopped the agent."""
        await self.context.record(
            AgentErrorEvent(code=code, message=self._secrets.clean(message), turn=self.packet.turn)
        )

    async def end(self, event: AgentEndEvent) -> str:
        """Seal the stream and give its head."""
        await self.context.record(event.model_copy(update={"turn": self.packet.turn}))
        return await self._writer.head(self.identity.stream_id)

    async def _append(self, draft: Event) -> Event:
        stamped = draft.model_copy(update=self.identity.fields())
        (event,) = await self._writer.append(self.identity.stream_id, [stamped])
        self.last_seq = event.seq
        return event

    async def _receipt(self, rendered: Rendered) -> ModelRequestEvent:
        # The system text is the same in every turn: kept once, named in each receipt.
        if self._system is None:
            text = rendered.system.encode()
            self._system = BlobRef(blob=await self._blobs.put(text), size=len(text), encoding="utf-8")
        return ModelRequestEvent(
            packet_sha256=digest(canonical(self.packet)),
            prompt_sha256=digest(canonical(rendered.messages)),
            messages=(
                {"role": "system", "content_ref": self._system.model_dump()},
                {"role": "user", "content": rendered.user},
            ),
            tokens=rendered.tokens,
            limit=self.limit,
            left_out=rendered.left_out,
            offered=tuple(tool.name for tool in self.tools),
            counter=_named(self._counter),
            renderer=RENDERERS[self._style],
            turn=self.packet.turn,
        )

    async def _result(self, call: Call, output: ToolOutput, changes: Changes, duration_ms: float) -> ToolResultEvent:
        # Before distilling, so that raw, delta, packet and prompt agree.
        safe = self._secrets.redact(output.value)
        distilled = distill(call.tool, safe.value, self.context.summarizers)
        packed = pack(safe.value)
        raw = packed.data if isinstance(packed, Packed) else canonical(packed.value)
        delta = checked(distilled.delta, self.tools, self._extensions)
        attached = [await self._attachment(name, data) for name, data in _attached(output)]
        reference = None
        if isinstance(packed, Packed):
            blob = await self._blobs.put(packed.data)
            reference = BlobRef(blob=blob, size=len(packed.data), encoding=packed.encoding)
        return ToolResultEvent(
            call_id=call.call_id,
            tool=call.tool,
            outcome=distilled.outcome,
            duration_ms=round(duration_ms, 3),
            raw=packed.value if isinstance(packed, Inline) else None,
            raw_ref=reference,
            attachments=tuple(item for item, _ in attached),
            files=tuple([await self._change(*change) for change in changes]),
            delta=self._repeats.note(call.tool, call.args, raw, delta),
            redactions=safe.count + sum(count for _, count in attached),
            turn=self.packet.turn,
        )

    async def _raw_text(self, event: ToolResultEvent) -> str:
        value = event.raw
        if event.raw_ref is not None:
            value = unpack(await self._blobs.get(event.raw_ref.blob), event.raw_ref.encoding)
        return readable(value)

    async def _attachment(self, name: str, data: bytes | Iterable[bytes]) -> tuple[dict[str, Any], int]:
        chunks = self._secrets.redact_chunks([data] if isinstance(data, bytes) else data)
        blob, size = await self._blobs.put_chunks(chunks)
        return {"name": name, "ref": BlobRef(blob=blob, size=size).model_dump()}, chunks.count

    async def _change(self, path: str, before: bytes | None, after: bytes | None) -> FileChange:
        return FileChange(
            path=path,
            before=None if before is None else await self._blobs.put(before),
            after=None if after is None else await self._blobs.put(after),
        )


async def _output(use: Callable[..., Awaitable[Any] | Any], args: Mapping[str, Any]) -> ToolOutput:
    """What a tool gave. Its failure is a result that the model reads, never the end of the run."""
    try:
        value = use(**args)
        value = await value if inspect.isawaitable(value) else value
    except ToolError as error:
        return ToolOutput(make_error_result(error.message) | {"code": error.code}, error.prints, error.outputs)
    except Exception as error:  # noqa: BLE001 - foreign code: whatever it raises is its result
        return ToolOutput(make_error_result(f"{type(error).__name__}: {error}"))
    return value if isinstance(value, ToolOutput) else ToolOutput(value)


def _named(counter: TokenCounter) -> dict[str, Any]:
    told = {"name": counter.name, "exact": counter.exact}
    return told | {"digest": counter.digest} if counter.digest else told


def _attached(output: ToolOutput) -> list[tuple[str, bytes | Iterable[bytes]]]:
    prints = output.prints.encode(errors="surrogatepass")
    return [*([("prints", prints)] if prints else []), *output.outputs]
