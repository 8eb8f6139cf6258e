"""Reads the output of `git log`: the subject of a commit stands beside its hash."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_COMMIT = re.compile(r"commit ([0-9a-f]{40})( \(.*\))?")
_PATCH = ("diff --git ", "---", "@@ ")


def is_git_log(lines: Sequence[str]) -> bool:
    """Whether the lines are several commits without their patches, as `git log` prints them."""
    if not lines or not _COMMIT.fullmatch(lines[0]):
        return False
    commits = sum(1 for line in lines if _COMMIT.fullmatch(line))
    return commits > 1 and not any(line.startswith(_PATCH) for line in lines)


def commit_lines(lines: Sequence[str]) -> list[str]:
    """The lines, with each commit's subject beside its hash, so that one is not shown without the other."""
    starts = [at for at, line in enumerate(lines) if _COMMIT.fullmatch(line)]
    ends = [*starts[1:], len(lines)]
    return [line for start, end in zip(starts, ends, strict=True) for line in _commit(lines[start:end])]


def _commit(lines: Sequence[str]) -> Iterator[str]:
    subject = next((line for line in lines[1:] if line.startswith("    ") and line.strip()), "")
    yield f"{lines[0]}: {subject.strip()}" if subject else lines[0]
    yield from (line for line in lines[1:] if line is not subject)
