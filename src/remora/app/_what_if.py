"""Compares recorded runs with what other rules make of them: no tool runs, and no model is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from remora.analysis import Comparison, WhatIf
from remora.app._project import Project, counter_of
from remora.app._unrecorded import UnrecordedPrompts
from remora.context.summarizers import Imported, OfFolder, Summarizer, get_default_summarizers, is_built_in
from remora.errors import ConfigError, RemoraError, TraceNotFound
from remora.events import AgentStartEvent, Event, ModelRequestEvent
from remora.files import read_plain
from remora.ports import TokenCounter
from remora.snapshot import Snapshot
from remora.subagent import SubagentDefinition
from remora.trace import FileBlobs, Filter, MemoryTrace, StoredBlobs, StreamInfo, read_events
from remora.twotrack import Identity, PromptSettings, Rules, Wiring, lacks_prompts, rederive

MAX_SOURCE = 1024 * 1024
"""Bytes of a file with summarizers."""
_EVERYTHING = Filter()


@dataclass(frozen=True)
class OtherRules:
    """The rules to apply to recorded runs. The defaults are today's rules with the recorded style and limit."""

    rules: Rules = field(default_factory=Rules)
    summarizers: Mapping[str, str] = field(default_factory=dict)
    """By tool: a name, an import path `package.module:Name`, or a file `path/to/file.py:Name`."""
    tokenizer: Path | None = None
    """A tokenizer's file to count with. Without it, the recorded tokenizer if it is at hand, else an estimate."""
    diffs: bool = False
    """Also compare the text of every changed prompt."""


@dataclass(frozen=True)
class _Source:
    """A stream's file and its blobs."""

    name: str
    path: Path
    blobs: StoredBlobs

    def events(self) -> Iterable[Event]:
        return read_events(self.path, torn_ok=True)


class WhatIfRuns:
    """Applies other rules to recorded runs, one after the other."""

    def __init__(self, project: Project, other: OtherRules) -> None:
        from remora.sandbox import SummaryChild

        self._project = project
        self._other = other
        self._guard = SummaryChild()
        self._named = {tool: self._summarizer(tool, name) for tool, name in other.summarizers.items()}
        self._counter = counter_of(other.tokenizer) if other.tokenizer is not None else None
        self.notices: list[str] = []

    async def compare(
        self,
        names: Sequence[str] = (),
        wanted: Filter = _EVERYTHING,
        progress: Callable[[int, int], None] | None = None,
    ) -> AsyncGenerator[WhatIf]:
        """Yield the figures of every run. One that cannot be compared says why in `problem`.

        `names` are runs, agents or files of streams; without them, all agents that `wanted` lets through.
        """
        sources = self._sources(names, wanted)
        try:
            for done, source in enumerate(sources):
                if progress:
                    progress(done, len(sources))
                yield await self._compare(source)
        finally:
            await self._guard.close()

    def _sources(self, names: Sequence[str], wanted: Filter) -> list[_Source]:
        if not names:
            return [self._of_project(info.stream_id) for info in self._agents(wanted)]
        found = [source for name in names for source in self._named_sources(name)]
        return list({source.path: source for source in found}.values())

    def _named_sources(self, name: str) -> list[_Source]:
        path = Path(name)
        if path.suffix == ".jsonl" or path.is_file():
            if not path.is_file():
                raise TraceNotFound(f"`{path}` does not exist: expected the file of a stream")
            return [_Source(path.name, path, FileBlobs(path.resolve().parent.parent))]
        library = self._project.library
        if not library.is_run(name):
            return [self._of_project(f"traces/{library.find(name).stem}")]
        return [self._of_project(info.stream_id) for info in self._agents(Filter(run=name))]

    def _agents(self, wanted: Filter) -> list[StreamInfo]:
        library = self._project.library
        found = library.agents(wanted)
        self.notices += library.notices
        return found

    def _of_project(self, stream_id: str) -> _Source:
        name = stream_id.partition("/")[2]
        return _Source(name, self._project.library.find(name), self._project.blobs)

    async def _compare(self, source: _Source) -> WhatIf:
        try:
            start, asked = _opening(source.events())
            counter = self._counter or self._project.streams.recorded_counter(asked)
            comparison = Comparison(counter, diffs=self._other.diffs)
            wiring = self._wiring(start, source, counter)
            events = UnrecordedPrompts(self._project, counter).of(source.events(), source.blobs)
            async with aclosing(rederive(events, wiring, self._rules(start))) as steps:
                async for step in steps:
                    comparison.take(step.recorded, step.event, step.text, step.problem)
            return comparison.result()
        except ConfigError:
            raise
        except RemoraError as error:
            return WhatIf(agent_id=source.name, problem=error.message)

    def _rules(self, start: AgentStartEvent) -> Rules:
        """The rules to compare with. Packets of a log that was imported without them are an account by default."""
        rules = self._other.rules
        return replace(rules, style=rules.style or "account") if lacks_prompts(start) else rules

    def _wiring(self, start: AgentStartEvent, source: _Source, counter: TokenCounter) -> Wiring:
        summarizers, definition = self._today(start.operation)
        clock = self._project.clock
        return Wiring(
            identity=Identity(start.agent_id),
            goal=start.goal,
            prompts=PromptSettings(0),
            writer=MemoryTrace(clock),
            blobs=source.blobs,
            counter=counter,
            clock=clock,
            summarizers={**summarizers, **self._named},
            guard=self._guard,
            extensions=definition.extensions if definition else {},
            rules=definition.candidate_rules if definition else (),
        )

    def _today(self, operation: str) -> tuple[Mapping[str, Summarizer], SubagentDefinition | None]:
        """The summarizers and the definition of an agent as they are now; the defaults for other programs' runs."""
        agents = self._project.agents
        if operation not in agents.sources():
            return get_default_summarizers(), None
        agent = agents.load([operation])[operation]
        return agents.summarizers_of(agent.definition, agent.files), agent.definition

    def _summarizer(self, tool: str, name: str) -> Summarizer:
        module, _, attribute = name.partition(":")
        if module.endswith(".py"):
            path = Path(module)
            found: Summarizer = OfFolder(f"{path.name}:{attribute}", _snapshot(path))
        elif attribute:
            found = Imported(name)  # the person who types the command names it
        else:
            found = self._project.agents.summarizers.get(name)
        if not is_built_in(found):
            self._guard.check(tool, found)
        return found


def _opening(events: Iterable[Event]) -> tuple[AgentStartEvent, ModelRequestEvent | None]:
    """The start of a run and its first prompt. Raises `TraceNotFound` if the stream has no start."""
    start: AgentStartEvent | None = None
    for event in events:
        if isinstance(event, AgentStartEvent):
            start = event
        if isinstance(event, ModelRequestEvent):
            return start or _no_start(), event
    return start or _no_start(), None


def _no_start() -> AgentStartEvent:
    raise TraceNotFound("The stream has no `agent_start`: expected the stream of an agent")


def _snapshot(path: Path) -> Snapshot:
    return Snapshot(path.resolve().parent, {path.name: read_plain(path, MAX_SOURCE, links=True)})
