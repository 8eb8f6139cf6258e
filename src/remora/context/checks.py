"""What a tool proposes, held against what the agent has: a misfit changes nothing, and is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from remora.context._summaries import MAX_DELTA_BYTES, bounded
from remora.context.contracts import ToolSpec
from remora.context.models import MAX_EXCERPTS
from remora.context.schema import problems
from remora.context.text import one_line
from remora.events import CandidateAction, Excerpt, PacketDelta, canonical

Extension = Mapping[str, Any] | type[BaseModel]
"""What an extra packet field may hold: a JSON Schema, or a model in Python."""

MAX_CANDIDATES = 16
MAX_DIAGNOSTICS = 16
MAX_EXCERPT = 8 * 1024
MAX_EXTENSION = 8 * 1024


def checked(
    delta: PacketDelta,
    tools: Sequence[ToolSpec],
    extensions: Mapping[str, Extension],
    notes: Sequence[str] = (),
) -> PacketDelta:
    """The delta without candidates that their tool would refuse and without extensions that do not fit their schema.

    Whatever a tool gave, it is then at most `MAX_DELTA_BYTES` when encoded. What went is told, after `notes`.
    """
    told = list(notes)
    candidates = _fitting_candidates(delta.candidate_actions, {tool.name: tool for tool in tools}, told)
    fitting = _fitting_extensions(delta.extensions, extensions, told)
    excerpts = tuple(_bounded_excerpt(excerpt, told) for excerpt in delta.excerpts[-MAX_EXCERPTS:])
    diagnostics = (*delta.diagnostics[:MAX_DIAGNOSTICS], *told)
    update = {
        "candidate_actions": candidates,
        "extensions": fitting,
        "excerpts": excerpts,
        "diagnostics": diagnostics[:MAX_DIAGNOSTICS],
    }
    return _small_enough(delta.model_copy(update=update))


def _small_enough(delta: PacketDelta) -> PacketDelta:
    """The delta within its size: less knowledge, else nothing but the action and the error."""
    delta, encoded = bounded(delta)
    if len(encoded) <= MAX_DELTA_BYTES:
        return delta
    told = ("The result was too large for the packet; all of it is in the stream",)
    return PacketDelta(action=delta.action, error=delta.error, diagnostics=told)


def _bounded_excerpt(excerpt: Excerpt, told: list[str]) -> Excerpt:
    if len(excerpt.text.encode()) <= MAX_EXCERPT:
        return excerpt
    told.append(f"Excerpt {one_line(excerpt.label, 60)} was cut to {MAX_EXCERPT:,} bytes")
    return excerpt.model_copy(update={"text": excerpt.text.encode()[:MAX_EXCERPT].decode(errors="ignore")})


def _fitting_candidates(
    proposed: Sequence[CandidateAction] | None, tools: Mapping[str, ToolSpec], told: list[str]
) -> tuple[CandidateAction, ...] | None:
    good = []
    for action in (proposed or ())[:MAX_CANDIDATES]:
        spec = tools.get(action.tool)
        misfits = problems(spec.parameters, action.args) if spec else ["no such tool"]
        if misfits:
            told.append(f"Candidate {one_line(action.tool, 60)} was dropped: {misfits[0]}")
        else:
            good.append(action)
    return tuple(good) or None


def _fitting_extensions(
    proposed: Mapping[str, Any], schemas: Mapping[str, Extension], told: list[str]
) -> dict[str, Any]:
    good = {}
    for key, value in proposed.items():
        misfits = _misfits(key, value, schemas[key]) if key in schemas else ["the agent has no such extension"]
        if not misfits and len(canonical(value)) > MAX_EXTENSION:
            misfits = [f"larger than {MAX_EXTENSION:,} bytes"]
        if misfits:
            told.append(f"Extension {one_line(key, 60)} was refused: {misfits[0]}")
        else:
            good[key] = value
    return good


def _misfits(key: str, value: Any, wanted: Extension) -> list[str]:
    if not isinstance(wanted, type):
        return problems(wanted, value, f"`{key}`")
    try:
        wanted.model_validate(value)
    except ValidationError as error:
        return [f"{'.'.join(map(str, item['loc'])) or 'value'}: {item['msg']}" for item in error.errors()]
    return []
