"""Which records of a Codex rollout belong to the session as it ended.

A person who goes back takes the last prompts out of the history (`thread_rolled_back`). A sub-agent that begins with
its parent's history has a copy of it before its own records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.analysis.logs._blocks import text_of, type_of
from remora.analysis.logs._messages import META_STARTS

_TASK = "Message Type: NEW_TASK"
"""How a message between agents begins that gives the recipient its task."""
_ROLLED_BACK = "thread_rolled_back"


def is_inherited(record: Mapping[str, Any], meta: Mapping[str, Any]) -> bool:
    """Whether a record is part of the history that a sub-agent was given by its parent."""
    start, own = meta.get("subagent_history_start_ordinal"), record.get("ordinal")
    return isinstance(start, int) and isinstance(own, int) and own < start


def is_task(text: str) -> bool:
    """Whether a message between agents gives the recipient its task."""
    return text.startswith(_TASK)


def rolled_back(record: Mapping[str, Any]) -> int:
    """How many prompts a record takes back."""
    payload = record.get("payload")
    if not isinstance(payload, Mapping) or type_of(payload) != _ROLLED_BACK:
        return 0
    count = payload.get("num_turns")
    return count if isinstance(count, int) and count > 0 else 0


class Prompts:
    """Assigns every record to a segment: a prompt and everything up to the next one. Segment 0 is before the first."""

    def __init__(self, by_events: bool) -> None:
        self._by_events = by_events
        self._count = 0
        self._live = [0]
        self.left: list[frozenset[int]] = []
        """The segments of every branch that was left, in the order in which they were left."""

    def segment(self, record: Mapping[str, Any]) -> int:
        """The segment of the next record of the file."""
        if taken := min(rolled_back(record), len(self._live) - 1):
            self.left.append(frozenset(self._live[-taken:]))
            del self._live[-taken:]
        elif self._is_prompt(record):
            self._count += 1
            self._live.append(self._count)
        return self._live[-1]

    def live(self) -> frozenset[int]:
        """The segments that the session ended with."""
        return frozenset(self._live)

    def _is_prompt(self, record: Mapping[str, Any]) -> bool:
        payload = record.get("payload")
        if not isinstance(payload, Mapping):
            return False
        if self._by_events:
            return type_of(payload) == "user_message"
        text = text_of(payload.get("content"))
        if type_of(payload) == "agent_message":
            return is_task(text)
        return payload.get("role") == "user" and bool(text) and not text.startswith(META_STARTS)
