"""Exports of a project's streams to the formats of other programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from remora.analysis import COLUMNS, CompleteStream, atif, chat, csv_text, otlp, turn_rows
from remora.app._project import Project
from remora.app._reports import Reports
from remora.context.patterns import redact_values
from remora.context.text import escaped_json
from remora.errors import TraceError
from remora.events import (
    AgentStartEvent,
    BlobRef,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolResultEvent,
    UserInputEvent,
    canonical,
    unpack,
)
from remora.ports import blob_limit
from remora.trace import Filter, Intact, read_events

if TYPE_CHECKING:
    from remora.app._streams import ExportKind


class Exports:
    """Exports streams, one agent at a time. Text that looks like a secret is redacted."""

    def __init__(self, project: Project) -> None:
        self._project = project

    async def export(
        self,
        kind: ExportKind,
        ids: Sequence[str],
        wanted: Filter | None,
        *,
        content: bool,
        progress: Callable[[int, int], None],
    ) -> AsyncIterator[str]:
        """Yield one part of text for each agent; for `csv` the column names first."""
        _, paths = Reports(self._project).choose(ids, wanted)
        if kind == "csv":
            yield csv_text([COLUMNS])
        for place, path in enumerate(paths):
            progress(place, len(paths))
            stream = await self._complete(path)
            if stream.events:
                yield _text(kind, stream, content=content)

    async def _complete(self, path: Path) -> CompleteStream:
        """A stream up to its first damage, with the texts behind it."""
        events = list(Intact(read_events(path)))
        raws = {event.seq: await self._raw(event) for event in events if isinstance(event, ToolResultEvent)}
        long = [event for event in events if isinstance(event, UserInputEvent | ModelResponseEvent) and event.text_ref]
        texts = {event.seq: await self._text(event.text_ref) for event in long}
        return CompleteStream(events, await self._system(events), raws, texts)

    async def _raw(self, event: ToolResultEvent) -> str:
        value = event.raw
        if event.raw_ref is not None:
            try:
                data = await self._project.blobs.get(event.raw_ref.blob, limit=blob_limit(event.raw_ref))
                value = unpack(data, event.raw_ref.encoding)
            except (TraceError, ValueError) as error:
                return f"[cannot be exported: {error}]"
        try:
            return value if isinstance(value, str) else canonical(value).decode()
        except TypeError:  # bytes, or nested deeper than the encoder allows
            return repr(value)

    async def _system(self, events: Sequence[Event]) -> str:
        for event in events:
            if isinstance(event, AgentStartEvent) and event.system:
                return await self._text(event.system_ref) if event.system_ref else event.system
            if isinstance(event, ModelRequestEvent):
                first: dict[str, Any] = next((item for item in event.messages if item.get("role") == "system"), {})
                reference = first.get("content_ref")
                return await self._text(reference) if reference else str(first.get("content") or "")
        return ""

    async def _text(self, reference: object) -> str:
        try:
            found = reference if isinstance(reference, BlobRef) else BlobRef.model_validate(reference)
            data = await self._project.blobs.get(found.blob, limit=blob_limit(found))
        except (TraceError, ValueError) as error:
            return f"[cannot be exported: {error}]"
        return data.decode(errors="replace")


def _text(kind: ExportKind, stream: CompleteStream, *, content: bool) -> str:
    match kind:
        case "otel":
            return _line(otlp([stream], content=content))
        case "atif":
            return _line(atif(stream))
        case "openai":
            return _line(chat(stream))
        case "csv":
            return csv_text(redact_values(list(turn_rows(stream))))


def _line(value: Any) -> str:
    return escaped_json(orjson.dumps(redact_values(value), default=str).decode()) + "\n"
