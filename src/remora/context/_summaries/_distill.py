"""Distilling: what a tool returned, and what a summarizer made of it, become a delta for the packet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

import orjson
from pydantic import TypeAdapter, ValidationError

from remora.context._summaries._bounds import bounded
from remora.context.aliases import contract_names
from remora.context.summary import Summarized
from remora.context.text import one_line
from remora.events import (
    ActionDelta,
    CandidateAction,
    ErrorDelta,
    Excerpt,
    KnowledgeDelta,
    Outcome,
    PacketDelta,
    canonical,
)

_CANDIDATES = TypeAdapter(tuple[CandidateAction, ...])
_EXCERPTS = TypeAdapter(tuple[Excerpt, ...])


@dataclass(frozen=True)
class Distilled:
    """What a raw value comes to."""

    outcome: Outcome
    delta: PacketDelta


def distill(tool: str, value: Any, summarized: Summarized | None = None) -> Distilled:
    """The outcome of a tool call and its delta, from what the tool returned and what a summarizer made of it."""
    said = contract_names(value) if isinstance(value, Mapping) else {}
    made = summarized or Summarized()
    outcome = _outcome(said)
    problems = [f"Summarizer of {tool} {problem}" for problem in made.problems]
    summary = _summary(tool, said, made)
    candidates = _parsed(_CANDIDATES, tool, "candidate_actions", said.get("candidate_actions"), problems)
    excerpts = _parsed(_EXCERPTS, tool, "excerpts", said.get("excerpts", made.excerpts), problems)
    extensions = {key: item for key, item in _mapping(said.get("extensions")).items() if _is_json({key: item})}
    delta = PacketDelta(
        action=ActionDelta(tool=tool, summary=summary, outcome=outcome),
        knowledge=_knowledge(said, made, problems),
        error=ErrorDelta(set=_error_text(said, summary)) if outcome == "error" else ErrorDelta(clear=True),
        diagnostics=(*_strings(said.get("diagnostics")), *map(one_line, problems)),
        candidate_actions=candidates or None,
        state_summary=one_line(str(said["state_summary"])) if said.get("state_summary") else None,
        excerpts=excerpts,
        extensions=extensions,
    )
    return Distilled(outcome, storable(delta))


def storable(delta: PacketDelta) -> PacketDelta:
    """The delta as a stream would give it back: within its size limit, and through JSON once."""
    # So that the packet of today and the packet replayed from the file are the same.
    return PacketDelta.model_validate(orjson.loads(bounded(delta)[1]))


def says_enough(value: Any) -> bool:
    """Whether a tool gave both a summary and knowledge of its own, so that no summarizer is asked."""
    return isinstance(value, Mapping) and bool(_own(value)) and isinstance(value.get("knowledge_delta"), Mapping)


def raw_result_of(value: Any) -> Any:
    """The part of a returned value that summarizers read."""
    if not isinstance(value, Mapping):
        return value
    return value.get("result") or value.get("raw_output") or value


def _own(said: Mapping[str, Any]) -> Any:
    return said.get("summary") or said.get("_summary")


def _summary(tool: str, said: Mapping[str, Any], made: Summarized) -> str:
    best = one_line(str(_own(said) or made.summary))
    return best or (f"{tool} failed" if said.get("error") else f"Executed {tool}")


def _knowledge(said: Mapping[str, Any], made: Summarized, problems: list[str]) -> dict[str, KnowledgeDelta]:
    news = said.get("knowledge_delta")
    news = news if isinstance(news, Mapping) else made.knowledge
    return {one_line(str(key)): _entry(key, item, problems) for key, item in news.items()}


def _entry(key: Any, item: Any, problems: list[str]) -> KnowledgeDelta:
    """A value, or a value with `supersedes` or `pinned` beside it. What JSON cannot hold is known by its text."""
    if not _is_json(item):
        problems.append(f"Knowledge {one_line(str(key), 80)} is kept as text: not a JSON value")
        return KnowledgeDelta(value=_described(item))
    if isinstance(item, Mapping) and "value" in item and set(item) <= {"value", "supersedes", "pinned"}:
        try:
            return KnowledgeDelta.model_validate(dict(item))
        except ValidationError:
            return KnowledgeDelta(value=dict(item))
    return KnowledgeDelta(value=item)


def _described(item: Any) -> str:
    try:
        return one_line(repr(item))
    except Exception:  # noqa: BLE001 - foreign values: an integer too long to print, a `__repr__` that raises
        return f"a value of type {type(item).__name__}"


def _is_json(value: Any) -> bool:
    try:
        canonical(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _outcome(said: Mapping[str, Any]) -> Outcome:
    for outcome in get_args(Outcome):
        if said.get("outcome") == outcome:
            return cast("Outcome", outcome)
    if said.get("error"):
        return "error"
    status = str(said.get("status", "")).lower()
    if status in ("error", "failed", "failure"):
        return "error"
    return "partial" if status in ("partial", "warning") else "success"


def _error_text(said: Mapping[str, Any], summary: str) -> str:
    text = said.get("error") or said.get("message") or summary
    return one_line(str(text.get("message", text)) if isinstance(text, Mapping) else str(text))


def _parsed(adapter: TypeAdapter[Any], tool: str, name: str, given: Any, problems: list[str]) -> Any:
    if not given:
        return ()
    try:
        parsed = adapter.validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problems.append(f"{name} of {tool} were dropped: {first['msg']}")
        return ()
    if not _is_json(parsed):
        problems.append(f"{name} of {tool} were dropped: not JSON values")
        return ()
    return parsed


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(one_line(str(item)) for item in value) if isinstance(value, list | tuple) else ()


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
