"""The facts of a case in the words of a rule, such as `newer is draft, with pages`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from remora.train.variety._dice import Dice
from remora.train.variety._scenarios import Case, Scenario


def tellable(scenario: Scenario) -> bool:
    """Whether the facts, said like this, tell every case from every other."""
    return all(case.facts for case in scenario.cases) and all(
        any(_apart(one.facts[key], other.facts[key]) for key in one.facts.keys() & other.facts.keys())
        for one, other in combinations(scenario.cases, 2)
    )


def condition(case: Case, scenario: Scenario, dice: Dice) -> str:
    """When it is this case. What can be anything is not spoken of."""
    said = [_said(key, told, dice) for key, told in case.facts.items() if not _open(key, told, scenario)]
    return dice.one((", ", " and ")).join(filter(None, said))


def arguments(case: Case, dice: Dice) -> str:
    """Where the arguments of its tool come from."""
    sources = {name: case.source(name) for name in case.takes}
    told = [
        key if name == key else f"{key} as {name}" for name, key in sources.items() if key not in ("", "item", "file")
    ]
    return dice.one((" with ", ", taking ")) + " and ".join(told) if told else ""


def _open(key: str, examples: Sequence[Any], scenario: Scenario) -> bool:
    every = {str(each) for case in scenario.cases for each in case.facts.get(key, ())}
    return {*map(str, examples)} == every


def _sort(examples: Sequence[Any]) -> str:
    if not all(type(each) is int for each in examples):
        return "words"
    if all(each == 0 for each in examples):
        return "none"
    return "some" if all(each > 0 for each in examples) else "any"


def _apart(some: Sequence[Any], others: Sequence[Any]) -> bool:
    sorts = {_sort(some), _sort(others)}
    if sorts == {"words"}:
        return not {*map(str, some)} & {*map(str, others)}
    return sorts == {"none", "some"}


def _said(key: str, examples: Sequence[Any], dice: Dice) -> str:
    sort = _sort(examples)
    if sort == "words":
        told = " or ".join(str(each).lower() if isinstance(each, bool) else str(each) for each in examples)
        return f"{key} is {told}" if dice.maybe(0.7) else f"{key} {told}"
    ways = {
        "none": (f"{key} 0", f"without {key}", f"no {key}"),
        "some": (f"{key} above 0", f"with {key}", f"any {key}"),
    }
    return dice.one(ways[sort]) if sort in ways else ""
