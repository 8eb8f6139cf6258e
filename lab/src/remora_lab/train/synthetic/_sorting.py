"""Agents that handle several groups of things, each with a tool of its own, as one that synchronizes two lists does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._world import TEXT, CallResult, Schema, Step, World, described

_PILES = (
    "absent", "added", "changed", "clashing", "doubled", "early", "extra", "faulty", "fresh", "idle", "late", "loose",
    "mixed", "moved", "new", "old", "open", "outside", "overdue", "spare", "stale", "strange", "unchecked", "unpaid",
    "unsorted", "untold", "vacant", "waiting", "wanted", "worn",
)  # fmt: skip
_STAYING = (
    "accepted",
    "decided",
    "for_people",
    "frozen",
    "kept",
    "left_alone",
    "not_ours",
    "on_hold",
    "owned_by_others",
)


@dataclass
class _Pile:
    key: str
    tool: str
    left: list[str]
    kinds: dict[str, str]
    """The kind of each thing, where the tool wants a word that depends on it."""
    rule: dict[str, str]
    """The word for each kind."""


class Sorting(World):
    """Look; take each thing of each pile to the tool that is for this pile; leave what stays; submit."""

    def make(self) -> None:
        dice = self.dice
        self.noun = dice.noun()
        self.looks = self.tool(words.LOOK, f"{self.noun}s", described("look", self.noun))
        self.arg = dice.one(("name", "key", "id", "label", "which", "one", self.noun))
        self.word_arg = dice.one([each for each in ("section", "group", "under", "place", "kind") if each != self.arg])
        self.way = dice.one(("list", "map", "records"))
        """How a pile is shown whose things are of a kind."""
        marks = iter(dict.fromkeys(dice.code() for _ in range(24)))
        keys = dice.some(_PILES, 1, 3)
        self.piles = [self._pile(key, marks, ruled=number == 0 and dice.maybe(0.4)) for number, key in enumerate(keys)]
        self.ordered = any(pile.rule for pile in self.piles)
        self.staying = dice.one(_STAYING) if dice.maybe(0.35) else ""
        self.stays = list(islice(marks, dice.number(0, 3))) if self.staying else []
        self.count = dice.one(("left", "remaining", "total_open", f"{self.noun}s_left", "to_do", "differences"))
        self.gone: list[str] = []
        self.known = False

    def _pile(self, key: str, marks: Iterator[str], *, ruled: bool) -> _Pile:
        dice = self.dice
        left = list(islice(marks, dice.number(0, 4)))
        rule = _rule(dice) if ruled else {}
        args: dict[str, Schema] = {self.arg: TEXT}
        if rule:
            args[self.word_arg] = {"enum": sorted(set(rule.values()))} if dice.maybe(0.7) else TEXT
        told = (
            f"Take care of one {self.noun} that is {key}.", f"For a {self.noun} among {key}.",
            f"Handle one of {key}.", f"What is {key} is mended by this, one {self.noun} at a time.",
        )  # fmt: skip
        tool = self.tool([*words.ACT, *words.EDIT, *words.WRITE], self.noun, told, **args)
        return _Pile(key, tool, left, {mark: dice.one(sorted(rule)) for mark in left} if rule else {}, rule)

    def goal(self) -> str:
        return self.dice.one(
            (f"Bring the {self.noun}s of {self.place} in order", f"Settle every {self.noun} of {self.place}",
             f"The {self.noun}s of {self.place} should fit", f"{self.place}: no {self.noun} out of place")
        )  # fmt: skip

    def order(self) -> list[str]:
        one = self.dice.one
        first = one((f"Start with {self.looks}.", f"First {self.looks}.", f"{self.looks} tells what is out of place."))
        each = [sentence for pile in self.piles for sentence in self._about(pile)]
        if not self.staying:
            last = one((f"When {self.count} is 0, submit_result.", f"At {self.count} 0: submit_result.", self.ending()))
            return [first, *each, last]
        stays = one(
            (f"What is {self.staying} stays.", f"Leave {self.staying} as it is.", f"{self.staying}: no change.")
        )
        last = one((f"When nothing but {self.staying} is left, submit_result.", self.ending()))
        return [first, *each, stays, last]

    def _about(self, pile: _Pile) -> list[str]:
        said = self.dice.one(
            (f"{pile.tool} is for each in {pile.key}.", f"As long as {pile.key} lists any: {pile.tool}.",
             f"For each of {pile.key} call {pile.tool}.", f"{pile.key}: {pile.tool}, one by one.",
             f"What {pile.key} names goes to {pile.tool}.", f"{pile.tool} takes one of {pile.key} at a time.")
        )  # fmt: skip
        if not pile.rule:
            return [said]
        manner = self.dice.one(("{} goes to {}", "{} is for {}", "{}: {}", "{} means {}"))
        return [said, ", ".join(manner.format(*pair) for pair in pile.rule.items()) + "."]

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.looks)]
        steps = [self._step(pile, mark) for pile in self.piles for mark in pile.left]
        return steps or [self.submit()]

    def _step(self, pile: _Pile, mark: str, word: str = "") -> Step:
        if not pile.rule:
            return Step(pile.tool, {self.arg: mark})
        return Step(pile.tool, {self.arg: mark, self.word_arg: word or pile.rule[pile.kinds[mark]]})

    def wrong(self) -> list[Step]:
        steps = [Step(self.looks)] if self.known else []
        for pile in self.piles:
            others = [mark for other in self.piles if other is not pile for mark in other.left]
            told = sorted(set(pile.rule.values())) or [""]
            steps += [self._step(pile, mark, self.dice.one(told)) for mark in [*others, *self.gone, *self.stays]]
            steps += [
                self._step(pile, mark, word) for mark in pile.left for word in told if word != self._word(pile, mark)
            ]
        unfinished = any(pile.left for pile in self.piles) or not self.known
        return steps + ([self.submit("In order")] if unfinished else [])

    def _word(self, pile: _Pile, mark: str) -> str:
        return pile.rule[pile.kinds[mark]] if pile.rule else ""

    def do(self, step: Step) -> CallResult:
        if step.tool == self.looks:
            self.known = True
            return CallResult(self._said(), "partial" if self._left() else "success", self._knowledge())
        pile = next((each for each in self.piles if each.tool == step.tool), None)
        if pile is None:
            return CallResult(self.dice.one(("No change", "Nothing came of it")), "partial")
        mark = str(step.args[self.arg])
        if not self.known or mark not in pile.left:
            return CallResult(f"{mark} is not among {pile.key}", "error", self._knowledge() if self.known else {})
        if pile.rule and step.args[self.word_arg] != self._word(pile, mark):
            return CallResult(f"{mark} is {pile.kinds[mark]}, not for {step.args[self.word_arg]}", "error")
        pile.left.remove(mark)
        self.gone.append(mark)
        return CallResult(
            f"Settled {mark}, {self._left()} left", "partial" if self._left() else "success", self._knowledge()
        )

    def _left(self) -> int:
        return sum(len(pile.left) for pile in self.piles)

    def _said(self) -> str:
        told = ", ".join(f"{len(pile.left)} {pile.key}" for pile in self.piles)
        return told if self._left() else self.dice.one((f"The {self.noun}s are in order", told))

    def _knowledge(self) -> dict[str, Any]:
        known: dict[str, Any] = {pile.key: self._shown(pile) for pile in self.piles}
        known |= {self.staying: list(self.stays)} if self.staying else {}
        return known | {self.count: self._left()}

    def _shown(self, pile: _Pile) -> Any:
        if not pile.rule:
            return list(pile.left)
        if self.way == "map":
            return {mark: pile.kinds[mark] for mark in pile.left}
        if self.way == "records":
            return [{self.arg: mark, "is": pile.kinds[mark]} for mark in pile.left]
        return [f"{pile.kinds[mark]} {mark}" for mark in pile.left]


def _rule(dice: Dice) -> dict[str, str]:
    """Which word belongs to which kind; two kinds may share one."""
    kinds = [dice.one((dice.noun().upper(), dice.one(words.ADJECTIVES))) for _ in range(dice.number(2, 3))]
    places = [dice.noun().title() for _ in range(dice.number(2, 3))]
    return {kind: dice.one(places) for kind in kinds}
