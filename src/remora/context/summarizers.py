"""Distilling: what a tool returned becomes one line, some knowledge, and a delta for the packet.

The tool's own summary comes first, then the summarizer registered for the tool, then a generic line. The result is
stored in the event, so a summarizer may change without changing the past.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

import orjson
from pydantic import TypeAdapter, ValidationError

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

MAX_DELTA_BYTES = 64 * 1024

_CANDIDATES = TypeAdapter(tuple[CandidateAction, ...])
_EXCERPTS = TypeAdapter(tuple[Excerpt, ...])


class Summarizer(ABC):
    """Turns a tool's raw result into a line and knowledge, where the tool gives none itself."""

    @abstractmethod
    def summarize(self, raw_result: Any) -> str:
        """One line on what came out."""

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        """What later turns should know, by key."""
        return {}


class ToolSidePassthrough(Summarizer):
    """Says what the tool itself said."""

    def summarize(self, raw_result: Any) -> str:
        said = raw_result if isinstance(raw_result, Mapping) else {}
        return str(said.get("summary", said.get("message", "Tool completed")))

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return dict(raw_result.get("knowledge_delta", {})) if isinstance(raw_result, Mapping) else {}


class LinterSummarizer(Summarizer):
    """For results with `errors` (a list) and `fixed` (a number)."""

    def summarize(self, raw_result: Any) -> str:
        if not isinstance(raw_result, Mapping):
            return "Ran linter"
        left, fixed = len(raw_result.get("errors", ())), raw_result.get("fixed", 0)
        if fixed:
            return f"Fixed {fixed} lint errors, {left} remaining" if left else f"Fixed all {fixed} lint errors"
        return f"Found {left} lint errors" if left else "No lint errors found"

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        if not isinstance(raw_result, Mapping):
            return {}
        return {
            "lint_errors_remaining": len(raw_result.get("errors", ())),
            "lint_errors_fixed": raw_result.get("fixed", 0),
        }


class TestRunnerSummarizer(Summarizer):
    """For results with the numbers `passed` and `failed`."""

    __test__ = False  # pytest would take the specified name for a test class

    def summarize(self, raw_result: Any) -> str:
        if not isinstance(raw_result, Mapping):
            return "Ran tests"
        failed = raw_result.get("failed", 0)
        total = raw_result.get("passed", 0) + failed
        return f"{failed} of {total} tests failed" if failed else f"All {total} tests passed"

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        if not isinstance(raw_result, Mapping):
            return {}
        return {"tests_passed": raw_result.get("passed", 0), "tests_failed": raw_result.get("failed", 0)}


BUILTIN_SUMMARIZERS: dict[str, Summarizer] = {
    "run_linter": LinterSummarizer(),
    "apply_fix": LinterSummarizer(),
    "run_tests": TestRunnerSummarizer(),
}


def get_default_summarizers() -> dict[str, Summarizer]:
    """The built-in summarizers by tool name: a copy, yours to change."""
    return BUILTIN_SUMMARIZERS.copy()


@dataclass(frozen=True)
class Distilled:
    """What a raw value comes to."""

    outcome: Outcome
    delta: PacketDelta


def distill(tool: str, value: Any, summarizers: Mapping[str, Summarizer]) -> Distilled:
    """The outcome of a tool call and its delta, from whatever the tool returned."""
    said = value if isinstance(value, Mapping) else {}
    outcome = _outcome(said)
    summarizer = summarizers.get(tool)
    problems: list[str] = []
    summary = _summary(tool, value, said, summarizer, problems)
    knowledge = _knowledge(tool, value, said, summarizer, problems)
    candidates = _parsed(_CANDIDATES, tool, "candidate_actions", said, problems)
    excerpts = _parsed(_EXCERPTS, tool, "excerpts", said, problems)
    extensions = {key: item for key, item in _mapping(said.get("extensions")).items() if _is_json(item)}
    delta = PacketDelta(
        action=ActionDelta(tool=tool, summary=summary, outcome=outcome),
        knowledge=knowledge,
        error=ErrorDelta(set=_error_text(said, summary)) if outcome == "error" else ErrorDelta(clear=True),
        diagnostics=(*_strings(said.get("diagnostics")), *problems),
        candidate_actions=candidates or None,
        excerpts=excerpts,
        extensions=extensions,
    )
    # Through JSON once, so that the packet of today and the packet replayed from the file are the same.
    return Distilled(outcome, PacketDelta.model_validate(orjson.loads(canonical(_bounded(delta)))))


def raw_result_of(value: Any) -> Any:
    """The part of a returned value that summarizers read."""
    if not isinstance(value, Mapping):
        return value
    return value.get("result") or value.get("raw_output") or value


def _summary(tool: str, value: Any, said: Mapping[str, Any], summarizer: Summarizer | None, problems: list[str]) -> str:
    own = said.get("summary") or said.get("_summary")
    if own:
        return one_line(str(own))
    if summarizer is not None:
        try:
            return one_line(str(summarizer.summarize(raw_result_of(value))))
        except Exception as error:  # noqa: BLE001 - foreign code: any failure of it means the fallback, and is told
            problems.append(f"Summarizer of {tool} failed: {type(error).__name__}")
    return f"{tool} failed" if "error" in said else f"Executed {tool}"


def _knowledge(
    tool: str, value: Any, said: Mapping[str, Any], summarizer: Summarizer | None, problems: list[str]
) -> dict[str, KnowledgeDelta]:
    news = said.get("knowledge_delta")
    if not isinstance(news, Mapping) and summarizer is not None:
        try:
            news = summarizer.extract_knowledge(raw_result_of(value))
        except Exception as error:  # noqa: BLE001 - as above
            problems.append(f"Summarizer of {tool} gave no knowledge: {type(error).__name__}")
    return {one_line(str(key)): _entry(key, item, problems) for key, item in _mapping(news).items()}


def _entry(key: Any, item: Any, problems: list[str]) -> KnowledgeDelta:
    """A value, or a value with `supersedes` or `pinned` beside it. What JSON cannot hold is known by its text."""
    if not _is_json(item):
        problems.append(f"Knowledge {one_line(str(key), 80)} is kept as text: not a JSON value")
        return KnowledgeDelta(value=one_line(repr(item)))
    if isinstance(item, Mapping) and "value" in item and set(item) <= {"value", "supersedes", "pinned"}:
        try:
            return KnowledgeDelta.model_validate(dict(item))
        except ValidationError:
            return KnowledgeDelta(value=dict(item))
    return KnowledgeDelta(value=item)


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


def _parsed(adapter: TypeAdapter[Any], tool: str, name: str, said: Mapping[str, Any], problems: list[str]) -> Any:
    if not said.get(name):
        return ()
    try:
        parsed = adapter.validate_python(said[name])
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


def _bounded(delta: PacketDelta) -> PacketDelta:
    """The delta within its size limit: the largest knowledge goes first, and is named."""
    while len(canonical(delta)) > MAX_DELTA_BYTES and delta.knowledge:
        largest = max(delta.knowledge, key=lambda key: len(canonical(delta.knowledge[key])))
        rest = {key: item for key, item in delta.knowledge.items() if key != largest}
        note = f"{one_line(largest, 80)} is too large for the packet; its value is in the stream"
        delta = delta.model_copy(update={"knowledge": rest, "diagnostics": (*delta.diagnostics, note)})
    return delta
