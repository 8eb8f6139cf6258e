"""What a tool gave, made into its event: every value is accepted, secrets are gone, raw and delta agree."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from remora.context.calls import BadCall
from remora.context.candidates import by_rules
from remora.context.checks import Extension, checked
from remora.context.contracts import ToolSpec, make_error_result
from remora.context.models import KnowledgeEntry
from remora.context.repeat import RepeatGuard
from remora.context.secrets import Secrets
from remora.context.summarizers import Distilled, Summarizer, distill, summarize_guarded
from remora.errors import ToolError, TraceError
from remora.events import (
    BlobRef,
    Call,
    CandidateAction,
    FileChange,
    Inline,
    Packed,
    PacketDelta,
    ToolResultEvent,
    canonical,
    pack,
    readable,
    unpack,
)
from remora.keeping import MAX_INLINE
from remora.ports import MAX_BLOB, BlobStore, SummaryGuard, ToolOutput, Written, blob_limit
from remora.subagent import CandidateRule

Changes = Sequence[Written]


class Results:
    """Makes the results of one agent's calls."""

    def __init__(
        self,
        tools: Sequence[ToolSpec],
        *,
        blobs: BlobStore,
        secrets: Secrets,
        extensions: Mapping[str, Extension],
        summarizers: Mapping[str, Summarizer],
        guard: SummaryGuard,
        fallback: Summarizer | None,
        rules: Sequence[CandidateRule] = (),
    ) -> None:
        self._tools = tools
        self._blobs = blobs
        self._secrets = secrets
        self._extensions = extensions
        self._summarizers = summarizers
        self._guard = guard
        self._fallback = fallback
        self._rules = rules
        self._repeats = RepeatGuard()

    async def make(
        self, call: Call, output: ToolOutput, changes: Changes, duration_ms: float, known: Mapping[str, KnowledgeEntry]
    ) -> ToolResultEvent:
        """The event of a call that ended. Its large parts are durable; it is not recorded yet."""
        value, notes = storable_value(output.value)
        # Before distilling, so that raw, delta, packet and prompt agree.
        safe = self._secrets.redact(value)
        packed = pack(safe.value)
        distilled = await self.distilled(call.tool, safe.value)
        offered = self._offered(distilled.delta, known)
        delta = checked(offered, self._tools, self._extensions, notes)
        attached = [await self._attachment(name, data) for name, data in _attached(output)]
        raw = packed.data if isinstance(packed, Packed) else canonical(packed.value)
        if changes:
            self._repeats.forget()
        return ToolResultEvent(
            call_id=call.call_id,
            tool=call.tool,
            outcome=distilled.outcome,
            duration_ms=round(duration_ms, 3),
            raw=packed.value if isinstance(packed, Inline) else None,
            raw_ref=await self._reference(packed) if isinstance(packed, Packed) else None,
            attachments=tuple(item for item, _ in attached),
            files=tuple([await self._change(change) for change in changes]),
            delta=self._repeats.note(call.tool, call.args, raw, delta),
            redactions=safe.count + sum(count for _, count in attached),
        )

    @property
    def repeats(self) -> int:
        """How many times in a row the latest call has given the same result."""
        return self._repeats.times

    async def remember(self, args: dict[str, Any], event: ToolResultEvent) -> None:
        """Count a result of the past as one of this run, so that repetitions of it are seen."""
        raw = await self._stored(event.raw_ref) if event.raw_ref else canonical(event.raw)
        if event.files:
            self._repeats.forget()
        self._repeats.note(event.tool, args, raw, PacketDelta())

    def is_worn_out(self, tool: ToolSpec) -> bool:
        """Whether the only call that the tool knows has given the same result too often."""
        takes_nothing = not tool.parameters.get("properties")
        return takes_nothing and self._repeats.is_worn_out(CandidateAction(tool=tool.name))

    async def distilled(self, tool: str, safe: Any) -> Distilled:
        """What a value without secrets comes to as a result of `tool`."""
        made = await summarize_guarded(tool, safe, self._summarizers, self._guard, self._fallback)
        return distill(tool, safe, made)

    async def text(self, event: ToolResultEvent) -> str:
        """The raw result of an event, as text."""
        value = event.raw
        if event.raw_ref is not None and event.raw_ref.size > MAX_BLOB:
            return f"[{event.raw_ref.size:,} bytes, more than can be looked into]"
        if event.raw_ref is not None:
            value = unpack(await self._stored(event.raw_ref), event.raw_ref.encoding)
        return readable(value)

    async def _stored(self, reference: BlobRef) -> bytes:
        return await self._blobs.get(reference.blob, limit=blob_limit(reference))

    def _offered(self, delta: PacketDelta, known: Mapping[str, KnowledgeEntry]) -> PacketDelta:
        """The delta with what the agent's rules offer, where the tool itself offers nothing."""
        if delta.candidate_actions or not self._rules:
            return delta
        values = {key: entry.value for key, entry in known.items()}
        values |= {key: entry.value for key, entry in delta.knowledge.items()}
        return delta.model_copy(update={"candidate_actions": by_rules(self._rules, values) or None})

    async def _reference(self, packed: Packed) -> BlobRef:
        return BlobRef(blob=await self._blobs.put(packed.data), size=len(packed.data), encoding=packed.encoding)

    async def _attachment(self, name: str, data: bytes | Iterable[bytes]) -> tuple[dict[str, Any], int]:
        chunks = self._secrets.redact_chunks([data] if isinstance(data, bytes) else data)
        blob, size = await self._blobs.put_chunks(chunks)
        return {"name": name, "ref": BlobRef(blob=blob, size=size).model_dump()}, chunks.count

    async def _change(self, change: Written) -> FileChange:
        return FileChange(
            path=change.path,
            mode=change.mode,
            before=None if change.before is None else await self._blobs.put(change.before),
            after=None if change.after is None else await self._blobs.put(change.after),
        )


def storable_value(value: Any) -> tuple[Any, tuple[str, ...]]:
    """The value if a stream can hold it exactly, else its text, and a line that says so."""
    try:
        pack(value)
    except (TraceError, RecursionError):
        return _described(value), (f"The result is kept as text: {type(value).__name__} has no exact form",)
    return value, ()


def _described(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - foreign code: even its repr may fail
        return f"<{type(value).__name__} without a text: {type(error).__name__}>"


def _attached(output: ToolOutput) -> list[tuple[str, bytes | Iterable[bytes]]]:
    prints = output.prints.encode(errors="surrogatepass")
    return [*([("prints", prints)] if prints else []), *output.outputs]


async def output_of(use: Callable[..., Awaitable[Any] | Any], args: Mapping[str, Any]) -> ToolOutput:
    """What a tool gave. Its failure is a result that the model reads, never the end of the run."""
    try:
        value = use(**args)
        value = await value if inspect.isawaitable(value) else value
    except ToolError as error:
        return ToolOutput(make_error_result(error.message) | {"code": error.code}, error.prints, error.outputs)
    except Exception as error:  # noqa: BLE001 - foreign code: whatever it raises is its result
        return ToolOutput(make_error_result(f"{type(error).__name__}: {error}"))
    return value if isinstance(value, ToolOutput) else ToolOutput(value)


def too_large(tool: str, **_args: Any) -> dict[str, Any]:
    """The result of a call whose arguments no record could hold: it was not run."""
    return make_error_result(f"Arguments of {tool} are larger than {MAX_INLINE:,} bytes: it was not run")


def misread(bad: BadCall) -> dict[str, Any]:
    """The result of a call that could not be understood."""
    return make_error_result(bad.error.message) | {"code": bad.error.code, "arguments": bad.written}
