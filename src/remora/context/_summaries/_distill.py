"""Distills a tool's return value and a summarizer's output into a delta for the packet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

import orjson
from pydantic import TypeAdapter, ValidationError

from remora.context._summaries._bounds import bounded
from remora.context.aliases import contract_names
from remora.context.evidence import names_error, parsed_output, says_failed
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

MAX_STATUS_FIELDS = 4
"""Fields of a record whose `status` is that of the call."""
_ERROR_FIELDS = (
    "error", "Error", "exception", "message", "errorMessage", "error_message", "errmsg", "error_msg", "detail", "fault",
    "reason", "title", "stderr",
)  # fmt: skip
"""Fields that say why a call failed, the best first."""
_MESSAGE_FIELDS = ("message", "Message", "msg", "faultstring")
"""Fields of an error that say what went wrong."""
_CANDIDATES = TypeAdapter(tuple[CandidateAction, ...])
_EXCERPTS = TypeAdapter(tuple[Excerpt, ...])


@dataclass(frozen=True)
class Distilled:
    """The outcome and the delta of a tool call."""

    outcome: Outcome
    delta: PacketDelta


def distill(tool: str, value: Any, summarized: Summarized | None = None) -> Distilled:
    """The outcome and the delta of a call, from the tool's return value and the summarizer's output."""
    result = contract_names(value) if isinstance(value, Mapping) else {}
    summarized = summarized or Summarized()
    outcome = _outcome(result)
    if outcome == "success" and not states_outcome(result) and says_failed(value):
        outcome = "error"
    problems = [f"Summarizer of {tool} {problem}" for problem in summarized.problems]
    summary = _summary(tool, result, summarized, outcome)
    error = _error_text(result or value, summary) if outcome == "error" else ""
    candidates = _parse(_CANDIDATES, tool, "candidate_actions", result.get("candidate_actions"), problems)
    excerpts = _parse(_EXCERPTS, tool, "excerpts", result.get("excerpts", summarized.excerpts), problems)
    extensions = {key: item for key, item in _mapping(result.get("extensions")).items() if _is_json({key: item})}
    delta = PacketDelta(
        action=ActionDelta(tool=tool, summary=summary, outcome=outcome),
        knowledge=_knowledge(result, summarized, problems),
        error=ErrorDelta(set=error) if error else ErrorDelta(clear=True),
        diagnostics=(*_strings(result.get("diagnostics")), *map(one_line, problems)),
        candidate_actions=candidates or None,
        state_summary=one_line(str(result["state_summary"])) if result.get("state_summary") else None,
        excerpts=excerpts,
        extensions=extensions,
    )
    if delta.knowledge or candidates or excerpts or extensions:
        delta = storable(delta)
    return Distilled(outcome, delta)  # the rest is texts, which a stream holds as they are


def storable(delta: PacketDelta) -> PacketDelta:
    """The delta within its size limit, after a round trip through JSON."""
    # The round trip makes the live packet equal to the packet replayed from the stream.
    return PacketDelta.model_validate(orjson.loads(bounded(delta)[1]))


def says_enough(value: Any) -> bool:
    """Whether the tool returned both summary and knowledge, so that no summarizer runs."""
    return (
        isinstance(value, Mapping) and bool(_own_summary(value)) and isinstance(value.get("knowledge_delta"), Mapping)
    )


def raw_result_of(value: Any) -> Any:
    """The part of a returned value that summarizers read."""
    if not isinstance(value, Mapping):
        return value
    return value.get("result") or value.get("raw_output") or value


def _own_summary(result: Mapping[str, Any]) -> Any:
    return result.get("summary") or result.get("_summary")


def _summary(tool: str, result: Mapping[str, Any], summarized: Summarized, outcome: Outcome) -> str:
    best = one_line(str(_own_summary(result) or summarized.summary))
    if best or outcome != "error":
        return best or f"Executed {tool}"
    return f"{tool} failed" if result.get("error") or result.get("message") else f"{tool} failed without a message"


def _knowledge(result: Mapping[str, Any], summarized: Summarized, problems: list[str]) -> dict[str, KnowledgeDelta]:
    knowledge = result.get("knowledge_delta")
    knowledge = knowledge if isinstance(knowledge, Mapping) else summarized.knowledge
    return {one_line(str(key)): _entry(key, item, problems) for key, item in knowledge.items()}


def _entry(key: Any, item: Any, problems: list[str]) -> KnowledgeDelta:
    """An item is a value, or a dict of `value` with `supersedes` or `pinned`. Other than JSON becomes its `repr`."""
    if not _is_json(item):
        problems.append(f"Knowledge {one_line(str(key), 80)} is kept as text: not a JSON value")
        return KnowledgeDelta(value=_repr(item))
    if isinstance(item, Mapping) and "value" in item and set(item) <= {"value", "supersedes", "pinned"}:
        try:
            return KnowledgeDelta.model_validate(dict(item))
        except ValidationError:
            return KnowledgeDelta(value=dict(item))
    return KnowledgeDelta(value=item)


def _repr(item: Any) -> str:
    try:
        return one_line(repr(item))
    except Exception:  # noqa: BLE001 - foreign code: `__repr__` may raise anything
        return f"a value of type {type(item).__name__}"


def _is_json(value: Any) -> bool:
    try:
        canonical(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def states_outcome(value: Any) -> bool:
    """Whether a result follows the contract: it has an outcome or a summary of its own."""
    return isinstance(value, Mapping) and bool(_own_summary(value) or value.get("outcome") in get_args(Outcome))


def _outcome(result: Mapping[str, Any]) -> Outcome:
    for outcome in get_args(Outcome):
        if result.get("outcome") == outcome:
            return cast("Outcome", outcome)
    if names_error(result.get("error"), result):
        return "error"
    status = str(result.get("status", "")).lower()
    # A large record may describe something else that failed, such as a build.
    if status in ("error", "failed", "failure") and (len(result) <= MAX_STATUS_FIELDS or _own_summary(result)):
        return "error"
    return "partial" if status in ("partial", "warning") else "success"


def _error_text(value: Any, summary: str) -> str:
    """What a failed result says: its error, its message, the text of its content blocks, or else the summary."""
    said = parsed_output(value)
    record = said if isinstance(said, Mapping) else value if isinstance(value, Mapping) else {}
    errors = record.get("errors")
    listed = errors if isinstance(errors, list) else record.get("detail")
    found = [*map(record.get, _ERROR_FIELDS), *(listed if isinstance(listed, list) else ())]
    text = next((item for item in found if isinstance(item, str | Mapping) and item), "")
    if isinstance(text, Mapping):
        text = next((text[name] for name in _MESSAGE_FIELDS if name in text), text)
    if not text and isinstance(said, str) and not isinstance(value, str):
        text = said.strip().partition("\n")[0]  # content blocks
    return one_line(str(text)) or summary


def _parse(adapter: TypeAdapter[Any], tool: str, name: str, given: Any, problems: list[str]) -> Any:
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
