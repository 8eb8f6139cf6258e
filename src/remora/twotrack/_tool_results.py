"""Builds `tool_result` events. Any value is accepted; secrets are redacted before raw and delta are made."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remora.context.calls import BadCall
from remora.context.candidates import by_rules
from remora.context.checks import checked
from remora.context.contracts import ToolSpec, make_error_result
from remora.context.models import KnowledgeEntry
from remora.context.repeat import RepeatGuard
from remora.context.summarizers import Distilled, Summarizer, distill, states_outcome, summarize_guarded
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
from remora.ports import MAX_BLOB, ToolOutput, Written, blob_limit
from remora.twotrack._evidence import call_evidence, with_evidence
from remora.twotrack._offload import MAX_INLINE
from remora.twotrack._wiring import Wiring

Changes = Sequence[Written]


@dataclass(frozen=True)
class _Kept:
    """What a tool returned, with secrets redacted."""

    value: Any
    packed: Inline | Packed
    redactions: int
    notes: tuple[str, ...]


class ToolResultBuilder:
    """Builds the results of one agent's calls."""

    def __init__(
        self,
        wiring: Wiring,
        tools: Sequence[ToolSpec],
        summarizers: Mapping[str, Summarizer],
    ) -> None:
        self._tools = tools
        self._summarizers = summarizers
        self._blobs = wiring.blobs
        self._secrets = wiring.secrets
        self._extensions = wiring.extensions
        self._guard = wiring.guard
        self._fallback = wiring.fallback
        self._rules = wiring.rules
        self._goal = wiring.goal
        self._shows_all = wiring.prompts.style == "account"
        """Whether every result is kept as evidence, and not only those that neither tool nor summarizer sums up."""
        self._repeats = RepeatGuard()

    async def build(
        self, call: Call, output: ToolOutput, changes: Changes, duration_ms: float, known: Mapping[str, KnowledgeEntry]
    ) -> ToolResultEvent:
        """The event of a call that ended. Its large parts are durable; the event itself is not recorded yet."""
        kept = self._redacted(output.value)
        distilled = await self.distilled(call.tool, kept.value)
        offered = self._offered(distilled.delta, known)
        if self._shows_all or not (states_outcome(kept.value) or call.tool in self._summarizers):
            args = self._secrets.clean(call.args)
            offered = with_evidence(offered, call_evidence(call, args, kept.value, distilled, self._goal))
        delta = checked(offered, self._tools, self._extensions, kept.notes)
        if changes:
            self._repeats.forget()
        raw = kept.packed.data if isinstance(kept.packed, Packed) else canonical(kept.packed.value)
        delta = self._repeats.note(call.tool, call.args, raw, delta)
        stored = await self._stored_fields(kept, output, changes)
        return ToolResultEvent(
            call_id=call.call_id,
            tool=call.tool,
            outcome=distilled.outcome,
            duration_ms=round(duration_ms, 3),
            delta=delta,
            **stored,
        )

    async def build_check(
        self, call: Call, output: ToolOutput, changes: Changes, duration_ms: float, key: str
    ) -> ToolResultEvent:
        """The event of the agent's check. It has no delta: the check is evidence, and never reaches the packet."""
        kept = self._redacted(output.value)
        distilled = await self.distilled(call.tool, kept.value)
        stored = await self._stored_fields(kept, output, changes)
        return ToolResultEvent(
            call_id=call.call_id,
            tool=call.tool,
            outcome=distilled.outcome,
            duration_ms=round(duration_ms, 3),
            purpose="check",
            check=_found(distilled.delta, key),
            **stored,
        )

    def _redacted(self, value: Any) -> _Kept:
        value, packed, notes = packable(value)
        # Redacted before distilling, so that raw, delta, packet and prompt agree.
        safe = self._secrets.redact(value)
        return _Kept(safe.value, pack(safe.value) if safe.count else packed, safe.count, notes)

    async def _stored_fields(self, kept: _Kept, output: ToolOutput, changes: Changes) -> dict[str, Any]:
        """The fields of an event that hold what the tool gave, with everything large in blobs."""
        attached = [await self._attachment(name, data) for name, data in _attached(output)]
        packed = kept.packed
        return {
            "raw": packed.value if isinstance(packed, Inline) else None,
            "raw_ref": await self._reference(packed) if isinstance(packed, Packed) else None,
            "attachments": tuple(item for item, _ in attached),
            "files": tuple([await self._change(change) for change in changes]),
            "redactions": kept.redactions + sum(count for _, count in attached),
        }

    @property
    def repeats(self) -> int:
        """How many times in a row the latest call has given the same result."""
        return self._repeats.times

    async def remember(self, args: dict[str, Any], event: ToolResultEvent) -> None:
        """Count an earlier result of this run, so that repetitions of it are noticed."""
        raw = await self._stored(event.raw_ref) if event.raw_ref else canonical(event.raw)
        if event.files:
            self._repeats.forget()
        self._repeats.note(event.tool, args, raw, PacketDelta())

    def is_worn_out(self, tool: ToolSpec) -> bool:
        """Whether the only call that the tool knows has given the same result too often."""
        takes_nothing = not tool.parameters.get("properties")
        return takes_nothing and self._repeats.is_worn_out(CandidateAction(tool=tool.name))

    async def distilled(self, tool: str, safe: Any) -> Distilled:
        """The distilled form of a value without secrets, as a result of `tool`."""
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
        """The delta with the candidates of the agent's rules, where the tool itself offers none."""
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


def packable(value: Any) -> tuple[Any, Inline | Packed, tuple[str, ...]]:
    """The value and its exact form; where it has none, those of its `repr`, and a line that says so."""
    try:
        return value, pack(value), ()
    except (TraceError, RecursionError):
        text = _described(value)
        return text, pack(text), (f"The result is kept as text: {type(value).__name__} has no exact form",)


def _found(delta: PacketDelta, key: str) -> dict[str, Any]:
    """What a check says: how many things are wrong (None if it does not say), what it calls an error, its notes."""
    known = delta.knowledge.get(key)
    found: dict[str, Any] = {"key": key, "count": known.value if known and isinstance(known.value, int) else None}
    if delta.error and delta.error.set:
        found["problem"] = delta.error.set
    if delta.diagnostics:
        found["notes"] = list(delta.diagnostics)
    return found


def _described(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - foreign code: even its repr may fail
        return f"<{type(value).__name__} without a text: {type(error).__name__}>"


def _attached(output: ToolOutput) -> list[tuple[str, bytes | Iterable[bytes]]]:
    prints = output.prints.encode(errors="surrogatepass")
    return [*([("prints", prints)] if prints else []), *output.outputs]


async def output_of(use: Callable[..., Awaitable[Any] | Any], args: Mapping[str, Any]) -> ToolOutput:
    """What a tool returned. A failure is a result for the model to read, never the end of the run."""
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
