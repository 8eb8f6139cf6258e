"""The deltas that nearly all tool results have, read without building models of their parts.

Only whether a stored delta is of this kind is decided here, by the types of its parts. Any other, good or bad, is read
as a `PacketDelta`; what both can read has the same fields and folds to the same packet.
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
    """As `ActionDelta`, of a call that names no nodes."""

    tool: str
    summary: str
    outcome: Outcome
    nodes: ClassVar[tuple[str, ...]] = ()


@dataclass(slots=True)
class PlainKnowledge:
    """As `KnowledgeDelta`, of a value alone."""

    value: Any
    supersedes: ClassVar[None] = None
    pinned: ClassVar[bool] = False


@dataclass(slots=True)
class PlainError:
    """As `ErrorDelta`, where it clears."""

    set: ClassVar[None] = None
    clear: ClassVar[bool] = True


_CLEARED = PlainError()


@dataclass(slots=True)
class PlainDelta:
    """As `PacketDelta`, of an action, new values and a cleared error, and nothing else."""

    action: PlainAction
    knowledge: dict[str, PlainKnowledge]
    error: PlainError | None
    diagnostics: ClassVar[tuple[str, ...]] = ()
    candidate_actions: ClassVar[None] = None
    state_summary: ClassVar[None] = None
    excerpts: ClassVar[tuple[()]] = ()
    hub: ClassVar[None] = None
    extensions: ClassVar[dict[str, Any]] = {}


def plain_delta(stored: Any) -> PlainDelta | None:
    """The stored delta, if it is plain."""
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
