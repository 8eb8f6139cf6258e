"""Resumes interrupted runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from remora.analysis import fold_files
from remora.app._deciding import EMBEDDED, NO_MODEL
from remora.app._ladder import is_local, rung_names, servers_of
from remora.app._mcp import mcp_names
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
    short_id,
)
from remora.nodes import CodeNode, LineRange, NodeType
from remora.orchestrator import Plan
from remora.ports import AgentResult, Job
from remora.trace import read_events

RECORDED = frozenset(
    {"server.server", "server.model", "runner.memory.enabled", "runner.max_turns", "runner.by_rule", "escalation"}
)


class Interrupted:
    """Resumes interrupted runs. All state comes from their streams."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def settings_of(self, fragment: str | None = None) -> dict[str, Any]:
        """The settings of a run, or of the latest one. Raises `ConfigError` for an unknown remote server.

        A repository may contain streams, and it must not decide where code is sent. So only a server on this machine
        is taken from a stream.
        """
        settings = {name: value for name, value in self._read_run(fragment)[0].settings.items() if name in RECORDED}
        settings["escalation"] = self._recorded_ladder(settings.get("escalation", []))
        server = settings.get("server.server", EMBEDDED)
        if server in (*NO_MODEL, EMBEDDED, *_local_servers()) or server == self._project.server.server:
            return settings
        raise ConfigError(
            f"The run was started with the server `{server!s:.200}`, which is not yours by your own settings",
            hint="To continue with this server, name it: `remora resume --server URL`",
        )

    def _recorded_ladder(self, recorded: Any) -> list[str] | None:
        """The run's ladder; None if it is the one of the user's own settings. Raises `ConfigError` if it is not local.

        Like a server, a remote rung or a file is never taken from a stream.
        """
        models = [str(model) for model in recorded] if isinstance(recorded, list) else []
        if models == [rung.model for rung in self._project.config.escalation]:
            return None
        if foreign := [model for model in models if not is_local(model)]:
            raise ConfigError(
                f"The run was started with the rung `{foreign[0]:.200}`, which is not yours by your own settings",
                hint="To continue with this ladder, name it: `remora resume --escalate MODEL,MODEL`",
            )
        return models

    def resume(self, fragment: str | None = None) -> tuple[Plan, AsyncIterator[AgentResult]]:
        """The plan of what is left of a run, or of the latest one, and the results of running it."""
        start, events = self._read_run(fragment)
        ended = {event.agent_id for event in events if isinstance(event, AgentFinishedEvent)}
        scheduled = {event.agent_id: event for event in events if isinstance(event, AgentScheduledEvent)}
        left = [event for event in scheduled.values() if event.agent_id not in ended]
        self._check_fork(start, left)
        stages = {agent_id: event.stage for agent_id, event in scheduled.items()}
        plan = Plan(
            run_id=start.run_id,
            root=start.root,
            paths=start.paths,
            operations=start.operations,
            policy=self._project.server.server,
            model=self._project.runs.model_name(),
            limit=self._project.runs.prompt_limit(),
            ladder=rung_names(self._project.config),
            servers=servers_of(self._project.config),
            mcp=mcp_names(self._project.agents.load(sorted({event.operation for event in left})).values()),
            jobs=tuple(self._job(event, start) for event in left),
            taken_up=True,
            ended=tuple(self._past_result(event, stages) for event in events if isinstance(event, AgentFinishedEvent)),
            is_over=not left and any(isinstance(e, RunEndEvent) and e.outcome == "finished" for e in events),
        )
        return plan, self._project.runs.run(plan, lambda job: self._project.runs.past_events(job.agent_id))

    def _check_fork(self, start: RunStartEvent, left: Sequence[AgentScheduledEvent]) -> None:
        """A fork that has no stream yet cannot be resumed: it would begin from nothing."""
        if start.parent and not all(self._project.runs.past_events(event.agent_id) for event in left):
            raise ConfigError("The fork was interrupted before it began", hint="Run `remora fork` again")

    def _read_run(self, fragment: str | None) -> tuple[RunStartEvent, list[Event]]:
        self._project.check_own_state()
        path = self._project.library.find(fragment) if fragment else self._latest_run()
        events = list(read_events(path, torn_ok=True))  # the writer moves an unfinished last line aside
        start = next((event for event in events if isinstance(event, RunStartEvent)), None)
        if start is None:
            raise ConfigError(
                f"`{fragment or short_id(path.stem)}` is not a run: expected the id of a run of `remora analyze`"
            )
        return start, events

    def _latest_run(self) -> Path:
        latest = self._project.library.latest_run()
        if latest is None:
            raise TraceNotFound("There is no run to resume", hint="`remora analyze` starts one")
        return latest

    def _past_result(self, event: AgentFinishedEvent, stages: Mapping[str, str]) -> AgentResult:
        """The result of a finished agent, rebuilt from the streams."""
        changes = [
            change
            for one in self._project.runs.past_events(event.agent_id)
            if isinstance(one, ToolResultEvent)
            for change in one.files
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
        past = self._project.runs.past_events(scheduled.agent_id)
        recorded = past[0].node if past and isinstance(past[0], AgentStartEvent) else scheduled.node
        node = recorded_node(scheduled, recorded) if recorded else self._current_node(scheduled.node_id)
        stage = (scheduled.stage, scheduled.over, scheduled.after)
        return Job(start.run_id, scheduled.agent_id, scheduled.operation, node, *stage, answer=scheduled.answer)

    def _current_node(self, node_id: str) -> CodeNode:
        """The node in the current project, for an agent that had not started."""
        file = self._project.root / node_id.partition(":")[0]
        found = self._project.discovery().find([file]) if file.exists() else ()
        for node in found:
            if node.node_id == node_id:
                return node
        raise ConfigError(f"`{node_id}` is no longer in the project: the run cannot be resumed")


def _local_servers() -> tuple[str, ...]:
    from remora.inference import PRESETS

    return tuple(PRESETS)


def recorded_node(scheduled: AgentScheduledEvent, recorded: Mapping[str, Any]) -> CodeNode:
    """The node as recorded in the stream."""
    try:
        return CodeNode(
            node_id=scheduled.node_id,
            node_type=NodeType(recorded["type"]),
            name=recorded["name"],
            file_path=Path(recorded["file"]),
            lines=_range(recorded["lines"]),
            owned=tuple(_range(pair) for pair in recorded["owned"]),
            text="",
            digest=str(recorded.get("sha256", "")),
        )
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise ConfigError(
            f"Agent {short_id(scheduled.agent_id)} cannot be resumed: its stream does not describe its node"
        ) from error


def _range(pair: Sequence[int]) -> LineRange:
    return LineRange(first=pair[0], last=pair[1])
