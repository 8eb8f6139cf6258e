"""Builds `tool_result` events from any value. Redacts secrets before it builds `raw` and the delta."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from pydantic_core import to_jsonable_python

from remora.context.calls import BadCall
from remora.context.candidates import by_rules
from remora.context.checks import checked
from remora.context.contracts import ToolSpec, make_error_result
from remora.context.models import KnowledgeEntry
from remora.context.render import CHRONOLOGICAL
from remora.context.repeat import REPEAT_LIMIT, RepeatGuard
from remora.context.summarizers import Distilled, Summarizer, distill, is_summarized, states_outcome, summarize_guarded
from remora.errors import ToolError, TraceError
from remora.events import (
    BlobRef,
    Call,
    CandidateAction,
    ErrorDelta,
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
MAX_PARSED = 16 * 1024
"""Characters of a JSON text that is also recorded as the value it is."""


@dataclass(frozen=True)
class _Redacted:
    """The return value of a tool, with secrets redacted."""

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
        self.tools = tools
        self._summarizers = summarizers
        self._blobs = wiring.blobs
        self._secrets = wiring.secrets
        self._extensions = wiring.extensions
        self._guard = wiring.guard
        self._fallback = wiring.fallback
        self._rules = wiring.rules
        self.goal = wiring.goal
        self._shows_all = wiring.prompts.style in CHRONOLOGICAL
        """Whether every result becomes evidence. If not, only results without a summary do."""
        self._keeps_evidence = wiring.evidence
        self._repeats = RepeatGuard()

    async def build(
        self, call: Call, output: ToolOutput, changes: Changes, duration_ms: float, known: Mapping[str, KnowledgeEntry]
    ) -> ToolResultEvent:
        """Build the event of a finished call. Its large parts are already in blobs; the event is not recorded yet."""
        redacted = self._redact(output.value)
        distilled, delta = await self.derive(
            call, redacted.value, known, packed=redacted.packed, notes=redacted.notes, changed=bool(changes)
        )
        stored = await self._stored_fields(redacted, output, changes)
        return ToolResultEvent(
            call_id=call.call_id,
            tool=call.tool,
            outcome=distilled.outcome,
            duration_ms=round(duration_ms, 3),
            delta=delta,
            **stored,
        )

    async def derive(
        self,
        call: Call,
        safe: Any,
        known: Mapping[str, KnowledgeEntry],
        *,
        packed: Inline | Packed,
        notes: Sequence[str] = (),
        changed: bool = False,
    ) -> tuple[Distilled, PacketDelta]:
        """Distill a result that has no secrets, and derive its delta. `changed` says that the call changed files."""
        distilled = await self.distill(call.tool, safe)
        proposed = self._add_candidates(distilled.delta, known)
        told = not self._shows_all and (states_outcome(safe) or is_summarized(call.tool, safe, self._summarizers))
        if self._keeps_evidence and not told:
            args = self._secrets.clean(call.args)
            proposed = with_evidence(proposed, call_evidence(call, args, safe, distilled, self.goal))
        delta = checked(proposed, self.tools, self._extensions, notes)
        if changed:
            self._repeats.forget()
        raw = packed.data if isinstance(packed, Packed) else canonical(packed.value)
        return distilled, self._repeats.note(call.tool, call.args, raw, delta)

    async def build_check(
        self, call: Call, output: ToolOutput, changes: Changes, duration_ms: float, key: str
    ) -> ToolResultEvent:
        """Build the event of the agent's check. It has no delta, so that the check never reaches the packet."""
        redacted = self._redact(output.value)
        distilled = await self.distill(call.tool, redacted.value)
        stored = await self._stored_fields(redacted, output, changes)
        return ToolResultEvent(
            call_id=call.call_id,
            tool=call.tool,
            outcome=distilled.outcome,
            duration_ms=round(duration_ms, 3),
            purpose="check",
            check=_check_fields(distilled.delta, key),
            **stored,
        )

    def _redact(self, value: Any) -> _Redacted:
        value, packed, notes = pack_or_describe(value)
        # Redact before distilling, so that raw, delta, packet and prompt agree.
        safe = self._secrets.redact(value)
        return _Redacted(safe.value, pack(safe.value) if safe.count else packed, safe.count, notes)

    async def _stored_fields(self, redacted: _Redacted, output: ToolOutput, changes: Changes) -> dict[str, Any]:
        """The fields of an event that hold the tool's output. Large parts go to blobs."""
        attached = [await self._attachment(name, data) for name, data in _attachments(output)]
        packed = redacted.packed
        return {
            "parsed": parsed_text(redacted.value),
            "raw": packed.value if isinstance(packed, Inline) else None,
            "raw_ref": await self._reference(packed) if isinstance(packed, Packed) else None,
            "attachments": tuple(item for item, _ in attached),
            "files": tuple([await self._change(change) for change in changes]),
            "redactions": redacted.redactions + sum(count for _, count in attached),
        }

    @property
    def repeats(self) -> int:
        """How many times in a row the latest call has given the same result."""
        return self._repeats.times

    def forget_repeats(self) -> None:
        """Count repeated calls from zero, for another model."""
        self._repeats.forget()
        self._repeats.times = 0

    async def remember(self, args: dict[str, Any], event: ToolResultEvent) -> None:
        """Add an earlier result of this run to the repeat guard."""
        raw = await self._read_blob(event.raw_ref) if event.raw_ref else canonical(event.raw)
        if event.files:
            self._repeats.forget()
        self._repeats.note(event.tool, args, raw, PacketDelta())

    def is_worn_out(self, tool: ToolSpec, limit: int = REPEAT_LIMIT) -> bool:
        """Whether the tool takes no arguments and has returned the same result `limit` times."""
        takes_nothing = not tool.parameters.get("properties")
        return takes_nothing and self._repeats.is_worn_out(CandidateAction(tool=tool.name), limit)

    async def distill(self, tool: str, safe: Any) -> Distilled:
        """Distill a result of `tool` that has no secrets."""
        made = await summarize_guarded(tool, safe, self._summarizers, self._guard, self._fallback)
        return distill(tool, safe, made)

    async def text(self, event: ToolResultEvent) -> str:
        """The raw result of an event, as text."""
        return readable(await self.value(event))

    async def value(self, event: ToolResultEvent) -> Any:
        """The raw result of an event."""
        if event.raw_ref is None:
            return event.raw
        if event.raw_ref.size > MAX_BLOB:
            return f"[{event.raw_ref.size:,} bytes, more than can be looked into]"
        return unpack(await self._read_blob(event.raw_ref), event.raw_ref.encoding)

    async def _read_blob(self, reference: BlobRef) -> bytes:
        return await self._blobs.get(reference.blob, limit=blob_limit(reference))

    def _add_candidates(self, delta: PacketDelta, known: Mapping[str, KnowledgeEntry]) -> PacketDelta:
        """Add the candidates of the agent's rules if the tool returned none."""
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


def pack_or_describe(value: Any) -> tuple[Any, Inline | Packed, tuple[str, ...]]:
    """The value and its exact form. Models and dataclasses are kept as JSON types.

    If it has no such form, its `repr` instead, and a note that says so.
    """
    try:
        return value, pack(value), ()
    except (TraceError, RecursionError):
        with suppress(Exception):  # foreign code: serializers may raise anything
            plain = to_jsonable_python(value)
            return plain, pack(plain), ()
        text = _repr(value)
        return text, pack(text), (f"The result is kept as text: {type(value).__name__} has no exact form",)


def parsed_text(value: Any) -> Any:
    """The object or list that a text is, if it is short JSON. Any other value needs no parsing, or has no parts."""
    if not isinstance(value, str) or len(value) > MAX_PARSED or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _check_fields(delta: PacketDelta, key: str) -> dict[str, Any]:
    """The fields of a check: the number of problems (None if unknown), its error or, without problems, its summary."""
    known = delta.knowledge.get(key)
    fields: dict[str, Any] = {"key": key, "count": known.value if known and isinstance(known.value, int) else None}
    if delta.error and delta.error.set:
        fields["problem"] = delta.error.set
    if delta.diagnostics:
        fields["notes"] = list(delta.diagnostics)
    if fields["count"] == 0 and delta.action and delta.action.summary:
        fields["said"] = delta.action.summary
    return fields


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - foreign code: its `repr` may raise anything
        return f"<{type(value).__name__} without a text: {type(error).__name__}>"


def _attachments(output: ToolOutput) -> list[tuple[str, bytes | Iterable[bytes]]]:
    prints = output.prints.encode(errors="surrogatepass")
    return [*([("prints", prints)] if prints else []), *output.outputs]


async def call_tool(use: Callable[..., Awaitable[Any] | Any], args: Mapping[str, Any]) -> ToolOutput:
    """Call a tool. An exception becomes a result that the model reads; it never ends the run."""
    try:
        value = use(**args)
        value = await value if inspect.isawaitable(value) else value
    except ToolError as error:
        said = error.message or "The tool failed without a message"
        result = make_error_result(said) | {"code": error.code}
        return ToolOutput(result, error.prints, error.outputs, raised=error)
    except Exception as error:  # noqa: BLE001 - foreign code: the model reads any failure as the result
        return _failed_with(error)
    if isinstance(value, Exception):  # as `asyncio.gather(…, return_exceptions=True)` returns it
        return _failed_with(value)
    return value if isinstance(value, ToolOutput) else ToolOutput(value)


def _failed_with(error: Exception) -> ToolOutput:
    said = f"{type(error).__name__}: {str(error) or 'no message'}"
    return ToolOutput(make_error_result(said), raised=error)


def with_outcome(event: ToolResultEvent, outcome: Literal["success", "error", "partial", "unknown"]) -> ToolResultEvent:
    """The event with the outcome that its caller knows. The packet shows `unknown` as it was read."""
    delta = event.delta
    given = {"outcome": outcome, "outcome_given": True}
    if outcome == "unknown" or event.outcome == outcome or not isinstance(delta, PacketDelta):
        return event.model_copy(update=given)
    changed: dict[str, Any] = {}
    if delta.action is not None:
        changed["action"] = delta.action.model_copy(update={"outcome": outcome})
    if delta.evidence is not None:
        changed["evidence"] = delta.evidence.model_copy(update={"failed": outcome == "error"})
    if outcome == "error":
        text = delta.action.summary if delta.action else ""
        changed["error"] = ErrorDelta(set=f"{event.tool}: {text}")
    elif event.outcome == "error":
        changed["error"] = ErrorDelta(clear=True)
    return event.model_copy(update=given | {"delta": delta.model_copy(update=changed)})


def unrecorded_result(tool: str, kept: Mapping[str, Any], /, **_args: Any) -> dict[str, Any]:
    """The result of a call that was not run because a record cannot hold its arguments; `kept` is recorded instead."""
    if "too_large" in kept:
        return make_error_result(f"Arguments of {tool} are larger than {MAX_INLINE:,} bytes: it was not run")
    return make_error_result(f"Arguments of {tool} are not valid Unicode or not JSON values: it was not run")


def bad_call_result(bad: BadCall) -> dict[str, Any]:
    """The result of a call whose arguments could not be parsed."""
    return make_error_result(bad.error.message) | {"code": bad.error.code, "arguments": bad.written}
