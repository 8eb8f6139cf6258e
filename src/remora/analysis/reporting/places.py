"""The places of problems: what a check lists, and its lines in the project's files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from remora.context.text import one_line

if TYPE_CHECKING:
    from remora.analysis.reporting.agent import AgentReport

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


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


def project_line(agent: AgentReport, line: int) -> int:
    """The line of the project's file that became `line` of the file as the agent left it."""
    file = agent.node.get("file")
    own = next((each.diff for each in agent.files if each.path == file and each.decision == "open"), "")
    return first_line(agent, line_before(own, line))


def first_line(agent: AgentReport, line: int) -> int:
    """The line of the project's file that became `line` of the file as the agent began with it."""
    return line_before(agent.began_with, max(1, line))


def line_before(diff: str, line: int) -> int:
    """The line of the old file that became `line` of the new one, by a unified diff.

    Of lines that were replaced, the first is the first. An added line is where it was added.
    """
    shift = old = new = inside = removed = 0
    for text in diff.split("\n"):
        if inside <= 0 and (hunk := _HUNK.match(text)):
            old, new = int(hunk[1]), int(hunk[3])
            inside = int(hunk[2] or 1) + int(hunk[4] or 1)
            removed = 0
            if line < new:
                break
        elif inside > 0 and text[:1] in (" ", "+", "-"):
            inside -= 2 if text[0] == " " else 1
            if text[0] != "-" and new == line:
                return max(1, old - (removed if text[0] == "+" else 0))
            removed = {"-": removed + 1, "+": max(0, removed - 1), " ": 0}[text[0]]
            old, new = old + (text[0] != "+"), new + (text[0] != "-")
            shift = old - new
    return max(1, line + shift)
