"""Reads the streams of a project, and imports chat logs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from remora.analysis import (
    AgentComparison,
    Entry,
    Explanation,
    Report,
    RunComparison,
    StreamSummary,
    TokenReport,
    chat_tokens,
    explain,
    summarize,
    token_report,
    transcript,
)
from remora.app._importing import Imports, ImportSettings, LogImport, Progress
from remora.app._project import Project, counter_of
from remora.app._unrecorded import UnrecordedPrompts
from remora.app._what_if import OtherRules, WhatIfRuns
from remora.context.models import DecisionPacket
from remora.context.projection import project
from remora.errors import TraceError
from remora.events import (
    AgentStartEvent,
    BlobRef,
    Event,
    ModelRequestEvent,
    ToolResultEvent,
    canonical,
    readable,
    unpack,
)
from remora.ports import TokenCounter, blob_limit
from remora.trace import Filter, check_stream_id, read_events

ExportKind = Literal["otel", "atif", "openai", "csv"]
"""The formats that streams can be exported to."""


def no_progress(_done: int, _total: int) -> None:
    """Show nothing."""


class Streams:
    """Reads the project's streams, with the raw results behind them."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def show(self, fragment: str) -> StreamSummary:
        """One agent's run on both tracks, turn by turn."""
        return summarize(self._project.library.events(fragment))

    def packet(self, fragment: str, to: int | None = None) -> DecisionPacket:
        """The packet after turn `to`, or after the last. Same as folding the whole stream, but faster.

        Raises `ProjectionStopped`.
        """
        return project(self._project.library.changes(fragment, to))

    async def explain(self, key: str, fragment: str, at: int | None = None) -> tuple[Explanation, str]:
        """The events that set a value of the packet, and the raw result behind the last one."""
        changes = await UnrecordedPrompts(self._project, counter_of(None)).evidence(fragment)
        found = explain(changes, key, at)
        if not found.sources:
            return found, ""
        event = self._project.library.event(fragment, found.sources[-1].seq)
        return found, await self.text(event) if isinstance(event, ToolResultEvent) else ""

    async def recall(self, fragment: str, text: str = "", seq: int | None = None, lines: str = "") -> dict[str, Any]:
        """Search an agent's raw results for `text`, or look up event `seq`: the bounded result of the tool `recall`."""
        from remora.twotrack import recall_from  # slow to load

        path = self._project.library.find(fragment)
        last = max((event.seq for event in self._project.library.intact(fragment)), default=-1)

        async def read(agent_id: str, /, *, after: int) -> AsyncIterator[Event]:
            check_stream_id(f"traces/{agent_id}")
            stream = path if agent_id == path.stem else path.with_name(f"{agent_id}.jsonl")
            for event in read_events(stream, torn_ok=True):
                if event.seq > after:
                    yield event

        return await recall_from(path.stem, read, last, self, text, seq, lines)

    async def text(self, event: ToolResultEvent) -> str:
        """The raw result of an event, as text; why it cannot be shown if it was pruned."""
        try:
            return readable(await self._raw(event))
        except TraceError as error:
            return f"[cannot be shown: {error.message}]"

    async def chat_history(self, fragment: str) -> tuple[dict[int, int], str]:
        """The tokens by turn that chat history would have sent, and a sentence about how they were counted."""
        events, system, raws = await self._load(fragment)
        counter, how = self._same_counter(events)
        return chat_tokens(events, system, lambda e: raws[e.seq], counter), how

    def _same_counter(self, events: Sequence[Event]) -> tuple[TokenCounter, str]:
        """The counter of the stream's receipts if its tokenizer is available, else an estimate."""
        asked = next((event for event in events if isinstance(event, ModelRequestEvent)), None)
        counter = self.recorded_counter(asked)
        if counter.exact:
            return counter, "Both counted by the model's own tokenizer."
        counted = asked is not None and asked.counter.get("exact")
        return counter, "History is estimated, the packet counted." if counted else "Both estimated the same way."

    def recorded_counter(self, asked: ModelRequestEvent | None) -> TokenCounter:
        """The counter of a receipt if its tokenizer is available, else an estimate."""
        from remora.app._models import weights_counter

        if asked is None or not asked.counter.get("exact"):
            return counter_of(None)
        own = weights_counter(self._project.server)
        return own if own is not None and own.digest == asked.counter.get("digest") else counter_of(None)

    async def tokens(self, fragment: str, *, tokenizer: Path | None = None, budget: int | None = None) -> TokenReport:
        """Compare the tokens that each turn sent with chat history, both counted by the same tokenizer.

        `budget` is the packet's limit in tokens for a log that was imported without packets.
        """
        counter = counter_of(tokenizer)
        events, system, raws = await self._load(fragment, UnrecordedPrompts(self._project, counter, budget))
        return token_report(events, system, lambda e: raws[e.seq], counter)

    async def transcript(self, fragment: str, *, full: bool = False, clean: Callable[[str], str] = str) -> list[Entry]:
        """One agent's run as a conversation: prompts as sent, replies, calls and results, as `clean` returns them."""
        prompts = UnrecordedPrompts(self._project, counter_of(None))
        events = [event async for event in prompts.of(self._project.library.events(fragment))]
        return await transcript(events, self._project.blobs.get, full=full, clean=clean)

    def what_if(self, other: OtherRules) -> WhatIfRuns:
        """Compare recorded runs with what other rules make of them. No tool runs, and no model is asked."""
        return WhatIfRuns(self._project, other)

    async def import_chats(
        self,
        files: Sequence[Path],
        *,
        tokenizer: Path | None = None,
        budget: int | None = None,
        packets: bool = False,
        format: str = "",
        again: bool = False,
        progress: Progress | None = None,
    ) -> Imports:
        """Record every conversation of these logs as a sealed stream. One that cannot be read leaves none.

        `files` may be folders. With `packets`, the stream also has evidence and the prompt that a packet would have
        been at every turn, which is several times slower; so it has with a `budget`, the packet's limit without the
        log's system text and tools, or a `tokenizer`. `format` says which program wrote the logs; without it, they are
        looked at. A conversation that was imported before, from a log with the same bytes, is imported only with
        `again`.
        """
        packets = packets or budget is not None or tokenizer is not None
        settings = ImportSettings(tokenizer, budget, packets, format, again)
        return await LogImport(self._project, settings, progress).run(files)

    async def report(
        self,
        ids: Sequence[str] = (),
        wanted: Filter | None = None,
        *,
        losses: bool = True,
        progress: Callable[[int, int], None] = no_progress,
    ) -> Report:
        """Report on these agents and runs; by default on the latest run, with a filter on all matching agents."""
        from remora.app._reports import Reports

        return await Reports(self._project).report(ids, wanted, losses=losses, progress=progress)

    def settings_of_agent(self, fragment: str) -> dict[str, Any]:
        """The settings of the run of an agent; none if it had no run."""
        first = next(iter(self._project.library.events(fragment)), None)
        return self._project.runs.settings_of(first.run_id) if first is not None and first.run_id else {}

    def compare(self, one: str, other: str) -> AgentComparison | RunComparison:
        """Compare two agents turn by turn, or two runs agent by agent. Raises `ConfigError` for one of each."""
        from remora.app._reports import Reports

        return Reports(self._project).compare(one, other)

    def export(
        self,
        kind: ExportKind,
        ids: Sequence[str] = (),
        wanted: Filter | None = None,
        *,
        content: bool = False,
        progress: Callable[[int, int], None] = no_progress,
    ) -> AsyncIterator[str]:
        """Yield the text of an export, one part for each agent; by default of the latest run.

        `content` adds prompts, replies and results to `otel`, which leaves them out by convention.
        """
        from remora.app._exports import Exports

        return Exports(self._project).export(kind, ids, wanted, content=content, progress=progress)

    async def _load(
        self, fragment: str, prompts: UnrecordedPrompts | None = None
    ) -> tuple[list[Event], str, dict[int, str]]:
        recorded = self._project.library.events(fragment)
        events = [event async for event in prompts.of(recorded)] if prompts else list(recorded)
        raws = {event.seq: await self._raw_text(event) for event in events if isinstance(event, ToolResultEvent)}
        return events, await self.system_text(events), raws

    async def _raw(self, event: ToolResultEvent) -> Any:
        if event.raw_ref is None:
            return event.raw
        data = await self._project.blobs.get(event.raw_ref.blob, limit=blob_limit(event.raw_ref))
        return unpack(data, event.raw_ref.encoding)

    async def _raw_text(self, event: ToolResultEvent) -> str:
        value = await self._raw(event)
        return value if isinstance(value, str) else canonical(value).decode()

    async def system_text(self, events: Sequence[Event]) -> str:
        """The system text of a run: of its first prompt, or of a log that was imported without packets."""
        for event in events:
            if isinstance(event, AgentStartEvent) and event.system:
                return await self._text_of(event.system_ref) if event.system_ref else event.system
            if isinstance(event, ModelRequestEvent):
                first = next((message for message in event.messages if message.get("role") == "system"), {})
                if "content_ref" not in first:
                    return str(first.get("content", ""))
                return await self._text_of(BlobRef.model_validate(first["content_ref"]))
        return ""

    async def _text_of(self, reference: BlobRef) -> str:
        return (await self._project.blobs.get(reference.blob, limit=blob_limit(reference))).decode()
