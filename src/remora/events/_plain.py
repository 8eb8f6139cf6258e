"""The deltas that nearly all tool results have, read without building models of their parts.

Only whether a stored delta is of this kind is decided here, by the types of its parts. Any other, good or bad, is read
as a `PacketDelta`; what both can read has the same fields and folds to the same packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from remora.events._delta import DELTA_VERSION, Outcome

_PARTS = frozenset({"action", "knowledge", "error"})
_ACTION = ("tool", "summary", "outcome")
_OUTCOMES = frozenset({"success", "error", "partial"})


class PlainAction(NamedTuple):
    tool: str
    summary: str
    outcome: Outcome
    nodes: tuple[str, ...] = ()


class PlainKnowledge(NamedTuple):
    value: Any
    supersedes: None = None
    pinned: bool = False


class PlainError(NamedTuple):
    set: str | None = None
    clear: bool = False


_CLEARED = PlainError(clear=True)


class PlainDelta(NamedTuple):
    """An action, new values and an error, and nothing else."""

    action: PlainAction | None = None
    knowledge: Mapping[str, PlainKnowledge] = {}
    error: PlainError | None = None
    diagnostics: tuple[str, ...] = ()
    candidate_actions: None = None
    state_summary: None = None
    excerpts: tuple[()] = ()
    hub: None = None
    extensions: Mapping[str, Any] = {}
    v: int = DELTA_VERSION


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
    return PlainDelta(action, knowledge, error and _CLEARED)


def _action(stored: Any) -> PlainAction | None:
    if type(stored) is not dict or len(stored) != len(_ACTION):
        return None
    tool, summary, outcome = map(stored.get, _ACTION)
    if type(tool) is str and type(summary) is str and type(outcome) is str and outcome in _OUTCOMES:
        return PlainAction(tool, summary, cast(Outcome, outcome))
    return None


def _clears(stored: Any) -> bool:
    return type(stored) is dict and len(stored) == 1 and stored.get("clear") is True
