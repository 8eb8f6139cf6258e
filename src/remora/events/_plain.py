"""The deltas of nearly all tool results, read without building pydantic models.

`plain_delta` only decides, by the types of its parts, whether a stored delta is of this kind. Any other, valid or not,
is read as a `PacketDelta`. If both can read it, they have the same fields and fold to the same packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

from remora.events._delta import Outcome

_PARTS = frozenset({"action", "knowledge", "error"})
_ACTION = ("tool", "summary", "outcome")
_OUTCOMES = frozenset({"success", "error", "partial"})


@dataclass(slots=True)
class PlainAction:
    """Like `ActionDelta`, without nodes."""

    tool: str
    summary: str
    outcome: Outcome
    nodes: ClassVar[tuple[str, ...]] = ()


@dataclass(slots=True)
class PlainKnowledge:
    """Like `KnowledgeDelta`, with only a value."""

    value: Any
    supersedes: ClassVar[None] = None
    pinned: ClassVar[bool] = False


@dataclass(slots=True)
class PlainError:
    """Like `ErrorDelta` with `clear`."""

    set: ClassVar[None] = None
    clear: ClassVar[bool] = True


_CLEARED = PlainError()


@dataclass(slots=True)
class PlainDelta:
    """Like `PacketDelta`, with only an action, new values and a cleared error."""

    action: PlainAction
    knowledge: dict[str, PlainKnowledge]
    error: PlainError | None
    diagnostics: ClassVar[tuple[str, ...]] = ()
    candidate_actions: ClassVar[None] = None
    state_summary: ClassVar[None] = None
    excerpts: ClassVar[tuple[()]] = ()
    hub: ClassVar[None] = None
    extensions: ClassVar[dict[str, Any]] = {}
    evidence: ClassVar[None] = None


def plain_delta(stored: Any) -> PlainDelta | None:
    """The stored delta, if it is of this kind; else None."""
    if type(stored) is not dict or not stored.keys() <= _PARTS:
        return None
    action, known, error = _action(stored.get("action")), stored.get("knowledge", {}), stored.get("error")
    if action is None or type(known) is not dict or (error is not None and not _clears(error)):
        return None
    knowledge: dict[str, PlainKnowledge] = {}
    for key, item in known.items():
        if type(item) is not dict or len(item) != 1 or "value" not in item:
            return None
        knowledge[key] = PlainKnowledge(item["value"])
    return PlainDelta(action, knowledge, _CLEARED if error else None)


def _action(stored: Any) -> PlainAction | None:
    if type(stored) is not dict or len(stored) != len(_ACTION):
        return None
    tool, summary, outcome = map(stored.get, _ACTION)
    if type(tool) is str and type(summary) is str and type(outcome) is str and outcome in _OUTCOMES:
        return PlainAction(tool, summary, cast(Outcome, outcome))
    return None


def _clears(stored: Any) -> bool:
    return type(stored) is dict and len(stored) == 1 and stored.get("clear") is True
