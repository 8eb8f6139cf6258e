"""The budget: selects the parts of a packet that fit into a prompt.

It never changes the packet itself. It leaves out parts one by one, in a fixed order, until the rest fits: older
excerpts, oldest actions, the last action's long summary, unpinned knowledge by age, hub facts, extensions, diagnostics,
candidates after the first, state summary, node summary, pinned knowledge, the last excerpt and the last candidate.

Goal, target, constraints, last error and newest action are required: each is cut to a cap and never left out. Every
packet therefore fits if the limit leaves `RESERVED` tokens beside the fixed text. A goal that is longer than its cap
may take half of the tokens that are left beside all required parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from remora.context.models import FOR_DRAFTS, MAX_RECENT_ACTIONS, DecisionPacket, Excerpt, KnowledgeEntry
from remora.context.text import MAX_LINE, one_line
from remora.errors import BudgetError

GOAL_CAP = 50
"""Tokens that are reserved for the goal. The constants below are the caps of the other required parts."""
GOAL_SHARE = 0.5
"""A longer goal may take this share of what the limit leaves beside the required parts."""
GOAL_CHARACTERS = 8000
TARGET_CAP = 45
CONSTRAINTS_CAP = 50
ERROR_CAP = 50
ACTION_CAP = 64
SHORT_ACTION_CAP = 24
TEMPLATE = 220
"""Tokens of the JSON around the parts, with every field present and some of each left out."""
_CAPS = GOAL_CAP + TARGET_CAP + CONSTRAINTS_CAP + ERROR_CAP + ACTION_CAP
RESERVED = _CAPS + TEMPLATE

Count = Callable[[str], int]
"""Counts the tokens of a text."""

EMPTIEST: dict[str, Any] = {
    **dict.fromkeys(("goal", "operation", "node_id", "last_error"), ""),
    "constraints": {"max_turns": 10**6, "safety": ""},
    "recent_actions": [{"tool": "", "summary": "", "outcome": "partial"}],
    "left_out": {
        "excerpts": 3, "recent_actions": 9, "summaries": 1, "knowledge": 10**6, "hub_context": 10**5,
        "extensions": 999, "diagnostics": 8, "candidate_actions": 999, "state_summary": 1, "node_summary": 1,
    },
    "turn": 10**6,
}  # fmt: skip
"""The sections of a prompt with every optional part left out."""
_SEAMS = 16
"""Joined texts may take a few more tokens than the same texts counted apart."""

FIRST_SHOWN = 16
"""Number of optional parts in the first prompt that is tried for a packet that does not fit."""

CHUNK = 5
"""Actions leave the prompt in chunks of this many turns, so that the prefix before them stays cacheable longer."""

Run = tuple[str, int]
"""A field of the packet, and how many of its parts may be left out in a row."""


@dataclass(frozen=True)
class Fitted:
    """The sections of a packet that fit, and the number of parts left out, by field."""

    sections: dict[str, Any]
    left_out: dict[str, int]


def reserved(count: Count) -> int:
    """Tokens to reserve for the required parts. More than `RESERVED` only with a tokenizer of a small vocabulary."""
    return max(RESERVED, _CAPS + count(orjson.dumps(EMPTIEST).decode()) + _SEAMS)


def check_limit(
    fixed: int, limit: int, required: int = RESERVED, *, name: str = "runner.memory.packet_size_limit"
) -> None:
    """Raise `BudgetError` if a prompt with `fixed` tokens around the packet could exceed `limit`.

    `required` is the number of tokens to reserve for the required parts. `name` is what the reader calls the limit.
    """
    if fixed + required > limit:
        raise BudgetError(
            f"The prompt limit of {limit} tokens is too small: the system text and tools take {fixed}, "
            f"and {required} are reserved for what is always shown",
            hint=f"Raise `{name}` to {fixed + required} or more, or shorten the system text and tool descriptions",
        )


def fit(packet: DecisionPacket, measure: Callable[[dict[str, Any]], int], limit: int, count: Count) -> Fitted:
    """Select as much of the packet as fits into `limit` by `measure`. Raises `BudgetError` if too little fits."""
    runs = shrink_runs(packet)
    steps = sum(parts for _, parts in runs)
    view = _View(packet, count)
    if view.goal_is_cut:
        least = view.without(left_out_by(runs, steps))
        view.show_goal(GOAL_CAP + int(GOAL_SHARE * max(0, limit - measure(least.sections) - _SEAMS)))

    @cache
    def fits(taken: int) -> Fitted | None:
        fitted = view.without(left_out_by(runs, taken))
        return fitted if measure(fitted.sections) <= limit else None

    # Almost every part takes a token or more, so a packet with more parts than tokens is not tried as a whole.
    if steps <= limit and (whole := fits(0)):
        return whole
    low, high = _search_bounds(steps, lambda taken: fits(taken) is not None)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    # Leaving a part out also adds its count to the prompt, so the search may end a step early.
    for taken in range(low, steps + 1):
        if fitted := fits(taken):
            return fitted
    raise BudgetError(f"The prompt exceeds its limit of {limit} tokens even without its optional parts")


def _search_bounds(most: int, fits: Callable[[int], bool]) -> tuple[int, int]:
    """Bounds for the binary search. Found from small prompts upwards, because large ones are slow to measure."""
    high, shown = most, FIRST_SHOWN
    while (taken := most - shown) > 0:
        if not fits(taken):
            return taken + 1, high
        high, shown = taken, shown * 2
    return 0, high


def cut(text: str, cap: int, count: Count, *, most: int = MAX_LINE) -> str:
    """The longest beginning of `text`, as one line of at most `most` characters, that takes at most `cap` tokens."""
    text = one_line(text, most)
    if not text:
        return text
    # Count the text as JSON, with quotes and escapes, because that is what the prompt contains.
    if count(orjson.dumps(text).decode()) <= cap:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count(orjson.dumps(text[:middle].rstrip() + "…").decode()) <= cap
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[:low].rstrip() + "…"


def shrink_runs(packet: DecisionPacket) -> tuple[Run, ...]:
    """All optional parts, in the order in which they are left out."""
    excerpts, candidates = len(_prompt_excerpts(packet)), len(packet.candidate_actions)
    actions = len(packet.recent_actions) - out_of_window(packet)
    pinned = sum(entry.pinned for entry in packet.knowledge.values())
    return (
        ("excerpts", max(0, excerpts - 1)),
        ("recent_actions", max(0, actions - 1)),
        ("summaries", min(1, actions)),
        ("knowledge", len(packet.knowledge) - pinned),
        ("hub_context", len(packet.hub_context or ())),
        ("extensions", len(packet.extensions)),
        ("diagnostics", len(packet.diagnostics)),
        ("candidate_actions", max(0, candidates - 1)),
        ("state_summary", int(bool(packet.state_summary))),
        ("node_summary", int(bool(packet.node_summary))),
        ("knowledge", pinned),
        ("excerpts", min(1, excerpts)),
        ("candidate_actions", min(1, candidates)),
    )


def _prompt_excerpts(packet: DecisionPacket) -> list[Excerpt]:
    """The excerpts without those that only drafts show."""
    return [excerpt for excerpt in packet.excerpts if not excerpt.label.startswith(FOR_DRAFTS)]


def out_of_window(packet: DecisionPacket) -> int:
    """How many of the oldest actions to hide because the packet has already dropped others of the same chunk."""
    actions = packet.recent_actions
    if len(actions) < MAX_RECENT_ACTIONS or actions[0].turn % CHUNK == 0:
        return 0
    chunk = actions[0].turn // CHUNK
    same = sum(action.turn // CHUNK == chunk for action in actions)
    return same if same < CHUNK else 0


def left_out_by(runs: Iterable[Run], steps: int) -> dict[str, int]:
    """The number of parts left out after `steps` steps, by field."""
    gone: dict[str, int] = {}
    for field, parts in runs:
        if parts and steps > 0:
            gone[field] = gone.get(field, 0) + min(parts, steps)
        steps -= parts
    return gone


class _View:
    """A packet as prompts show it. Cuts the required parts once, so that each `without` is cheap."""

    def __init__(self, packet: DecisionPacket, count: Count) -> None:
        self._packet = packet
        self._count = count
        self._goal = cut(packet.goal, GOAL_CAP, count)
        self._operation = cut(packet.operation, TARGET_CAP // 3, count)
        self._node_id = cut(packet.node_id, TARGET_CAP * 2 // 3, count)
        self._constraints = _constraints(packet, count)
        self._last_error = cut(packet.last_error, ERROR_CAP, count) if packet.last_error else None
        self._hidden = out_of_window(packet)
        self._actions = _actions(packet, count)[self._hidden :]
        self._shortest = cut(packet.recent_actions[-1].summary, SHORT_ACTION_CAP, count) if self._actions else ""
        self._excerpts = _ranks([excerpt.label for excerpt in _prompt_excerpts(packet)])
        self._hub = list((packet.hub_context or {}).items())
        self._extensions = list(packet.extensions.items())
        self._knowledge = list(packet.knowledge.items())
        self._removal_order = _removal_order([entry for _, entry in self._knowledge])
        self._candidates = [action.model_dump(exclude_defaults=True) for action in packet.candidate_actions]

    def show_goal(self, cap: int) -> None:
        """Show as much of the goal as `cap` tokens hold."""
        self._goal = cut(self._packet.goal, cap, self._count, most=GOAL_CHARACTERS)

    @property
    def goal_is_cut(self) -> bool:
        return self._goal != one_line(self._packet.goal, GOAL_CHARACTERS)

    def without(self, left_out: dict[str, int]) -> Fitted:
        """The sections without the given parts. Fields that rarely change come first, the newest last."""
        packet, gone = self._packet, Counter(left_out)
        if self._hidden:
            left_out = left_out | {"recent_actions": gone["recent_actions"] + self._hidden}
        sections: dict[str, Any] = {
            "goal": self._goal,
            "operation": self._operation,
            "node_id": self._node_id,
            "node_summary": "" if gone["node_summary"] else packet.node_summary,
            "constraints": self._constraints,
            "hub_context": dict(self._hub[: len(self._hub) - gone["hub_context"]]),
            "extensions": dict(self._extensions[gone["extensions"] :]),
            "excerpts": self._shown_excerpts(gone["excerpts"]),
            "recent_actions": self._shown_actions(gone["recent_actions"], short=bool(gone["summaries"])),
            "knowledge": self._shown_knowledge(gone["knowledge"]),
            "state_summary": "" if gone["state_summary"] else packet.state_summary,
            "diagnostics": packet.diagnostics[gone["diagnostics"] :],
            "last_error": self._last_error,
            "candidate_actions": self._candidates[: max(0, len(self._candidates) - gone["candidate_actions"])],
            "left_out": left_out,
            "turn": packet.turn,
        }
        return Fitted({name: part for name, part in sections.items() if part not in ("", None, [], {})}, left_out)

    def _shown_excerpts(self, gone: int) -> list[dict[str, Any]]:
        return [
            {"label": excerpt.label, "start_line": excerpt.start_line, "text": excerpt.text}
            for excerpt in _prompt_excerpts(self._packet)
            if excerpt.text and self._excerpts[excerpt.label] >= gone
        ]

    def _shown_knowledge(self, gone: int) -> dict[str, Any]:
        shown = map(self._knowledge.__getitem__, sorted(self._removal_order[gone:]))
        return {key: entry.value for key, entry in shown}

    def _shown_actions(self, gone: int, *, short: bool) -> list[dict[str, Any]]:
        shown = self._actions[gone:]
        return [*shown[:-1], shown[-1] | {"summary": self._shortest}] if short else shown


def _ranks(keys: Iterable[str]) -> dict[str, int]:
    """The position of each key, by its first occurrence."""
    ranks: dict[str, int] = {}
    for rank, key in enumerate(keys):
        ranks.setdefault(key, rank)
    return ranks


def _removal_order(entries: Sequence[KnowledgeEntry]) -> list[int]:
    """Indices of the entries in the order in which they are left out: unpinned before pinned, oldest first."""
    turns, pinned = [entry.source_turn for entry in entries], [entry.pinned for entry in entries]
    by_age = sorted(range(len(entries)), key=turns.__getitem__)
    return sorted(by_age, key=pinned.__getitem__) if any(pinned) else by_age


def _constraints(packet: DecisionPacket, count: Count) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if packet.constraints.max_turns is not None:
        shown["max_turns"] = packet.constraints.max_turns
    safety = cut("; ".join(packet.constraints.safety), CONSTRAINTS_CAP, count)
    return shown | ({"safety": safety} if safety else {})


def _actions(packet: DecisionPacket, count: Count) -> list[dict[str, Any]]:
    newest = len(packet.recent_actions) - 1
    return [
        {
            "tool": cut(action.tool, ACTION_CAP // 4, count),
            "summary": cut(action.summary, ACTION_CAP * 3 // 4, count) if index == newest else action.summary,
            "outcome": action.outcome,
        }
        for index, action in enumerate(packet.recent_actions)
    ]
