"""Branches of a Claude Code session that was rewound.

Every record names the one before it (`parentUuid`). If a person goes back to an earlier message and writes another one,
both follow the same record, and the file holds the abandoned branch before the live one. Results of parallel calls
follow the same reply too, so only people's messages open a branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.analysis.logs._blocks import kind_of

_REMEMBERED = 100_000
"""Records whose branch is remembered. What follows an older one is taken as going on."""
CONTINUED = "This session is being continued from a previous conversation"
"""How a summary begins that replaces the conversation so far. Older versions do not mark it in any other way."""


class Branches:
    """Assigns every record to a segment: a person's message and everything up to the next one on its branch."""

    def __init__(self) -> None:
        self._above: list[int] = [0]
        """The segment that each segment follows. Segment 0 is what comes before the first message."""
        self._at: dict[int, int] = {}
        self._last = 0
        self._linked = False
        """Whether any record has named an earlier one: some programs write no links."""

    def segment(self, record: Mapping[str, Any]) -> int:
        """The segment of the next record of the file."""
        if record.get("isSidechain"):
            return self._last
        above, own = record.get("parentUuid"), record.get("uuid")
        at = self._at.get(hash(above)) if isinstance(above, str) else None
        self._linked = self._linked or at is not None
        if _is_prompt(record):
            from_start = above is None and "parentUuid" in record and self._linked
            self._above.append(at if at is not None else 0 if from_start else self._last)
            at = len(self._above) - 1
        at = self._last if at is None else at
        if isinstance(own, str):
            self._at[hash(own)] = at
            if len(self._at) > _REMEMBERED:
                del self._at[next(iter(self._at))]
        self._last = at
        return at

    def live(self) -> frozenset[int]:
        """The segments of the branch that the session ended on."""
        at, found = self._last, {0}
        while at:
            found.add(at)
            at = self._above[at]
        return frozenset(found)

    def abandoned(self) -> list[frozenset[int]]:
        """The segments of every branch that was left, in the order in which they began."""
        live = self.live()
        branches: dict[int, set[int]] = {}
        root: dict[int, int] = {}
        for segment, above in enumerate(self._above):
            if segment not in live:
                root[segment] = segment if above in live else root[above]
                branches.setdefault(root[segment], set()).add(segment)
        return [frozenset(segments) for segments in branches.values()]


def _is_prompt(record: Mapping[str, Any]) -> bool:
    """Whether a person wrote the record, or a command of theirs."""
    message = record.get("message")
    if record.get("type") != "user" or record.get("isMeta") or record.get("isCompactSummary"):
        return False
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        return any(kind_of(part) != "tool_result" for part in content)
    return isinstance(content, str) and not content.startswith(CONTINUED)
