"""What every contender has to keep: the outputs of a linter, seeded, the same for each of them.

Imports nothing of Remora: the peer runs in an environment of its own.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import orjson

SEED = 20261115
RULES = {
    "F841": "Local variable `{}` is assigned to but never used",
    "UP006": "Use `list` instead of `List` for the type annotation of `{}`",
    "E711": "Comparison to `None` should be `cond is None`: `{}`",
    "SIM102": "Use a single `if` statement instead of nested `if` statements around `{}`",
    "B006": "Do not use mutable data structures for argument defaults: `{}`",
}
NAMES = ("order", "basket", "customer", "price_list", "discount", "invoice", "shipment", "warehouse")


class Case(NamedTuple):
    """How many turns, and how large the tool's output is in each."""

    turns: int
    kb: float

    def __str__(self) -> str:
        return f"{self.turns:,} turns × {self.kb:g} KB"


def output(turn: int, kb: float) -> dict[str, Any]:
    """What the tool returns in this turn: about `kb` kilobytes as JSON, different in every turn."""
    chance = random.Random(f"{SEED}:{turn}:{kb}")
    errors: list[dict[str, Any]] = []
    size = 30
    while not errors or size + 200 < kb * 1000:
        errors.append(_diagnostic(chance))
        size += len(orjson.dumps(errors[-1])) + 1
    return {"errors": errors, "fixed": turn % 3}


def size_of(value: Any) -> int:
    """Bytes of the value as JSON."""
    return len(orjson.dumps(value))


def answer(turn: int) -> str:
    """What the model says in this turn."""
    return f"I will run the linter on src/shop/{NAMES[turn % len(NAMES)]}.py to see what is left after the last fix."


def _diagnostic(chance: random.Random) -> dict[str, Any]:
    code, text = chance.choice(list(RULES.items()))
    row, column = chance.randrange(1, 900), chance.randrange(1, 80)
    name = chance.choice(NAMES)
    return {
        "code": code,
        "filename": f"/home/dev/shop/src/shop/{chance.choice(NAMES)}.py",
        "location": {"row": row, "column": column},
        "end_location": {"row": row, "column": column + len(name)},
        "fix": {"applicability": "safe", "edits": [{"content": f"{name}_{row}"}], "message": f"Replace `{name}`"},
        "message": text.format(f"{name}_{chance.randrange(10_000)}"),
        "noqa_row": row,
        "url": f"https://docs.astral.sh/ruff/rules/{code.lower()}",
    }
