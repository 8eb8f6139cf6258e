"""ATIF trajectories (Agent Trajectory Interchange Format, versions 1.x), with those of their sub-agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from remora.analysis.logs._blocks import args_of, kind_of, result_of, text_of, tools_of
from remora.analysis.logs._conversation import Conversation, Link, checked
from remora.analysis.logs._document import Document
from remora.analysis.logs._source import LogProblem
from remora.analysis.logs._steps import Assembler, Step


def is_atif(document: Document) -> bool:
    """Whether a document is an ATIF trajectory."""
    fields = document.fields()
    version = fields["schema_version"].load() if "schema_version" in fields and "steps" in fields else ""
    return isinstance(version, str) and version.startswith("ATIF")


def atif_conversations(source: str, document: Document, parent: Link | None = None) -> Iterator[Conversation]:
    """The trajectory, then the trajectories of its sub-agents that are inside it."""
    fields, around = document.fields(), document.small()
    given = around.get("agent")
    agent = given if isinstance(given, Mapping) else {}
    session = _session_of(around)
    extra = agent.get("extra")
    above = extra.get("parent_session_id") if isinstance(extra, Mapping) else None
    launches: dict[str, str] = {}
    draft = Conversation(
        source,
        "ATIF",
        partial(_read, fields["steps"], launches),
        tools=tools_of(agent.get("tool_definitions")),
        model=str(agent.get("model_name") or ""),
        session=session,
        parent=parent or (Link(str(above)) if above else None),
        launches=launches,
    )
    yield checked(draft, "steps")
    inner = fields.get("subagent_trajectories")
    for index, child in enumerate(inner.elements() if inner is not None and inner.is_list else ()):
        place = f"{source}.subagent_trajectories[{index}]"
        try:
            yield from atif_conversations(place, child, Link(session, launches.get(_session_of(child.small()), "")))
        except LogProblem as problem:
            raise LogProblem(f"subagent_trajectories[{index}]: {problem}") from None


def _session_of(around: Mapping[str, Any]) -> str:
    return str(around.get("trajectory_id") or around.get("session_id") or "")


def _read(listed: Document, launches: dict[str, str], unknown: Counter[str]) -> Iterator[Step]:
    """The steps. What the system says after the task, such as a note about its history, is no system text."""
    if not listed.is_list:
        raise LogProblem("`steps`: expected a list")
    steps, begun = Assembler(), False
    for index, step in enumerate(listed.values()):
        if not isinstance(step, Mapping):
            raise LogProblem(f"steps[{index}]: expected an object with `source`")
        text, source = text_of(step.get("message")), step.get("source")
        if source == "system":
            steps.user(text, fixed=not begun, meta=True)
        elif source == "user":
            steps.user(text)
        elif source == "agent":
            _agent(steps, step, text, f"steps[{index}]")
        else:
            unknown[f"step of source {str(source)[:40]}"] += 1
        _observe(steps, step, launches, unknown)
        begun = begun or source != "system"
        yield from steps.ready()
    yield from steps.rest()


def _agent(steps: Assembler, step: Mapping[str, Any], text: str, place: str) -> None:
    turn = steps.turn()
    turn.model = str(step.get("model_name") or "")
    turn.texts += [text] if text else []
    turn.thoughts += [step["reasoning_content"]] if isinstance(step.get("reasoning_content"), str) else []
    metrics = step.get("metrics")
    if isinstance(metrics, Mapping):
        turn.usage = {key: metrics[key] for key in ("prompt_tokens", "completion_tokens") if key in metrics}
    for index, call in enumerate(step.get("tool_calls") or ()):
        if not isinstance(call, Mapping) or not isinstance(call.get("function_name"), str):
            raise LogProblem(f"{place}.tool_calls[{index}]: expected a `function_name`")
        call_id = str(call.get("tool_call_id") or "")
        steps.call(turn, call_id, call["function_name"], args_of(call.get("arguments")))


def _observe(steps: Assembler, step: Mapping[str, Any], launches: dict[str, str], unknown: Counter[str]) -> None:
    """The results of a step's calls, and the trajectories of the sub-agents that it started."""
    observation = step.get("observation")
    for result in (observation.get("results") or ()) if isinstance(observation, Mapping) else ():
        if not isinstance(result, Mapping):
            unknown[f"observation {kind_of(result)}"] += 1
            continue
        call_id, content = str(result.get("source_call_id") or ""), result.get("content")
        for reference in result.get("subagent_trajectory_ref") or ():
            if isinstance(reference, Mapping):
                launches[_session_of(reference)] = call_id
        if step.get("source") == "agent" and steps.result(call_id or None, result_of(content)):
            continue
        if content:
            steps.user(text_of(content), meta=True)
