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
    session = str(around.get("trajectory_id") or around.get("session_id") or "")
    launches: dict[str, str] = {}
    draft = Conversation(
        source,
        "ATIF",
        partial(_read, fields["steps"], launches),
        tools=tools_of(agent.get("tool_definitions")),
        model=str(agent.get("model_name") or ""),
        session=session,
        parent=parent,
        launches=launches,
    )
    yield checked(draft, "steps")
    inner = fields.get("subagent_trajectories")
    calls = {session: call_id for call_id, session in launches.items()}
    for index, child in enumerate(inner.elements() if inner is not None and inner.is_list else ()):
        names = child.small()
        own = str(names.get("trajectory_id") or names.get("session_id") or "")
        place = f"{source}.subagent_trajectories[{index}]"
        try:
            yield from atif_conversations(place, child, Link(session, calls.get(own, "")))
        except LogProblem as problem:
            raise LogProblem(f"subagent_trajectories[{index}]: {problem}") from None


def _read(listed: Document, launches: dict[str, str], unknown: Counter[str]) -> Iterator[Step]:
    if not listed.is_list:
        raise LogProblem("`steps`: expected a list")
    steps = Assembler()
    for index, step in enumerate(listed.values()):
        if not isinstance(step, Mapping):
            raise LogProblem(f"steps[{index}]: expected an object with `source`")
        _take(steps, step, f"steps[{index}]", launches, unknown)
        yield from steps.ready()
    yield from steps.rest()


def _take(
    steps: Assembler, step: Mapping[str, Any], place: str, launches: dict[str, str], unknown: Counter[str]
) -> None:
    text, source = text_of(step.get("message")), step.get("source")
    if source == "system":
        steps.user(text, fixed=True)
    elif source == "user":
        steps.user(text)
    elif source == "agent":
        _agent(steps, step, text, place, launches, unknown)
    else:
        unknown[f"step of source {str(source)[:40]}"] += 1


def _agent(
    steps: Assembler,
    step: Mapping[str, Any],
    text: str,
    place: str,
    launches: dict[str, str],
    unknown: Counter[str],
) -> None:
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
    observation = step.get("observation")
    for result in (observation.get("results") or ()) if isinstance(observation, Mapping) else ():
        if not isinstance(result, Mapping):
            unknown[f"observation {kind_of(result)}"] += 1
            continue
        call_id = str(result.get("source_call_id") or "")
        if not steps.result(call_id or None, result_of(result.get("content"))):
            steps.user(text_of(result.get("content")), meta=True)
        for reference in result.get("subagent_trajectory_ref") or ():
            if isinstance(reference, Mapping):
                launches[call_id] = str(reference.get("trajectory_id") or reference.get("session_id") or "")
