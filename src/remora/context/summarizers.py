"""Summarizers turn a tool's result into one line, knowledge and excerpts.

A tool's own summary takes precedence over the summarizer registered for it, which takes precedence over a generic line.
The event stores the result, so changing a summarizer never changes past runs. Built-in summarizers are pure functions
and run in this process. All others run behind the `SummaryGuard` port, with enforced limits.
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
    states_outcome,
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
    "raw_result_of",
    "states_outcome",
    "summarize_guarded",
    "summarize_here",
]

SummarizerMode = Literal["tool_specific", "fallback"]


class ToolSidePassthrough(Summarizer):
    """Uses the tool's own `summary` or `message`."""

    def summarize(self, raw_result: Any) -> str:
        result = raw_result if isinstance(raw_result, Mapping) else {}
        return str(result.get("summary", result.get("message", "Tool completed")))

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return dict(raw_result.get("knowledge_delta", {})) if isinstance(raw_result, Mapping) else {}


class LinterSummarizer(Summarizer):
    """For results with `errors` (a list) and `fixed` (a number)."""

    def fits(self, raw_result: Any) -> bool:
        """Whether the result has what is summarized here."""
        return isinstance(raw_result, Mapping) and (
            isinstance(raw_result.get("errors"), list | tuple) or _is_number(raw_result.get("fixed"))
        )

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


_COUNTS = ("passed", "failed", "tests_passed", "tests_failed")


class TestRunnerSummarizer(Summarizer):
    """For results with the numbers `passed` and `failed`, or `tests_passed` and `tests_failed`."""

    __test__ = False  # pytest would collect a class of this name, which the specification requires

    def fits(self, raw_result: Any) -> bool:
        """Whether the result has what is summarized here."""
        named = any(name in raw_result for name in _COUNTS) if isinstance(raw_result, Mapping) else False
        return named and all(map(_is_number, self._counts(raw_result)))

    def summarize(self, raw_result: Any) -> str:
        if not isinstance(raw_result, Mapping):
            return "Ran tests"
        passed, failed = self._counts(raw_result)
        total = passed + failed
        return f"{failed} of {total} tests failed" if failed else f"All {total} tests passed"

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        if not isinstance(raw_result, Mapping):
            return {}
        passed, failed = self._counts(raw_result)
        return {"tests_passed": passed, "tests_failed": failed}

    @staticmethod
    def _counts(raw_result: Mapping[str, Any]) -> tuple[Any, Any]:
        passed = raw_result.get("passed", raw_result.get("tests_passed", 0))
        return passed, raw_result.get("failed", raw_result.get("tests_failed", 0))


BUILTIN_SUMMARIZERS: dict[str, Summarizer] = {
    "run_linter": LinterSummarizer(),
    "apply_fix": LinterSummarizer(),
    "run_tests": TestRunnerSummarizer(),
}


def get_default_summarizers() -> dict[str, Summarizer]:
    """A new dict of the built-in summarizers by tool name."""
    return BUILTIN_SUMMARIZERS.copy()


class SummarizerRegistry:
    """Summarizers by name: built-in ones, registered ones, and entry points of installed packages."""

    def __init__(self, installed: Callable[[], Mapping[str, str]] = dict, *, outside: str = "") -> None:
        """`installed` returns import paths by name. It is called only for names that are not registered.

        A module that an agent names by import path must be outside the folder `outside`.
        """
        self._outside = outside
        self._registered: dict[str, Summarizer] = dict(BUILT_IN)
        self._installed = installed

    def register(self, name: str, summarizer: Summarizer) -> None:
        """Make `summarizer` available to agent definitions. Raises `ConfigError` for the name of a built-in one."""
        if name in BUILT_IN:
            raise ConfigError(f"`{name}` is the name of a built-in summarizer: expected another name")
        self._registered[name] = summarizer

    def get(self, name: str, files: Snapshot | None = None) -> Summarizer:
        """Find a summarizer by name, by import path, or as `file.py:Name` in the agent's `files`.

        Raises `ConfigError`, which lists the known names.
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
        """An agent's summarizers by tool: the defaults and those of its definition. Empty in mode `fallback`."""
        named = {tool: self.get(name, files) for tool, name in names.items()}
        return get_default_summarizers() | named if mode == "tool_specific" else {}


class Unguarded:
    """Runs any summarizer in this process, without limits. Use it only for code that you trust."""

    def check(self, tool: str, summarizer: Summarizer) -> None:
        return None

    async def run(self, summarizer: Summarizer, raw_result: Any) -> Summarized:
        return run_summarizer(summarizer, raw_result)


def is_built_in(summarizer: Summarizer) -> bool:
    """Whether it is built in, and therefore safe to run in this process."""
    return type(summarizer) in (BuiltIn, LinterSummarizer, TestRunnerSummarizer, ToolSidePassthrough)


def is_summarized(tool: str, value: Any, summarizers: Mapping[str, Summarizer]) -> bool:
    """Whether the tool has a summarizer for such a result.

    The built-in ones for tests and linters go by the tool's name, and any program may have a tool of that name: a
    result without their fields is not theirs, because they would say that there is no failure.
    """
    summarizer = summarizers.get(tool)
    if isinstance(summarizer, LinterSummarizer | TestRunnerSummarizer) and is_built_in(summarizer):
        return summarizer.fits(raw_result_of(value))
    return summarizer is not None


def summarize_here(tool: str, value: Any, summarizers: Mapping[str, Summarizer]) -> Summarized | None:
    """Run the tool's registered summarizer in this process. None if there is none, or if the tool summarized itself."""
    summarizer = summarizers.get(tool)
    if summarizer is None or says_enough(value) or not is_summarized(tool, value, summarizers):
        return None
    return _summarize(summarizer, raw_result_of(value))


async def summarize_guarded(
    tool: str,
    value: Any,
    summarizers: Mapping[str, Summarizer],
    guard: SummaryGuard,
    fallback: Summarizer | None = None,
) -> Summarized | None:
    """Like `summarize_here`, but runs other than built-in summarizers behind the guard.

    If there is still no summary, `fallback` summarizes text, lists and command outputs. It must be built in, because it
    runs in this process.
    """
    summarizer = summarizers.get(tool)
    if summarizer is None or is_built_in(summarizer) or says_enough(value):
        summarized = summarize_here(tool, value, summarizers)
    else:
        summarized = await guard.run(summarizer, raw_result_of(value))
    if (summarized and summarized.summary) or fallback is None or not _has_text(value):
        return summarized
    general = _summarize(fallback, raw_result_of(value))
    return replace(general, problems=summarized.problems) if summarized else general


def _summarize(summarizer: Summarizer, raw_result: Any) -> Summarized:
    """Summarize the result. A built-in summarizer reads it only once; others have a method for each part."""
    return summarizer.read(raw_result) if isinstance(summarizer, BuiltIn) else run_summarizer(summarizer, raw_result)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _has_text(value: Any) -> bool:
    """Whether the result has no summary and is text, a list or a command's output."""
    if isinstance(value, Mapping) and (value.get("summary") or value.get("_summary")):
        return False
    raw_result = raw_result_of(value)
    return isinstance(raw_result, str | list) or (isinstance(raw_result, Mapping) and "stdout" in raw_result)
