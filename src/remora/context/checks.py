"""Validates a tool's delta: drops invalid candidates and extensions, limits its size, and adds diagnostics."""

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
"""The type of an extra packet field: a JSON Schema, or a pydantic model."""

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
    """The delta without candidates and extensions that do not match their schemas, at most `MAX_DELTA_BYTES` encoded.

    A diagnostic, after `notes`, names each part that was dropped or cut.
    """
    if delta.candidate_actions is None and not (notes or delta.extensions or delta.excerpts or delta.diagnostics):
        return _limit_size(delta)  # the common case: nothing to check
    messages = list(notes)
    candidates = _valid_candidates(delta.candidate_actions, {tool.name: tool for tool in tools}, messages)
    valid = _valid_extensions(delta.extensions, extensions, messages)
    excerpts = tuple(_cut_excerpt(excerpt, messages) for excerpt in delta.excerpts[-MAX_EXCERPTS:])
    diagnostics = (*delta.diagnostics[:MAX_DIAGNOSTICS], *messages)
    update = {
        "candidate_actions": candidates,
        "extensions": valid,
        "excerpts": excerpts,
        "diagnostics": diagnostics[:MAX_DIAGNOSTICS],
    }
    return _limit_size(delta.model_copy(update=update))


def _limit_size(delta: PacketDelta) -> PacketDelta:
    """Reduce the delta to its size limit: drop knowledge, or everything but the action and the error."""
    delta, encoded = bounded(delta)
    if len(encoded) <= MAX_DELTA_BYTES:
        return delta
    lines = ("The result was too large for the packet; all of it is in the stream",)
    return PacketDelta(action=delta.action, error=delta.error, diagnostics=lines)


def _cut_excerpt(excerpt: Excerpt, messages: list[str]) -> Excerpt:
    if len(excerpt.text.encode()) <= MAX_EXCERPT:
        return excerpt
    messages.append(f"Excerpt {one_line(excerpt.label, 60)} was cut to {MAX_EXCERPT:,} bytes")
    return excerpt.model_copy(update={"text": excerpt.text.encode()[:MAX_EXCERPT].decode(errors="ignore")})


def _valid_candidates(
    proposed: Sequence[CandidateAction] | None, tools: Mapping[str, ToolSpec], messages: list[str]
) -> tuple[CandidateAction, ...] | None:
    accepted = []
    for action in (proposed or ())[:MAX_CANDIDATES]:
        spec = tools.get(action.tool)
        errors = problems(spec.parameters, action.args) if spec else ["no such tool"]
        if errors:
            messages.append(f"Candidate {one_line(action.tool, 60)} was dropped: {errors[0]}")
        else:
            accepted.append(action)
    return tuple(accepted) or None


def _valid_extensions(
    proposed: Mapping[str, Any], schemas: Mapping[str, Extension], messages: list[str]
) -> dict[str, Any]:
    accepted = {}
    for key, value in proposed.items():
        errors = _extension_errors(key, value, schemas[key]) if key in schemas else ["the agent has no such extension"]
        if not errors and len(canonical(value)) > MAX_EXTENSION:
            errors = [f"larger than {MAX_EXTENSION:,} bytes"]
        if errors:
            messages.append(f"Extension {one_line(key, 60)} was refused: {errors[0]}")
        else:
            accepted[key] = value
    return accepted


def _extension_errors(key: str, value: Any, schema: Extension) -> list[str]:
    if not isinstance(schema, type):
        return problems(schema, value, f"`{key}`")
    try:
        schema.model_validate(value)
    except ValidationError as error:
        return [f"{'.'.join(map(str, item['loc'])) or 'value'}: {item['msg']}" for item in error.errors()]
    return []
