"""The budget: which parts of a packet a prompt shows when not all of them fit.

The packet itself is never shrunk, only what is shown of it. Parts go in a fixed order, one by one, until the rest
fits: older excerpts, oldest actions, the last action's long summary, unpinned knowledge by age, hub facts, extensions,
diagnostics, candidates beyond the first, state summary, node summary, pinned knowledge, the last excerpt and the last
candidate. Goal, target, constraints, last error and newest action are cut to their caps and never go, so a limit that
holds `RESERVED` beside the fixed text holds every packet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from remora.context.models import DecisionPacket
from remora.context.text import one_line
from remora.errors import BudgetError

GOAL_CAP = 50
"""Tokens that the goal may take, and below the other parts that never go."""
TARGET_CAP = 45
CONSTRAINTS_CAP = 50
ERROR_CAP = 50
ACTION_CAP = 64
SHORT_ACTION_CAP = 24
TEMPLATE = 220
"""Tokens of the JSON around the parts, with every field present and something left out of each."""
_CAPS = GOAL_CAP + TARGET_CAP + CONSTRAINTS_CAP + ERROR_CAP + ACTION_CAP
RESERVED = _CAPS + TEMPLATE

Count = Callable[[str], int]
"""How many tokens a text takes."""

_EMPTIEST = orjson.dumps(
    {
        **dict.fromkeys(("goal", "operation", "node_id", "last_error"), ""),
        "constraints": {"max_turns": 10**6, "safety": ""},
        "recent_actions": [{"tool": "", "summary": "", "outcome": "partial"}],
        "left_out": {
            "excerpts": 3, "recent_actions": 9, "summaries": 1, "knowledge": 10**6, "hub_context": 10**5,
            "extensions": 999, "diagnostics": 8, "candidate_actions": 999, "state_summary": 1, "node_summary": 1,
        },
        "turn": 10**6,
    }
).decode()  # fmt: skip
"""The JSON that is left when all has gone that may go."""
_SEAMS = 16
"""Where two texts meet, their tokens together may be a few more than apart."""

PARTS = 8
"""Parts of a packet that one token can stand for at the very most."""
_BY_KEY = ("knowledge", "hub_context", "extensions")
"""Fields that may hold any number of parts."""

Step = tuple[str, Any]
"""What to leave out next: a field of the packet, and which part of it."""


@dataclass(frozen=True)
class Early:
    """What goes without being tried: the parts that the packet still holds, and how many of which field."""

    out: set[Step]
    left_out: Counter[str]


@dataclass(frozen=True)
class Fitted:
    """The sections of a packet that fit, and how many parts of which field were left out."""

    sections: dict[str, Any]
    left_out: dict[str, int]


def reserved(count: Count) -> int:
    """What is kept free for the parts that never go: more than `RESERVED` only by a tokenizer that knows few words."""
    return max(RESERVED, _CAPS + count(_EMPTIEST) + _SEAMS)


def check_limit(fixed: int, limit: int, count: Count | None = None) -> None:
    """Raises `BudgetError` if a prompt with `fixed` tokens around the packet could ever be over `limit`."""
    kept = reserved(count) if count else RESERVED
    if fixed + kept > limit:
        raise BudgetError(
            f"The prompt limit of {limit} tokens is too small: the system text and tools take {fixed}, "
            f"and {kept} are reserved for what is always shown",
            hint="Raise `runner.memory.packet_size_limit`, or shorten the system prompt and the tools' descriptions",
        )


def fit(packet: DecisionPacket, measure: Callable[[dict[str, Any]], int], limit: int, count: Count) -> Fitted:
    """As much of the packet as `measure` finds within `limit`. Raises `BudgetError` if nothing more can go."""
    count = cache(count)  # the parts that never go are cut again for every try
    packet, early, steps = _without_what_must_go(packet, list(shrink_steps(packet)), limit)
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        if measure(_view(packet, early, steps[:middle], count).sections) <= limit:
            high = middle
        else:
            low = middle + 1
    # Leaving a part out also adds its count to the prompt, so the search may end a step early.
    for taken in range(low, len(steps) + 1):
        fitted = _view(packet, early, steps[:taken], count)
        if measure(fitted.sections) <= limit:
            return fitted
    raise BudgetError(f"The prompt is over its limit of {limit} tokens with everything left out that may go")


def _without_what_must_go(
    packet: DecisionPacket, steps: list[Step], limit: int
) -> tuple[DecisionPacket, Early, list[Step]]:
    """The packet without what can never fit beside so many others, the steps that took it, and those still to try.

    Every part takes four characters or more, so `limit` tokens hold no more than `limit * PARTS` of them. Only then is
    the time for a prompt independent of how much is known.
    """
    sure = max(0, len(steps) - limit * PARTS)
    if not sure:
        return packet, Early(set(), Counter()), steps
    early = steps[:sure]
    gone = {step for step in early if step[0] in _BY_KEY}
    packet = packet.model_copy(
        update={
            "knowledge": {key: entry for key, entry in packet.knowledge.items() if ("knowledge", key) not in gone},
            "hub_context": {
                node: fact for node, fact in (packet.hub_context or {}).items() if ("hub_context", node) not in gone
            },
            "extensions": {key: part for key, part in packet.extensions.items() if ("extensions", key) not in gone},
        }
    )
    rest = {step for step in early if step[0] not in _BY_KEY}
    return packet, Early(rest, Counter(field for field, _ in early)), steps[sure:]


def cut(text: str, cap: int, count: Count) -> str:
    """The longest beginning of `text`, as one line, that takes at most `cap` tokens."""
    text = one_line(text)
    # Counted as the prompt will hold it, quotes and escapes included.
    if count(orjson.dumps(text).decode()) <= cap:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count(orjson.dumps(text[:middle].rstrip() + "…").decode()) <= cap
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[:low].rstrip() + "…"


def shrink_steps(packet: DecisionPacket) -> Iterator[Step]:
    """Everything that may go, in the order in which it goes."""
    by_age = sorted(packet.knowledge.values(), key=lambda entry: entry.source_turn)
    yield from (("excerpts", excerpt.label) for excerpt in packet.excerpts[:-1])
    yield from (("recent_actions", index) for index in range(len(packet.recent_actions) - 1))
    yield from (("summaries", None) for _ in packet.recent_actions[-1:])
    yield from (("knowledge", entry.key) for entry in by_age if not entry.pinned)
    yield from (("hub_context", node) for node in packet.hub_context or ())
    yield from (("extensions", key) for key in packet.extensions)
    yield from (("diagnostics", index) for index in range(len(packet.diagnostics)))
    yield from (("candidate_actions", index) for index in range(len(packet.candidate_actions) - 1, 0, -1))
    yield from (("state_summary", None) for _ in range(bool(packet.state_summary)))
    yield from (("node_summary", None) for _ in range(bool(packet.node_summary)))
    yield from (("knowledge", entry.key) for entry in by_age if entry.pinned)
    yield from (("excerpts", excerpt.label) for excerpt in packet.excerpts[-1:])
    yield from (("candidate_actions", 0) for _ in packet.candidate_actions[:1])


def _view(packet: DecisionPacket, early: Early, gone: Sequence[Step], count: Count) -> Fitted:
    """The packet as a prompt shows it without the parts that are `gone`: slow-changing fields first, newest last."""
    out = early.out | set(gone)
    left_out = dict(early.left_out + Counter(field for field, _ in gone))
    sections: dict[str, Any] = {
        "goal": cut(packet.goal, GOAL_CAP, count),
        "operation": cut(packet.operation, TARGET_CAP // 3, count),
        "node_id": cut(packet.node_id, TARGET_CAP * 2 // 3, count),
        "node_summary": "" if ("node_summary", None) in out else packet.node_summary,
        "constraints": _constraints(packet, count),
        "excerpts": [
            {"label": excerpt.label, "start_line": excerpt.start_line, "text": excerpt.text}
            for excerpt in packet.excerpts
            if excerpt.text and ("excerpts", excerpt.label) not in out
        ],
        "hub_context": {
            node: fact for node, fact in (packet.hub_context or {}).items() if ("hub_context", node) not in out
        },
        "extensions": {key: value for key, value in packet.extensions.items() if ("extensions", key) not in out},
        "knowledge": {key: entry.value for key, entry in packet.knowledge.items() if ("knowledge", key) not in out},
        "state_summary": "" if ("state_summary", None) in out else packet.state_summary,
        "recent_actions": _actions(packet, out, count),
        "diagnostics": [line for index, line in enumerate(packet.diagnostics) if ("diagnostics", index) not in out],
        "last_error": cut(packet.last_error, ERROR_CAP, count) if packet.last_error else None,
        "candidate_actions": [
            action.model_dump(exclude_defaults=True)
            for index, action in enumerate(packet.candidate_actions)
            if ("candidate_actions", index) not in out
        ],
        "left_out": left_out,
        "turn": packet.turn,
    }
    return Fitted({name: part for name, part in sections.items() if part not in ("", None, [], {})}, left_out)


def _constraints(packet: DecisionPacket, count: Count) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if packet.constraints.max_turns is not None:
        shown["max_turns"] = packet.constraints.max_turns
    safety = cut("; ".join(packet.constraints.safety), CONSTRAINTS_CAP, count)
    return shown | ({"safety": safety} if safety else {})


def _actions(packet: DecisionPacket, out: set[Step], count: Count) -> list[dict[str, Any]]:
    newest = len(packet.recent_actions) - 1
    cap = SHORT_ACTION_CAP if ("summaries", None) in out else ACTION_CAP * 3 // 4
    return [
        {
            "tool": cut(action.tool, ACTION_CAP // 4, count),
            "summary": cut(action.summary, cap, count) if index == newest else action.summary,
            "outcome": action.outcome,
        }
        for index, action in enumerate(packet.recent_actions)
        if ("recent_actions", index) not in out
    ]
