"""Wires the parts together: the only file that names concrete ones. Every command of the CLI is one method here.

Parts are imported where they are first needed, so that those who only read streams need no more than the base install.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from remora.analysis import (
    Chat,
    ChatProblem,
    Explanation,
    StreamSummary,
    TokenReport,
    Took,
    chat_tokens,
    explain,
    read_chats,
    summarize,
    token_report,
)
from remora.config import CONFIG_FILE, Config, parse_config
from remora.context.budget import reserved
from remora.context.contracts import ToolSpec
from remora.context.recall import RECALL
from remora.context.render import Calling, fixed_tokens, system_text
from remora.context.secrets import MIN_SECRET, Secrets
from remora.context.summarizers import FALLBACK, Summarizer, SummarizerRegistry, get_default_summarizers, is_built_in
from remora.errors import ConfigError, TraceError, TraceNotFound, WorkspaceConflict
from remora.events import (
    AgentEndEvent,
    AgentScheduledEvent,
    BlobRef,
    Event,
    FileChange,
    ModelRequestEvent,
    ToolResultEvent,
    WorkspaceAcceptedEvent,
    canonical,
    new_id,
    readable,
    unpack,
)
from remora.orchestrator import Coordinator, Plan, plan_jobs
from remora.ports import AgentResult, Clock, Decision, Job, Policy, SummaryGuard, TokenCounter
from remora.runner import Runner
from remora.subagent import SUBMIT_RESULT, SubagentDefinition
from remora.trace import FileBlobs, FileTrace, Library, StreamEmitter, read_events
from remora.twotrack import Identity, TwoTrack

if TYPE_CHECKING:
    from remora.scripts import Agent, ScriptPool
    from remora.workspaces import Change

STATE_DIR = ".agentfs"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
PolicyName = Literal["scripted", "first-candidate", "random"]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class StillClock:
    """Tells the time of another clock, but no durations: what is imported took its time elsewhere."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Imported:
    """A conversation that is now a stream."""

    agent_id: str
    source: str
    """File name and line, or file name and index."""
    goal: str
    turns: int
    calls: int
    limit: int
    """Tokens that its prompts were held to."""


@dataclass
class Imports:
    """What became of some chat logs."""

    streams: list[Imported] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What could not be read, a sentence each, with file and line."""


@dataclass(frozen=True)
class AgentDiff:
    """What an agent would change in the project."""

    summary: StreamSummary
    changes: tuple[Change, ...]
    text: str
    """A unified diff, for showing: without secrets."""


@dataclass(frozen=True)
class Accepted:
    """What became of one agent's changes."""

    agent_id: str
    node_id: str
    files: tuple[FileChange, ...] = ()
    conflict: str = ""


class App:
    """A project, opened with its settings."""

    def __init__(
        self,
        root: Path,
        state_dir: Path,
        config: Config,
        *,
        clock: Clock | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self.secrets = secrets or Secrets()
        self.root = root
        self.state_dir = state_dir
        self.config = config
        self.clock = clock or SystemClock()
        self.summarizers = SummarizerRegistry(_installed_summarizers)
        """By the names that agent definitions use."""

    # Running

    def plan(self, paths: Sequence[Path], operations: Sequence[str], policy: PolicyName) -> Plan:
        """What a run over `paths` would do. Raises `ConfigError` before anything has run."""
        from remora.discovery import TreeSitterDiscovery

        agents = self._agents(operations)
        discovery = TreeSitterDiscovery(self.root)
        nodes = discovery.find(paths)
        run_id = new_id(self.clock.now())
        definitions = {name: agent.definition for name, agent in agents.items()}
        return Plan(
            run_id=run_id,
            root=str(self.root),
            paths=tuple(map(str, paths)),
            operations=tuple(operations),
            policy=policy,
            limit=self.config.runner.memory.packet_size_limit,
            jobs=plan_jobs(run_id, nodes, definitions, self.clock),
            problems=tuple(discovery.problems),
        )

    async def run(self, plan: Plan) -> AsyncIterator[AgentResult]:
        """Run the plan's agents and give each result as it is recorded."""
        from remora.engines import LocalEngine
        from remora.sandbox import SummaryChild
        from remora.scripts import ScriptPool

        agents = self._agents(plan.operations)
        async with ScriptPool() as pool, SummaryChild() as guard, self._writer() as writer:

            async def execute(job: Job) -> AgentResult:
                return await self._runner(job, agents[job.operation], plan.policy, writer, pool, guard).run()

            engine = LocalEngine(execute, at_once=self.config.runner.max_concurrent)
            async for result in Coordinator(writer, engine).run(plan):
                yield result

    def _runner(
        self, job: Job, agent: Agent, policy: str, writer: FileTrace, pool: ScriptPool, guard: SummaryGuard
    ) -> Runner:
        from remora.inference import EstimatedCounter
        from remora.sandbox import LocalSpawner
        from remora.scripts import ScriptTools
        from remora.workspaces import OverlayWorkspace

        definition, node = agent.definition, job.node
        workspace = OverlayWorkspace(self.root, self.state_dir / "workspaces" / job.agent_id)
        tools = ScriptTools(
            definition,
            agent.scripts,
            node=node,
            agent_id=job.agent_id,
            workspace=workspace,
            spawner=LocalSpawner(),
            root=self.root,
            pool=pool,
        )
        track = TwoTrack(
            Identity(job.agent_id, job.run_id, job.operation, node.node_id),
            goal=definition.goal.format(node=node.node_id, file=node.file_path.as_posix()),
            tools=(*tools.specs, *([RECALL] if definition.recall else []), SUBMIT_RESULT),
            system_prompt=definition.system_prompt,
            limit=self.config.runner.memory.packet_size_limit,
            writer=writer,
            blobs=self._blobs(),
            counter=EstimatedCounter(),
            clock=self.clock,
            summarizers=self._summarizers(definition),
            secrets=self.secrets,
            guard=guard,
            fallback=FALLBACK,
            extensions=definition.extensions,
            style=definition.rendering,
        )
        return Runner(
            track,
            definition,
            node,
            policy=_policy(policy, definition),
            tools=tools,
            workspace=workspace,
            max_turns=min(definition.max_turns, self.config.runner.max_turns or definition.max_turns),
        )

    def _agents(self, operations: Sequence[str]) -> dict[str, Agent]:
        from remora.scripts import load_agent

        agents = {name: load_agent(bundled_agents(), name) for name in operations}
        for agent in agents.values():
            self._check_summarizers(agent.definition)
        return agents

    def _summarizers(self, definition: SubagentDefinition) -> dict[str, Summarizer]:
        return self.summarizers.for_agent(definition.summarizers, self.config.runner.memory.summarizer_mode)

    def _check_summarizers(self, definition: SubagentDefinition) -> None:
        """Raises `ConfigError` for a summarizer that is not known, or that the guard could never run."""
        from remora.sandbox import SummaryChild

        for tool, summarizer in self._summarizers(definition).items():
            if not is_built_in(summarizer):
                SummaryChild().check(tool, summarizer)

    # Reading

    @property
    def library(self) -> Library:
        """All streams of the project."""
        return Library(self.state_dir)

    def stream(self, fragment: str) -> StreamSummary:
        """One agent's run on both tracks, turn by turn."""
        return summarize(self.library.events(fragment))

    async def explain(self, key: str, fragment: str, at: int | None = None) -> tuple[Explanation, str]:
        """Why a packet held what it held, and the raw result that it came from."""
        found = explain(self.library.events(fragment), key, at)
        if not found.sources:
            return found, ""
        why = next(event for event in self.library.events(fragment) if event.seq == found.sources[-1].seq)
        return found, readable(await self._raw(why)) if isinstance(why, ToolResultEvent) else ""

    async def chat_history(self, fragment: str) -> dict[int, int]:
        """By turn, the tokens that chat history would have sent where this stream sent a packet."""
        events, system, raws = await self._sent(fragment)
        return chat_tokens(events, system, lambda e: raws[e.seq], counter_of(None))

    async def tokens(self, fragment: str, *, tokenizer: Path | None = None) -> TokenReport:
        """What each turn sent beside what chat history would have sent, both counted by the same tokenizer."""
        counter = counter_of(tokenizer)
        events, system, raws = await self._sent(fragment)
        return token_report(events, system, lambda e: raws[e.seq], counter)

    async def _sent(self, fragment: str) -> tuple[list[Event], str, dict[int, str]]:
        events = list(self.library.events(fragment))
        raws = {event.seq: await self._raw_text(event) for event in events if isinstance(event, ToolResultEvent)}
        return events, await self._system_text(events), raws

    # Importing

    async def import_chats(self, files: Sequence[Path], *, tokenizer: Path | None = None) -> Imports:
        """Every conversation of the logs as a sealed stream. One that cannot be read is told and leaves no stream."""
        counter = counter_of(tokenizer)
        done = Imports()
        async with self._writer() as writer:
            for chat in (chat for file in files for chat in _chats(file)):
                if isinstance(chat, ChatProblem):
                    done.problems.append(str(chat))
                else:
                    done.streams.append(await self._import(chat, writer, counter))
        return done

    async def _import(self, chat: Chat, writer: FileTrace, counter: TokenCounter) -> Imported:
        clock = StillClock(self.clock)
        identity = Identity(new_id(clock.now()), operation="import")
        track = TwoTrack(
            identity,
            goal=chat.goal,
            tools=chat.tools,
            system_prompt=chat.system,
            limit=self._import_limit(chat, counter),
            writer=writer,
            blobs=self._blobs(),
            counter=counter,
            clock=clock,
            summarizers=get_default_summarizers(),
            secrets=self.secrets,
            calling="native",
            fallback=FALLBACK,
        )
        try:
            await _play(track, chat)
            await writer.close(identity.stream_id)
        except TraceError as error:
            hint = "What was imported before stays; this one's stream is not sealed"
            raise TraceError(f"The import stopped at {chat.source}: {error.message}", hint=hint) from error
        calls = sum(len(step.calls) for step in chat.steps if isinstance(step, Took))
        return Imported(identity.agent_id, chat.source, track.goal, track.packet.turn, calls, track.limit)

    def _import_limit(self, chat: Chat, counter: TokenCounter) -> int:
        """The project's limit; where the log's own system text and tools leave no room in it, so much beside them."""
        limit = self.config.runner.memory.packet_size_limit
        system = self.secrets.clean(chat.system)
        fixed = fixed_tokens(system_text(system, chat.tools, "native"), counter, chat.tools)
        least = reserved(counter.count)
        return limit if fixed + least <= limit else fixed + max(limit, least)

    # Reviewing

    async def diff(self, fragment: str | None = None) -> list[AgentDiff]:
        """What one agent, or every agent of the latest run, would change and nobody has accepted yet."""
        from remora.workspaces import unified

        found = []
        for summary in self._candidates(fragment):
            changes = tuple([await self._change(change) for change in summary.files])
            found.append(AgentDiff(summary, changes, self.secrets.clean(unified(changes))))
        return found

    async def accept(self, fragment: str | None = None) -> list[Accepted]:
        """Write the agents' changes into the project, each recorded in its run. A conflict changes nothing."""
        from remora.workspaces import accept

        done = []
        async with self._writer() as writer:
            for diff in await self.diff(fragment):
                summary = diff.summary
                try:
                    written = accept(self.root, diff.changes)
                except WorkspaceConflict as conflict:
                    done.append(Accepted(summary.agent_id, summary.node_id, conflict=conflict.message))
                    continue
                files = tuple([await self._written(change) for change in written])
                event = WorkspaceAcceptedEvent(
                    run_id=summary.run_id,
                    agent_id=summary.agent_id,
                    operation=summary.operation,
                    node_id=summary.node_id,
                    files=files,
                )
                await writer.append(f"runs/{summary.run_id}", [event])
                done.append(Accepted(summary.agent_id, summary.node_id, files))
        return done

    def _candidates(self, fragment: str | None) -> list[StreamSummary]:
        if fragment is None:
            runs = self.library.runs()
            if not runs:
                raise TraceNotFound(f"No run in {self.state_dir}", hint="Run `remora analyze PATH -o lint` first")
            ids = [event.agent_id for event in read_events(runs[-1]) if isinstance(event, AgentScheduledEvent)]
            paths = [self.state_dir / "traces" / f"{agent_id}.jsonl" for agent_id in ids]
        else:
            paths = [self.library.find(fragment)]
        accepted = {e.agent_id for e in self.library.run_events() if isinstance(e, WorkspaceAcceptedEvent)}
        summaries = [summarize(read_events(path)) for path in paths if path.exists()]
        return [summary for summary in summaries if summary.files and summary.agent_id not in accepted]

    async def _change(self, change: FileChange) -> Change:
        from remora.workspaces import Change

        blobs = self._blobs()
        return Change(
            path=change.path,
            base=None if change.before is None else await blobs.get(change.before),
            after=None if change.after is None else await blobs.get(change.after),
        )

    async def _written(self, change: Change) -> FileChange:
        """What an accept wrote, merged content included: what an undo will need."""
        blobs = self._blobs()
        return FileChange(
            path=change.path,
            mode=change.mode,
            before=None if change.base is None else await blobs.put(change.base),
            after=None if change.after is None else await blobs.put(change.after),
        )

    # Parts

    def _writer(self) -> FileTrace:
        return FileTrace(self.state_dir, clock=self.clock, sync=self.config.event_stream.sync)

    def _blobs(self) -> FileBlobs:
        return FileBlobs(self.state_dir)

    async def _raw(self, event: ToolResultEvent) -> Any:
        if event.raw_ref is None:
            return event.raw
        return unpack(await self._blobs().get(event.raw_ref.blob), event.raw_ref.encoding)

    async def _raw_text(self, event: ToolResultEvent) -> str:
        value = await self._raw(event)
        return value if isinstance(value, str) else canonical(value).decode()

    async def _system_text(self, events: Sequence[Event]) -> str:
        for event in events:
            if isinstance(event, ModelRequestEvent):
                first = next((message for message in event.messages if message.get("role") == "system"), {})
                if "content_ref" not in first:
                    return str(first.get("content", ""))
                reference = BlobRef.model_validate(first["content_ref"])
                return (await self._blobs().get(reference.blob)).decode()
        return ""


class LocalTwoTrack(TwoTrack):
    """Both tracks for a loop of your own, on this machine's disk: `remora.TwoTrack`.

    `tools` are `ToolSpec`s or dicts in OpenAI's shape. With `calling="native"` they are sent beside the messages, by
    `prompt.openai_tools()`; with `"text"` the prompt lists them and asks for a call as JSON.

    `counter` counts the tokens of every prompt: `remora.inference` has `GgufCounter` and `JsonCounter` for a
    tokenizer's file and `ServerCounter` for a server; without one they are estimated.
    """

    def __init__(
        self,
        goal: str,
        *,
        tools: Sequence[ToolSpec | Mapping[str, Any]] = (),
        budget: int = 1000,
        system_prompt: str = "",
        operation: str = "",
        node_id: str = "",
        state_dir: Path | str = STATE_DIR,
        summarizers: dict[str, Summarizer] | None = None,
        secrets: Mapping[str, str] | None = None,
        calling: Calling = "native",
        guard: SummaryGuard | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        from remora.sandbox import SummaryChild

        clock, folder = SystemClock(), Path(state_dir)
        identity = Identity(new_id(clock.now()), operation=operation, node_id=node_id)
        self.path = folder / f"{identity.stream_id}.jsonl"
        """Where the Long Track lies."""
        self._child = SummaryChild()
        super().__init__(
            identity,
            goal=goal,
            tools=tools,
            system_prompt=system_prompt,
            limit=budget,
            writer=FileTrace(folder, clock=clock),
            blobs=FileBlobs(folder),
            counter=counter or counter_of(None),
            clock=clock,
            summarizers=summarizers if summarizers is not None else get_default_summarizers(),
            secrets=Secrets(secrets),
            calling=calling,
            guard=guard or self._child,
            fallback=FALLBACK,
        )

    async def end(self, event: AgentEndEvent) -> str:
        """Seal the stream and give its head. No child process is left."""
        try:
            return await super().end(event)
        finally:
            await self._child.close()


class JsonlEventEmitter(StreamEmitter):
    """Emits events into a stream of this machine's disk: `remora.events.JsonlEventEmitter`."""

    def __init__(self, state_dir: Path | str = STATE_DIR, agent_id: str | None = None) -> None:
        clock = SystemClock()
        super().__init__(state_dir, agent_id or new_id(clock.now()), clock=clock)


def open_app(start: Path, *, state_dir: Path | None = None) -> App:
    """The project around `start`, with the settings of its `remora.yaml`."""
    root = project_root(start)
    file = root / CONFIG_FILE
    config = parse_config(file.read_text(encoding="utf-8"), file) if file.is_file() else Config()
    return App(root, state_dir or default_state_dir(root), config, secrets=environment_secrets(os.environ))


def environment_secrets(environment: Mapping[str, str]) -> Secrets:
    """The values in the environment whose names say that they are secret."""
    found = {name: value for name, value in environment.items() if _SECRET_NAME.search(name)}
    return Secrets({name: value for name, value in found.items() if len(value) >= MIN_SECRET})


def project_root(start: Path) -> Path:
    """The nearest folder with a `remora.yaml`, else with a `.git`, else `start` itself."""
    start = start.resolve()
    if not start.exists():
        raise ConfigError(f"`{start}` does not exist", hint="Name a file or a folder of your project")
    folder = start if start.is_dir() else start.parent
    for mark in (CONFIG_FILE, ".git"):
        for candidate in (folder, *folder.parents):
            if (candidate / mark).exists():
                return candidate
    return folder


def default_state_dir(root: Path) -> Path:
    """`.agentfs` in the project; for a project that cannot be written, a folder of the user's own."""
    inside = root / STATE_DIR
    if inside.is_dir() or os.access(root, os.W_OK):
        return inside
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return home / "remora" / hashlib.sha256(str(root).encode()).hexdigest()[:16]


def bundled_agents() -> Path:
    """Where the agents that ship with Remora lie: in the wheel, or beside the sources of a checkout."""
    package = Path(__file__).parent
    shipped = package / "agents"
    return shipped if shipped.is_dir() else package.parents[1] / "agents"


def _policy(name: str, definition: SubagentDefinition) -> Policy:
    from remora.inference import FirstCandidatePolicy, RandomPolicy, ScriptedPolicy

    if name == "scripted":
        return ScriptedPolicy(definition.script)
    return RandomPolicy() if name == "random" else FirstCandidatePolicy()


def _installed_summarizers() -> dict[str, str]:
    from remora.sandbox import installed_summarizers

    return installed_summarizers()


def counter_of(tokenizer: Path | None) -> TokenCounter:
    """The counter for a tokenizer's file; the estimate where there is none."""
    from remora.inference import EstimatedCounter, file_counter

    return file_counter(tokenizer) if tokenizer is not None else EstimatedCounter()


def _chats(file: Path) -> Iterator[Chat | ChatProblem]:
    try:
        data = file.read_bytes()
    except OSError as error:
        yield ChatProblem(f"{file}: cannot be read: {error.strerror or error}")
        return
    yield from read_chats(file.name, data)


async def _play(track: TwoTrack, chat: Chat) -> None:
    """Take every step of a conversation on both tracks, and seal the stream."""
    parent = {"relation": "import", "source": chat.source, "sha256": chat.sha256}
    await track.start(parent=parent, model={"name": chat.model} if chat.model else None)
    for step in chat.steps:
        if isinstance(step, Took):
            await _take_turn(track, step, chat.model)
        else:
            await track.user(step.text)
    await track.end(AgentEndEvent(reason="imported"))


async def _take_turn(track: TwoTrack, step: Took, model: str) -> None:
    await track.request()
    await track.response(Decision(calls=step.calls, text=step.text, model=model))
    for index, call in enumerate(step.calls):
        if index in step.results:
            await track.call(call, _giving(step.results[index]))
        else:
            await track.unanswered(call, "The log holds no result of this call")


def _giving(result: Any) -> Callable[..., Any]:
    return lambda **_: result


def sandbox_name() -> str:
    """The OS sandbox that project code would run in on this machine, or `none`."""
    from remora.sandbox import probe

    return probe().applies
