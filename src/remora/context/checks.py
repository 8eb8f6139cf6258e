"""What a tool proposes, held against what the agent has: a misfit changes nothing, and is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remora.context.contracts import ToolSpec
from remora.context.schema import problems
from remora.context.text import one_line
from remora.events import CandidateAction, PacketDelta


def checked(delta: PacketDelta, tools: Sequence[ToolSpec], extensions: Mapping[str, Mapping[str, Any]]) -> PacketDelta:
    """The delta without candidates that their tool would refuse and without extensions that do not fit their schema."""
    told: list[str] = []
    candidates = _fitting_candidates(delta.candidate_actions, {tool.name: tool for tool in tools}, told)
    fitting = _fitting_extensions(delta.extensions, extensions, told)
    if not told:
        return delta
    return delta.model_copy(
        update={
            "candidate_actions": candidates,
            "extensions": fitting,
            "diagnostics": (*delta.diagnostics, *told),
        }
    )


def _fitting_candidates(
    proposed: Sequence[CandidateAction] | None, tools: Mapping[str, ToolSpec], told: list[str]
) -> tuple[CandidateAction, ...] | None:
    good = []
    for action in proposed or ():
        spec = tools.get(action.tool)
        misfits = problems(spec.parameters, action.args) if spec else ["no such tool"]
        if misfits:
            told.append(f"Candidate {one_line(action.tool, 60)} was dropped: {misfits[0]}")
        else:
            good.append(action)
    return tuple(good) or None


def _fitting_extensions(
    proposed: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]], told: list[str]
) -> dict[str, Any]:
    good = {}
    for key, value in proposed.items():
        misfits = problems(schemas[key], value, f"`{key}`") if key in schemas else ["the agent has no such extension"]
        if misfits:
            told.append(f"Extension {one_line(key, 60)} was refused: {misfits[0]}")
        else:
            good[key] = value
    return good
