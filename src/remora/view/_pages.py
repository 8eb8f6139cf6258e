"""The pages: what each one shows, rendered to HTML. All methods block."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from remora.analysis import AgentComparison, PromptItem, PromptPart, RunComparison, Shown, summarize
from remora.analysis.reporting import words
from remora.app import Project, Viewing
from remora.context.patterns import redact_patterns
from remora.errors import RemoraError, TraceNotFound
from remora.events import ModelRequestEvent, ModelResponseEvent, short_id
from remora.trace import Filter, Outline, StreamInfo, is_locked, read_picked
from remora.view._cards import Cards
from remora.view._head import Head, decider, head, tone_of
from remora.view._ladder import ladder
from remora.view._picture import budget_bar, time_line, tint
from remora.view._search import search_agent
from remora.view._text import environment

PAGE = 100
"""Agents on one page of the list."""
TURNS = 200
"""Turns on one page of the list of all turns."""
MAX_PAIRS = 400
"""Turns or agents of a comparison that are shown."""
MAX_DIFFS = 100
"""Agents whose open changes are on one page."""
FILTERS = ("operation", "outcome", "node", "run", "tool", "since", "until")


LISTED = ("recent_actions", "diagnostics")
"""Fields of the packet that are lists: each item comes from another event."""
Source = Callable[[PromptItem, int], int | None]


class Pages:
    """Renders the pages of one project."""

    def __init__(self, project: Project) -> None:
        self.viewing = Viewing(project)
        self._project = project
        self._templates = environment()

    def render(self, template: str, **values: Any) -> str:
        """One template with the values that every page has."""
        return self._templates.get_template(template).render(project=self._project.root.name or "project", **values)

    # The list

    def runs(self, query: Mapping[str, str], *, rows_only: bool = False) -> str:
        """All agents, newest first, filtered and by pages."""
        values = self._listed(query)
        return self.render("rows.html" if rows_only else "runs.html", **values)

    def version(self, query: Mapping[str, str]) -> str:
        """What changes when the list does."""
        return hashlib.sha256(self.runs(query, rows_only=True).encode()).hexdigest()[:16]

    def _listed(self, query: Mapping[str, str]) -> dict[str, Any]:
        given: dict[str, Any] = {name: query[name].strip() for name in FILTERS if query.get(name, "").strip()}
        page = int(query["page"]) if query.get("page", "").isdigit() and len(query["page"]) < 7 else 0
        library = self._project.library
        rows, total = library.newest_agents(Filter(**given), limit=(page + 1) * PAGE)
        shown = rows[: max(len(rows) - page * PAGE, 0)][-PAGE:]
        links = {name: "/?" + urlencode(given | {"page": str(page + by)}) for name, by in (("newer", -1), ("older", 1))}
        return {
            "rows": [self._row(info) for info in reversed(shown)],
            "total": total,
            "first": page * PAGE + 1,
            "last": page * PAGE + len(shown),
            "links": links,
            "query": given,
            "live_query": urlencode(given | {"page": str(page)}),
            "notices": library.notices,
        }

    def _row(self, info: StreamInfo) -> dict[str, Any]:
        path = self._project.state_dir / f"{info.stream_id}.jsonl"
        running = not info.sealed and not info.problem and is_locked(path)
        status = info.verdict or info.outcome or ("running" if running else "unsealed")
        return {
            "info": info,
            "id": info.stream_id.partition("/")[2],
            "status": "damaged" if info.problem else status,
            "tone": "bad" if info.problem else tone_of(status, info.outcome or status),
            "is_live": running,
            "model": decider(info.model, info.tokens, info.operation) if info.sealed else info.model,
        }

    def search(self, text: str) -> str:
        """Events of all streams that contain the words."""
        hits, problem = [], ""
        if text.strip():
            try:
                hits = self._project.library.search(text, limit=100, clean=redact_patterns)
            except RemoraError as error:
                problem = error.message
        return self.render("search.html", text=text, hits=hits, problem=problem)

    # One agent

    def agent(self, fragment: str, turn: int | None) -> str:
        """An agent on both tracks, at one turn."""
        outline = self.viewing.open(fragment)
        index = self.index_of(outline, turn)
        values = self.facts(outline)
        return self.render("agent.html", **values | self.turn_values(outline, index, values["head"]))

    def turn(self, fragment: str, turn: int | None) -> str:
        """One turn of an agent, without the page around it."""
        outline = self.viewing.open(fragment)
        index = self.index_of(outline, turn)
        return self.render("turn.html", **self.turn_values(outline, index, head(self.viewing, outline)))

    def turns(self, fragment: str, page: int) -> str:
        """All turns of an agent, one in a row: what the model saw of it, chose and got."""
        outline = self.viewing.open(fragment)
        first = min(page * TURNS, max(len(outline) - 1, 0))
        last = min(first + TURNS, len(outline))
        rows = [
            row for index in range(first, last) for row in summarize(self.viewing.turn(outline, index).events).turns
        ]
        return self.render("turns.html", **self.facts(outline), rows=rows, page=page, is_last=last >= len(outline))

    def time_line(self, fragment: str) -> str:
        """The time line of an agent, for a page that is already open."""
        return self.render("timeline.html", **self.facts(self.viewing.open(fragment)))

    def facts(self, outline: Outline, link: Callable[[int], str] | None = None) -> dict[str, Any]:
        """What every page of an agent needs. `link` gives the address of a turn."""
        found = head(self.viewing, outline)
        return {"head": found, "line": time_line(outline, link or (lambda turn: f"/a/{found.agent_id}?turn={turn}"))}

    @staticmethod
    def index_of(outline: Outline, turn: int | None) -> int:
        """The place of a turn; of the last one by default."""
        return outline.find(turn) if turn is not None else max(len(outline) - 1, 0)

    def turn_values(
        self, outline: Outline, index: int, found: Head | None = None, source: Source | None = None
    ) -> dict[str, Any]:
        """Both tracks of one turn. `source` gives the event behind an item of the prompt, where no server can."""
        found = found or head(self.viewing, outline)
        if not len(outline):
            nothing: dict[str, Any] = {
                "prompt": None,
                "cards": [],
                "more": 0,
                "span": (0, 0),
                "following": None,
                "by_rule": False,
            }
            return {"turn": 0, "head": found, **nothing}
        row, viewing = outline[index], self.viewing
        following = viewing.next_prompt(outline, index)
        events = viewing.turn(outline, index)
        cards = Cards(viewing, Shown(following.parts) if following else None)
        return {
            "turn": row.turn,
            "head": found,
            "prompt": self._prompt(outline, index, source),
            "cards": cards.make(events.events),
            "more": events.more,
            "span": (row.seq, events.events[-1].seq if events.events else row.seq),
            "following": following.request.turn if following else None,
            "by_rule": any(isinstance(event, ModelResponseEvent) and event.rule for event in events.events),
        }

    def _prompt(self, outline: Outline, index: int, source: Source | None) -> dict[str, Any] | None:
        prompt = self.viewing.prompt(outline, index)
        if prompt is None:
            return None
        parts = prompt.parts
        if source is not None:
            parts = tuple(_with_sources(part, source, prompt.request.seq) for part in parts)
        total, limit = prompt.request.tokens.get("total", 0), prompt.request.limit
        return {
            "request": prompt.request,
            "parts": [(part, tint(part.name)) for part in parts if part.name != "left_out"],
            "total": total,
            "limit": limit,
            "bar": budget_bar(prompt.parts, total, limit),
            "left_out": prompt.request.left_out,
            "exact": bool(prompt.request.counter.get("exact")),
            "is_recorded": prompt.is_recorded,
        }

    def output(self, fragment: str, seq: int, part: int, at: int, words: str) -> str:
        """A window of an output; with `words`, the next one that contains them."""
        outline = self.viewing.open(fragment)
        event = self.viewing.event(outline, seq)
        found = self.viewing.find(event, part, words, at) if words else at
        following = self.viewing.next_prompt(outline, outline.holding(seq))
        cards = Cards(self.viewing, Shown(following.parts) if following else None)
        output = cards.output(event, part, max((found or 0) - 200 * bool(words), 0), 64 * 1024)
        missing = bool(words) and found is None
        return self.render("output.html", output=output, words=words, missing=missing, found=found, agent=fragment)

    def seen(self, fragment: str, seq: int, line: str) -> str:
        """Whether and where the model saw a line of an output."""
        outline = self.viewing.open(fragment)
        found = self.viewing.seen(outline, seq, line[:4000])
        return self.render("seen.html", found=found, line=line[:4000], seq=seq, agent=outline.path.stem)

    def explain(self, fragment: str, key: str, before: int, item: str) -> str:
        """Why a prompt had a value: the events that set it, and the raw result behind the last one."""
        outline = self.viewing.open(fragment)
        found = self.viewing.explain(outline, key, before)
        wanted = [source for source in found.sources if str(source.value)[:100] in item] if key in LISTED else []
        sources = wanted or list(found.sources)
        output = None
        if sources:
            event = self.viewing.event(outline, sources[-1].seq)
            cards = Cards(self.viewing, Shown(self._parts_at(outline, before)))
            output = next(iter(cards._outputs(event)), None)
        return self.render(
            "explain.html", found=found, sources=sources[::-1][:50], output=output, key=key, agent=outline.path.stem
        )

    def _parts_at(self, outline: Outline, seq: int) -> Any:
        event = self.viewing.event(outline, seq)
        if isinstance(event, ModelRequestEvent):
            return self.viewing.parts(event).parts
        built = self.viewing.prompt(outline, outline.holding(seq))
        return built.parts if built else ()

    def search_agent(self, fragment: str, text: str) -> str:
        """Where an agent's stream contains the words."""
        outline = self.viewing.open(fragment)
        hits = search_agent(self.viewing, outline, text) if text.strip() else []
        return self.render("found.html", **self.facts(outline), text=text, hits=hits)

    def files(self, fragment: str, turn: int | None) -> str:
        """The files as an agent had changed them after a turn."""
        outline = self.viewing.open(fragment)
        index = self.index_of(outline, turn)
        changes = self.viewing.files(outline, index)

        async def diffs() -> list[str]:
            return [await self.viewing.diff(change) for change in changes[:100]]

        shown = list(zip(changes, asyncio.run(diffs()), strict=False))
        at = outline[index].turn if len(outline) else 0
        return self.render("files.html", **self.facts(outline), files=shown, turn=at, more=len(changes) - len(shown))

    def changes(self, fragment: str) -> str:
        """The open changes of an agent or a run; by default of the latest run that has some."""
        try:
            found = asyncio.run(self._project.review.diff(fragment or None))
        except TraceNotFound:
            found = []
        return self.render("changes.html", found=found[:MAX_DIFFS], more=len(found) - MAX_DIFFS, fragment=fragment)

    def ladder(self, fragment: str) -> str:
        """Who decided what, and what each tool took."""
        outline = self.viewing.open(fragment)
        events = read_picked(outline.path, ("agent_start", "model_request", "model_response", "escalation", "notice"))
        return self.render("ladder.html", **self.facts(outline), **ladder(events))

    def compare(self, one: str, other: str) -> str:
        """Two agents turn by turn, or two runs agent by agent."""
        if not (one and other):
            rows, _ = self._project.library.newest_agents(limit=PAGE)
            return self.render("compare_form.html", one=one, other=other, rows=rows[::-1])
        found = self._project.streams.compare(one, other)
        if isinstance(found, RunComparison):
            return self.render("compare_runs.html", found=found, limit=MAX_PAIRS, words=words)
        return self.render("compare.html", found=found, pairs=self._pairs(found), words=words)

    @staticmethod
    def _pairs(found: AgentComparison) -> list[Any]:
        """The turns to show: from shortly before both parted."""
        begin = next((at for at, pair in enumerate(found.turns) if pair.differs), 0)
        return list(found.turns[max(begin - 3, 0) :][:MAX_PAIRS])

    def report(self, fragment: str) -> str:
        """The report on an agent or a run."""
        found = asyncio.run(self._project.streams.report([fragment] if fragment else (), losses=True))
        return self.render("report.html", report=found, words=words, fragment=fragment, short=short_id)

    def error(self, error: RemoraError) -> str:
        """What happened, and what to do."""
        return self.render("error.html", error=error)


def _with_sources(part: PromptPart, source: Source, before: int) -> PromptPart:
    return replace(part, items=tuple(replace(item, seq=source(item, before)) for item in part.items))
