"""Reports on agents, from the streams of a project."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from remora.analysis import (
    REPORTED,
    AgentComparison,
    AgentReport,
    FileReport,
    Price,
    Report,
    RunComparison,
    build_report,
    compare,
    compare_runs,
    report_agent,
    view_turns,
)
from remora.app._decisions import DECIDING, Decisions, decisions
from remora.app._project import Project
from remora.app._review import Contents
from remora.context.patterns import redact_values
from remora.errors import ConfigError, TraceError, TraceNotFound
from remora.events import (
    AgentScheduledEvent,
    BlobRef,
    FileChange,
    ModelRequestEvent,
    ToolResultEvent,
    canonical,
    short_id,
    unpack,
)
from remora.ports import blob_limit
from remora.trace import Filter, Intact, pick_events, read_events, read_picked

MAX_DIFFS = 200
"""Agents whose diffs are part of a report."""
Progress = Callable[[int, int], None]


class Reports:
    """Reports on the agents of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._systems: dict[str, str] = {}

    async def report(
        self,
        fragments: Sequence[str] = (),
        wanted: Filter | None = None,
        *,
        losses: bool = True,
        progress: Progress,
    ) -> Report:
        """Report on these agents and runs; by default on the latest run, with a filter on all matching agents.

        Text that looks like a secret is redacted. Raises `TraceNotFound` if there is no such agent.
        """
        title, paths = self.choose(fragments, wanted)
        decided = decisions(self._project.library.picked_events(DECIDING))
        agents = []
        for place, path in enumerate(paths):
            progress(place, len(paths))
            await asyncio.sleep(0)  # nothing else here waits, and Ctrl-C needs its turn
            agents.append(_with_decisions(self._agent(path, losses=losses), decided))
        agents = await self._with_changes(agents)
        settings = self._project.config.report
        prices = {name: Price(price.input, price.output) for name, price in settings.prices.items()}
        cleaned = [redact_values(agent) for agent in agents]
        return build_report(title, cleaned, prices, currency=settings.currency, searched_losses=losses)

    def compare(self, one: str, other: str) -> AgentComparison | RunComparison:
        """Compare two agents turn by turn, or two runs agent by agent. Raises `ConfigError` for one of each."""
        left, right = (self._project.library.find(fragment) for fragment in (one, other))
        kinds = {path.parent.name for path in (left, right)}
        if len(kinds) > 1:
            agent, run = (one, other) if right.parent.name == "runs" else (other, one)
            raise ConfigError(f"`{agent}` is an agent and `{run}` a run: expected two agents or two runs")
        if kinds == {"runs"}:
            agents = [[self._agent(path, losses=False) for path in self.agents_of(run)] for run in (left, right)]
            return redact_values(compare_runs(left.stem, agents[0], right.stem, agents[1]))
        reports = [self._agent(path, losses=False) for path in (left, right)]
        turns = [view_turns(Intact(read_events(path))) for path in (left, right)]
        return redact_values(compare(reports[0], turns[0], reports[1], turns[1]))

    def choose(self, fragments: Sequence[str], wanted: Filter | None) -> tuple[str, list[Path]]:
        """A title, and the streams of these agents and runs; by default of the latest run."""
        library = self._project.library
        if fragments:
            if wanted is not None and wanted != Filter():
                raise ConfigError("Filters and ids cannot be combined: expected one of them")
            found = [library.find(fragment) for fragment in fragments]
            paths = [path for each in found for path in self.agents_of(each)]
            names = ", ".join(short_id(path.stem) for path in found[:5]) + ("…" if len(found) > 5 else "")
            kind = "Run" if any(path.parent.name == "runs" for path in found) else "Agent"
            return f"{kind} {names}", list(dict.fromkeys(paths))
        if wanted is None or wanted == Filter():
            latest = library.latest_run()
            if latest is not None:
                return f"Run {short_id(latest.stem)}", self.agents_of(latest)
        rows = library.agents(wanted or Filter())
        if rows:
            return f"All agents{_words(wanted)}", library.files([row.stream_id for row in rows])
        if wanted is None or wanted == Filter():
            raise TraceNotFound("There is no agent to report on", hint="`remora analyze` runs agents")
        raise TraceNotFound(f"There is no agent to report on{_words(wanted)}", hint="`remora trace ls` lists agents")

    def agents_of(self, path: Path) -> list[Path]:
        """The streams of a run's agents in the order of the run; an agent's stream itself.

        Raises `TraceError` for a recorded name that points outside the folder.
        """
        if path.parent.name != "runs":
            return [path]
        agents = dict.fromkeys(event.agent_id for event in pick_events(path, ("agent_scheduled",)))
        return self._project.library.files([f"traces/{agent_id}" for agent_id in agents])

    def _agent(self, path: Path, *, losses: bool) -> AgentReport:
        events = Intact(read_picked(path, REPORTED, quick=True))
        found = report_agent(events, system=self._system, raw_text=self._raw_text if losses else None)
        damage = events.damage.message if events.damage else ""
        return replace(found, agent_id=found.agent_id or path.stem, damage=damage)

    def _system(self, request: ModelRequestEvent) -> str:
        """The constant first message of a prompt, read once for each text."""
        reference = next((message.get("content_ref") for message in request.messages[:1]), None)
        if not isinstance(reference, dict) or not isinstance(reference.get("blob"), str):
            return ""
        digest = reference["blob"]
        if digest not in self._systems:
            self._systems[digest] = self._read_text(digest, reference)
        return self._systems[digest]

    def _read_text(self, digest: str, reference: dict[str, object]) -> str:
        try:
            limit = blob_limit(BlobRef.model_validate(reference))
            return self._project.blobs.read(digest, limit=limit).decode(errors="replace")
        except (TraceError, ValueError):
            return ""

    def _raw_text(self, event: ToolResultEvent) -> str:
        try:
            value = event.raw
            if event.raw_ref is not None:
                data = self._project.blobs.read(event.raw_ref.blob, limit=blob_limit(event.raw_ref))
                value = unpack(data, event.raw_ref.encoding)
            return value if isinstance(value, str) else canonical(value).decode()
        except (TraceError, TypeError, ValueError):
            return ""  # pruned or unreadable: no word can be found in it

    async def _with_changes(self, agents: Sequence[AgentReport]) -> list[AgentReport]:
        """The agents with their places in the project, and the first of them with their diffs."""
        from remora.app._places import Places

        began, contents, shown = self._began({agent.run_id for agent in agents}), Contents(self._project.blobs), []
        places = Places(self._project.root, self._project.blobs)
        for at, agent in enumerate(agents):
            agent = await places.locate(agent, began.get((agent.agent_id, str(agent.node.get("file")))))
            if at < MAX_DIFFS:
                files = [replace(file, diff=await self._diff(contents, file.change)) for file in agent.files]
                agent = replace(agent, files=tuple(files))
            shown.append(agent)
        return shown

    def _began(self, runs: Collection[str]) -> dict[tuple[str, str], FileChange]:
        """By agent and path, the changes of earlier agents that an agent of these runs began with."""
        paths = [path for path in self._project.library.runs() if path.stem in runs]
        events = (event for path in paths for event in pick_events(path, ("agent_scheduled",)))
        scheduled = {event.agent_id: event for event in events if isinstance(event, AgentScheduledEvent)}
        return {(agent_id, change.path): change for agent_id, event in scheduled.items() for change in event.over}

    async def _diff(self, contents: Contents, change: FileChange) -> str:
        from remora.workspaces import unified

        try:
            return self._project.secrets.clean(unified([await contents.change(change)]))
        except TraceError as error:
            return f"[cannot be shown: {error.message}]"


def _with_decisions(agent: AgentReport, decided: Decisions) -> AgentReport:
    """The agent with what the user decided about each file."""
    if not agent.files:
        return agent
    undecided = {change.path for change in decided.open(agent.agent_id, [file.change for file in agent.files])}
    return replace(agent, files=tuple(_decided(agent.agent_id, file, undecided, decided) for file in agent.files))


def _decided(agent_id: str, file: FileReport, undecided: Collection[str], decided: Decisions) -> FileReport:
    if file.path in undecided:
        return file
    accepted = decided.is_accepted(agent_id, file.path)
    return replace(file, decision="accepted" if accepted else "rejected")


def _words(wanted: Filter | None) -> str:
    """What a filter selects, for a title."""
    if wanted is None:
        return ""
    named = {
        "of operation": wanted.operation,
        "on": wanted.node,
        "with outcome": wanted.outcome,
        "since": wanted.since,
        "until": wanted.until,
    }
    return "".join(f" {word} {value}" for word, value in named.items() if value)
