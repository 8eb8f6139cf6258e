"""The places of problems: what a check lists, and its lines in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remora.context.text import one_line


@dataclass(frozen=True, slots=True)
class Place:
    """The version of an agent's file to which its lines refer."""

    sha256: str = ""
    """Digest of that version; empty if it is not known, or if the file is gone."""
    lines: tuple[int, int] | None = None
    """The first and last line of the agent's node."""


def listed_problems(raw: Any) -> tuple[Mapping[str, Any], ...]:
    """The problems that a linter's result lists under `errors`, each with its place. Empty for other results."""
    result = raw.get("result") if isinstance(raw, Mapping) else None
    errors = result.get("errors") if isinstance(result, Mapping) else None
    found = []
    for item in errors if isinstance(errors, list) else ():
        place = item.get("location") if isinstance(item, Mapping) else None
        if isinstance(place, Mapping) and isinstance(place.get("row"), int):
            column = place.get("column")
            found.append(
                {
                    "code": one_line(str(item.get("code") or "")),
                    "message": one_line(str(item.get("message") or "")),
                    "row": max(1, place["row"]),
                    "column": column if isinstance(column, int) and column > 0 else 1,
                }
            )
    return tuple(found)


def line_now(problem: Mapping[str, Any]) -> int | None:
    """The line of a problem in the file as it is now; None if that line changed since the check.

    The line as the check saw it if the file was not looked at.
    """
    line: int | None = problem.get("line", problem["row"])
    return line


def node_lines(node: Mapping[str, Any]) -> tuple[int, int] | None:
    """The first and last line of a recorded node; None if they are not lines."""
    lines = node.get("lines")
    if not isinstance(lines, Sequence) or len(lines) != 2 or not all(isinstance(line, int) for line in lines):
        return None
    first = max(1, lines[0])
    return first, max(first, lines[1])
