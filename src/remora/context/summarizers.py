"""Summarizers: what a tool returned becomes one line, some knowledge and perhaps an excerpt.

The tool's own summary comes first, then the summarizer registered for the tool, then a generic line. The result is
stored in the event, so a summarizer may change without changing the past. Built-in ones are pure functions and run
right here; any other runs behind the `SummaryGuard` port, with limits that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from remora.context._summaries import (
    BUILT_IN,
    FALLBACK,
    MAX_DELTA_BYTES,
    BuiltIn,
    Distilled,
    distill,
    raw_result_of,
    says_enough,
)
from remora.context.summary import Imported, OfFolder, Summarized, Summarizer, run_summarizer
from remora.errors import ConfigError
from remora.ports import SummaryGuard
from remora.snapshot import Snapshot

__all__ = [
    "BUILTIN_SUMMARIZERS",
    "FALLBACK",
    "MAX_DELTA_BYTES",
    "Distilled",
    "Imported",
    "LinterSummarizer",
    "OfFolder",
    "Summarized",
    "Summarizer",
    "SummarizerRegistry",
    "TestRunnerSummarizer",
    "ToolSidePassthrough",
    "Unguarded",
    "distill",
    "get_default_summarizers",
    "is_built_in",
    "summarize_guarded",
    "summarize_here",
]

SummarizerMode = Literal["tool_specific", "fallback"]


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


class SummarizerRegistry:
    """Summarizers by name: ours, those registered in Python, and those that installed packages offer."""

    def __init__(self, installed: Callable[[], Mapping[str, str]] = dict, *, outside: str = "") -> None:
        """`installed` gives import paths by name; it is asked only for a name that is not known otherwise.

        What an agent names by an import path must lie outside of the folder `outside`.
        """
        self._outside = outside
        self._registered: dict[str, Summarizer] = dict(BUILT_IN)
        self._installed = installed

    def register(self, name: str, summarizer: Summarizer) -> None:
        """Agent definitions may use `summarizer` by this name. Raises `ConfigError` for the name of a built-in one."""
        if name in BUILT_IN:
            raise ConfigError(f"`{name}` is the name of a built-in summarizer: expected another name")
        self._registered[name] = summarizer

    def get(self, name: str, files: Snapshot | None = None) -> Summarizer:
        """The summarizer of this name or import path, or of a file, `file.py:Name`, of the agent's `files`.

        Raises `ConfigError` that lists the known names.
        """
        if name in self._registered:
            return self._registered[name]
        if files is not None and name.partition(":")[0].endswith(".py"):
            return OfFolder(name, files)
        if ":" in name:
            return Imported(name, self._outside)
        installed = self._installed()
        if name in installed:
            return Imported(installed[name])
        known = ", ".join(f"`{known}`" for known in sorted({*self._registered, *installed}))
        raise ConfigError(f"Summarizer `{name}` is not known: expected one of {known}")

    def for_agent(
        self, names: Mapping[str, str], mode: SummarizerMode = "tool_specific", files: Snapshot | None = None
    ) -> dict[str, Summarizer]:
        """An agent's summarizers by tool: the defaults, then those its definition names. None in mode `fallback`."""
        named = {tool: self.get(name, files) for tool, name in names.items()}
        return get_default_summarizers() | named if mode == "tool_specific" else {}


class Unguarded:
    """Runs any summarizer right here, without limits: for summarizers that you wrote and know."""

    def check(self, tool: str, summarizer: Summarizer) -> None:
        return None

    async def run(self, summarizer: Summarizer, raw_result: Any) -> Summarized:
        return run_summarizer(summarizer, raw_result)


def is_built_in(summarizer: Summarizer) -> bool:
    """Whether it is ours: pure, bounded, and safe to run in this process."""
    return type(summarizer) in (BuiltIn, LinterSummarizer, TestRunnerSummarizer, ToolSidePassthrough)


def summarize_here(tool: str, value: Any, summarizers: Mapping[str, Summarizer]) -> Summarized | None:
    """What the tool's registered summarizer makes of `value`, in this process. None where it has none."""
    summarizer = summarizers.get(tool)
    if summarizer is None or says_enough(value):
        return None
    return _read_once(summarizer, raw_result_of(value))


async def summarize_guarded(
    tool: str,
    value: Any,
    summarizers: Mapping[str, Summarizer],
    guard: SummaryGuard,
    fallback: Summarizer | None = None,
) -> Summarized | None:
    """As `summarize_here`, with foreign summarizers behind the guard, and `fallback` for what is still without a line.

    The fallback runs right here and must be one of ours. It is asked only for text, lists and outputs of commands.
    """
    summarizer = summarizers.get(tool)
    if summarizer is None or is_built_in(summarizer) or says_enough(value):
        found = summarize_here(tool, value, summarizers)
    else:
        found = await guard.run(summarizer, raw_result_of(value))
    if (found and found.summary) or fallback is None or not _is_readable(value):
        return found
    general = _read_once(fallback, raw_result_of(value))
    return replace(general, problems=found.problems) if found else general


def _read_once(summarizer: Summarizer, raw_result: Any) -> Summarized:
    """A built-in summarizer gives summary, knowledge and excerpts from one reading; another is asked for each."""
    return summarizer.read(raw_result) if isinstance(summarizer, BuiltIn) else run_summarizer(summarizer, raw_result)


def _is_readable(value: Any) -> bool:
    """Whether the generic summarizers can say more than that the tool was run."""
    if isinstance(value, Mapping) and (value.get("summary") or value.get("_summary")):
        return False
    raw_result = raw_result_of(value)
    return isinstance(raw_result, str | list) or (isinstance(raw_result, Mapping) and "stdout" in raw_result)
