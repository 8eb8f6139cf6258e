"""Agents that tell things apart by their names alone, of kinds that were never put together before."""

from __future__ import annotations

import re

from remora.train.variety import _words as words
from remora.train.variety._dice import Dice
from remora.train.variety._scenarios import Case, Look, Scenario, scenarios
from remora.train.variety._working import Going
from remora.train.variety._world import World

_NEUTRAL = ("article", "item", "label", "piece", "record", "thing", "word")
_GENERAL = r"(?i)\b(?:other|others|else|rest|remaining|anything|everything)\b"
_ARGUMENT = r"\b(?:with|as|give|unit|no|without|in|under)\b|;"
"""Words of an order that speak of more than the thing itself."""
_REST = ("All others go to {tool}.", "{tool} is for everything else.", "What is none of these: {tool}.")
_STAY = ("All others stay.", "What is none of these is left as it is.", "Nothing is done about the rest.")


def mixing(dice: Dice) -> World:
    """An agent for two to four kinds of things that come from different work."""
    kinds = _kinds(dice, dice.number(2, 4))
    noun = dice.one(_NEUTRAL) if dice.maybe(0.7) else dice.noun()
    argument = dice.one(("name", "item", "which", "one", "what"))
    tools = list(dict.fromkeys(f"{dice.verb([*words.ACT, *words.WRITE])}_{dice.noun()}" for _ in range(12)))
    cases = [_case(kind, tools.pop(), argument, noun, dice) for kind in kinds]
    if len(cases) > 2 or dice.maybe(0.5):
        last = cases.pop()
        stays = dice.maybe(0.3)
        rest = {"orders": _STAY, "tool": ""} if stays else {"orders": _REST}
        cases.append(last.model_copy(update=rest))
    made = Scenario(
        name=f"{noun}_{dice.noun()}",
        shape="names",
        thing=noun,
        who=dice.one((f"You sort {noun}s, a tool at a time.", f"You look after {noun}s.", f"An agent for {noun}s.")),
        goals=(f"Sort the {noun}s of {{file}}", f"{{file}}: each {noun} where it belongs"),
        files=(dice.path(dice.one(("txt", "csv", "json", "py"))),),
        look=Look(name=f"{dice.verb(words.LOOK)}_{noun}s", says=f"List the {noun}s."),
        cases=tuple(cases),
        pile=dice.one(("unsorted", "open_ones", "found", "waiting", "new", f"{noun}s")),
    )
    return Going(dice, made, ordered=True)


def _kinds(dice: Dice, number: int) -> list[Case]:
    by_name = {name: each for name, each in scenarios().items() if each.shape == "names"}
    found: dict[str, Case] = {}
    while len(found) < number:
        scenario = dice.scenario(by_name)
        case = dice.one(scenario.cases)
        alike = any({*case.items} & {*other.items} for other in found.values())
        if case.tool and _plain(case) and not alike and not re.search(_GENERAL, case.rule):
            found[scenario.name] = case
    return list(found.values())


def _plain(case: Case) -> tuple[str, ...]:
    return tuple(order for order in case.orders if not re.search(_ARGUMENT, order))


def _case(kind: Case, tool: str, argument: str, noun: str, dice: Dice) -> Case:
    says = dice.one((f"For one kind of {noun}.", f"Take one {noun} there.", f"Handle one {noun}.", ""))
    return Case(
        items=kind.items,
        tool=tool,
        says=says,
        takes={argument: "item"},
        rule=kind.rule,
        orders=_plain(kind),
        done=dice.one((f"Did {tool} for {{item}}", "{item} is settled", "Done: {item}")),
    )
