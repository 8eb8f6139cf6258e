"""Summarizers for test runs: pytest's text and JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from remora.context._summaries._base import EXCERPT_LINES, excerpt, lines_of, text_of
from remora.context._summaries._xml import Case, read_cases
from remora.context.summary import Summarized
from remora.context.text import number, one_line

_COUNT = re.compile(r"(\d{1,9}) ([a-z]{1,20})( [a-z]{1,20})?")
_END = re.compile(r"(.{1,300}) in \d{1,9}(?:\.\d{1,9})?s\b")
_TITLE = re.compile(r"_{2,} (?:ERROR \S{1,20} (?:of |at )?)?(.{1,200}?) _{2,}$")
MAX_NAMES = 10


@dataclass(frozen=True)
class _Run:
    """Counts of tests by outcome, and the failed ones."""

    counts: Mapping[str, int]
    bad: Sequence[tuple[str, str]]
    """Name and reason."""

    def summarize(self, shown: tuple[dict[str, Any], ...]) -> Summarized:
        failed, errors = self.counts.get("failed", 0), self.counts.get("error", 0)
        knowledge: dict[str, Any] = {"tests_passed": self.counts.get("passed", 0), "tests_failed": failed}
        knowledge |= {"tests_errors": errors} if errors else {}
        knowledge |= {"failing_tests": [name[:160] for name, _ in self.bad[:MAX_NAMES]]} if self.bad else {}
        return Summarized(self.line(failed, errors), knowledge, shown)

    def line(self, failed: int, errors: int) -> str:
        total = self.counts.get("passed", 0) + failed
        parts = [f"{failed} of {total} tests failed"] if failed else []
        parts += [number(errors, "error")] if errors else []
        everything = "All " if total > 1 and not parts else ""
        parts += [f"{everything}{number(total, 'test')} passed"] if total and not failed else []
        parts += [f"{self.counts['skipped']} skipped"] if self.counts.get("skipped") else []
        line = ", ".join(parts) or "No tests ran"
        if not self.bad:
            return line
        name, reason = self.bad[0]
        return f"{line}; first: {one_line(name, 80)}" + (f" ({one_line(reason, 70)})" if reason else "")


def read_pytest(raw: Any) -> Summarized | None:
    """The text output of pytest, quiet or not."""
    text = text_of(raw)
    if text is None or " in " not in text:
        return None
    lines = lines_of(text)
    counts = next((each for line in reversed(lines[-60:]) if (each := _counts(line)) is not None), None)
    if counts is None:
        return None
    kinds = ("FAILED ", "ERROR ")
    bad = [_name_and_reason(line.removeprefix(kind)) for kind in kinds for line in lines if _names_a_test(line, kind)]
    return _Run(counts, bad).summarize(_first_failure(lines))


def _counts(line: str) -> dict[str, int] | None:
    """Parse pytest's last line, such as `== 1 failed, 2 passed in 0.12s ==`."""
    end = _END.match(line.strip("= ")[:400]) if " in " in line else None
    if end is None:
        return None
    if end[1] == "no tests ran":
        return {}
    matches = [_COUNT.fullmatch(part) for part in end[1].split(", ")]
    counts = {match[2]: int(match[1]) for match in matches if match}
    counts["error"] = counts.get("error", 0) + counts.pop("errors", 0)
    return counts if all(matches) else None


def _names_a_test(line: str, kind: str) -> bool:
    return line.startswith(kind) and (".py" in line or "::" in line)


def _name_and_reason(rest: str) -> tuple[str, str]:
    name, _, reason = rest.partition(" - ")
    return name, reason


def _first_failure(lines: list[str]) -> tuple[dict[str, Any], ...]:
    """The end of the first failing test's report, where pytest shows the failed assertion."""
    sections = [index for index, line in enumerate(lines) if line.startswith("===") and " FAILURES " in line]
    sections += [index for index, line in enumerate(lines) if line.startswith("===") and " ERRORS " in line]
    if not sections or sections[0] + 1 >= len(lines):
        return ()
    title = _TITLE.match(lines[sections[0] + 1])
    start = sections[0] + 2
    body = list(takewhile(lambda line: not line.startswith(("===", "___")), lines[start:]))
    skipped = max(0, len(body) - EXCERPT_LINES)
    return excerpt(f"failure of {title[1] if title else 'a test'}", body[skipped:], start + skipped + 1)


def read_junit(raw: Any) -> Summarized | None:
    """A JUnit XML report, as pytest and others write it."""
    text = text_of(raw)
    if text is None or "<testsuite" not in text[:4000]:
        return None
    cases = read_cases(text)
    if cases is None:
        return None
    counts = {kind: sum(case.kind == kind for case in cases) for kind in ("passed", "failed", "error", "skipped")}
    bad = sorted((case for case in cases if case.kind in ("failed", "error")), key=lambda case: case.kind != "failed")
    return _Run(counts, [(case.name, case.reason) for case in bad]).summarize(_report(bad))


def _report(bad: Sequence[Case]) -> tuple[dict[str, Any], ...]:
    if not bad:
        return ()
    body = lines_of(bad[0].text.strip("\n"))
    skipped = max(0, len(body) - EXCERPT_LINES)
    return excerpt(f"failure of {bad[0].name}", body[skipped:], skipped + 1)
