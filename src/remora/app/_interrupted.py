"""Going on with what was interrupted, and leaving out what has not changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from remora.analysis import fold_files
from remora.app._deciding import EMBEDDED, NO_MODEL
from remora.app._project import Project
from remora.errors import ConfigError, TraceNotFound
from remora.events import (
    AgentFinishedEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    Event,
    RunEndEvent,
    RunStartEvent,
    ToolResultEvent,
)
from remora.nodes import CodeNode, LineRange, NodeType
from remora.orchestrator import Plan
from remora.ports import AgentResult, Job
from remora.trace import check_stream_id, read_events

RECORDED = frozenset({"server.server", "server.model", "runner.memory.enabled", "runner.max_turns"})


class Interrupted:
    """Continues interrupted runs from their streams alone."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def settings_of(self, fragment: str | None = None) -> dict[str, Any]:
        """The settings that a run, or the latest one, was begun with. Raises `ConfigError` for a server elsewhere.

        A stream could come with a repository, which must never say where code is sent: only a server of this machine
        is taken from it.
        """
        begun = {name: value for name, value in self._begun(fragment)[0].settings.items() if name in RECORDED}
        server = begun.get("server.server", EMBEDDED)
        if server in (*NO_MODEL, EMBEDDED, *_local_servers()) or server == self._project.config.server.server:
            return begun
        raise ConfigError(
            f"The run was begun with the server `{server!s:.200}`, which is not yours by your own settings",
            hint="If you want to go on with it, name it again: `remora resume --server URL`",
        )

    def resume(self, fragment: str | None = None) -> tuple[Plan, AsyncIterator[AgentResult]]:
        """What is left of a run, or of the latest one, and the results of doing it."""
        start, events = self._begun(fragment)
        ended = {event.agent_id for event in events if isinstance(event, AgentFinishedEvent)}
        left = [e for e in events if isinstance(e, AgentScheduledEvent) and e.agent_id not in ended]
        stages = {event.agent_id: event.stage for event in events if isinstance(event, AgentScheduledEvent)}
        plan = Plan(
            run_id=start.run_id,
            root=start.root,
            paths=start.paths,
            operations=start.operations,
            policy=self._project.config.server.server,
            model=self._project.runs.model_name(),
            limit=self._project.runs.prompt_limit(),
            jobs=tuple(self._job(event, start) for event in left),
            taken_up=True,
            ended=tuple(self._ended(event, stages) for event in events if isinstance(event, AgentFinishedEvent)),
            is_over=not left and any(isinstance(e, RunEndEvent) and e.outcome == "finished" for e in events),
        )
        return plan, self._project.runs.run(plan, lambda job: self._past(job.agent_id))

    def _begun(self, fragment: str | None) -> tuple[RunStartEvent, list[Event]]:
        self._project.check_own_state()
        events = list(read_events(self._project.library.find(fragment) if fragment else self._latest_run()))
        start = next((event for event in events if isinstance(event, RunStartEvent)), None)
        if start is None:
            raise ConfigError(f"`{fragment}` is not a run: expected the id that `remora analyze` gave one")
        return start, events

    def _latest_run(self) -> Path:
        runs = self._project.library.runs()
        if not runs:
            raise TraceNotFound("There is no run to go on with", hint="`remora analyze` begins one")
        return runs[-1]

    def _past(self, agent_id: str) -> list[Event]:
        check_stream_id(f"traces/{agent_id}")  # a recorded name must not lead elsewhere
        path = self._project.state_dir / "traces" / f"{agent_id}.jsonl"
        return list(read_events(path)) if path.exists() else []

    def _ended(self, event: AgentFinishedEvent, stages: Mapping[str, str]) -> AgentResult:
        """How an agent ended, as the streams say it."""
        changes = [
            change for one in self._past(event.agent_id) if isinstance(one, ToolResultEvent) for change in one.files
        ]
        return AgentResult(
            event.agent_id,
            event.node_id,
            event.operation,
            event.outcome,
            event.reason,
            event.summary,
            verdict=event.verdict,
            check=event.check,
            head=event.head,
            last_seq=event.last_seq,
            files=fold_files(changes),
            stage=stages.get(event.agent_id, ""),
        )

    def _job(self, scheduled: AgentScheduledEvent, start: RunStartEvent) -> Job:
        past = self._past(scheduled.agent_id)
        began = past[0].node if past and isinstance(past[0], AgentStartEvent) else scheduled.node
        node = _node_then(scheduled, began) if began else self._node_now(scheduled.node_id)
        made = (scheduled.stage, scheduled.over, scheduled.after)
        return Job(start.run_id, scheduled.agent_id, scheduled.operation, node, *made)

    def _node_now(self, node_id: str) -> CodeNode:
        """The node as the project has it now, for an agent that had not begun."""
        file = self._project.root / node_id.partition(":")[0]
        found = self._project.discovery().find([file]) if file.exists() else ()
        for node in found:
            if node.node_id == node_id:
                return node
        raise ConfigError(f"`{node_id}` is no longer in the project: the run cannot go on with it")


def _local_servers() -> tuple[str, ...]:
    from remora.inference import PRESETS

    return tuple(PRESETS)


def _node_then(scheduled: AgentScheduledEvent, told: Mapping[str, Any]) -> CodeNode:
    """The node as the stream describes it."""
    try:
        return CodeNode(
            node_id=scheduled.node_id,
            node_type=NodeType(told["type"]),
            name=told["name"],
            file_path=Path(told["file"]),
            lines=_range(told["lines"]),
            owned=tuple(_range(pair) for pair in told["owned"]),
            text="",
            digest=str(told.get("sha256", "")),
        )
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise ConfigError(f"Agent {scheduled.agent_id} cannot be taken up: its stream does not say on what") from error


def _range(pair: Sequence[int]) -> LineRange:
    return LineRange(first=pair[0], last=pair[1])
