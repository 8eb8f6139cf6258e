"""The two kinds of scenario agents: one thing in some state, and several things handled in turn."""

from __future__ import annotations

from typing import Any

from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._scenarios import scenarios
from remora_lab.train.synthetic._scene import Scene, Thing, listed
from remora_lab.train.synthetic._world import Step, World

_STOPS = ("halted", "on_hold", "locked", "paused", "veto", "objection", "hindrance", "postponed")
_WHY = (
    "a person is at work on it", "two of them were found", "it cannot be read", "waiting for a decision",
    "the owner asked to wait", "there is none", "it is generated", "a review is open",
)  # fmt: skip


def working(dice: Dice) -> World:
    """An agent of some scenario."""
    scenario = dice.scenario(scenarios())
    return Deciding(dice, scenario) if scenario.shape == "one" else Going(dice, scenario)


class Deciding(Scene):
    """One thing: the facts together tell what is to be done, if anything."""

    def lay_out(self) -> None:
        idle = [case for case in self.scenario.cases if not case.tool]
        case = self.dice.one(self.handled) if self.dice.maybe(0.7) else self.dice.one(idle)
        self.now = self.draw(case, self.place)
        then = self.dice.one(idle)
        self.then = Thing(self.place, then, {**self.now.told, **self.facts(then)})
        """How it stands once it was taken care of."""
        self.settled = not case.tool
        self.tells = self.dice.maybe(0.7)
        """Whether a tool that changed it tells how it stands then; else it repeats what the look has told."""
        self.counted = not self.tells or self.dice.maybe(0.4)

    def pending(self) -> list[Thing]:
        return [] if self.settled else [self.now]

    def things(self) -> list[Thing]:
        return [self.now]

    def settle(self, thing: Thing) -> None:
        self.settled = True
        self.now = self.then if self.tells else thing

    def standing(self) -> str:
        said = self.now.case.summary.format_map(self.everything(self.now))
        return listed(self.now.told) if self.dice.maybe(0.15) else said

    def knowledge(self) -> dict[str, Any]:
        known = dict(self.dice.shuffled(list(self.now.told.items())))
        return known | {self.count: len(self.pending())} if self.counted else known

    def order(self) -> list[str]:
        """Where nothing is to be done the prompt may say that this is the end."""
        said = super().order()
        idle = {text.rstrip(".") for case in self.scenario.cases if not case.tool for text in (case.rule, *case.orders)}
        ends = self.dice.maybe(0.5)
        return [f"{text[:-1]}, submit_result." if ends and text[:-1] in idle else text for text in said]


class Going(Scene):
    """Several things: each that needs it goes to the tool that is for it."""

    def lay_out(self) -> None:
        dice = self.dice
        names = dice.shuffled(self.scenario.items)
        self.all: list[Thing] = []
        for _ in range(dice.number(1, 5)):
            case = dice.one(self.scenario.cases)
            free = [each for each in case.items or names if each not in {thing.name for thing in self.all}]
            self.all.append(self.draw(case, dice.one(free)))
        self.left = [thing for thing in self.all if thing.case.tool]
        self.kept = [thing for thing in self.all if not thing.case.tool]
        self.sort = self._sort()
        taken = {key for thing in self.all for key in thing.told}
        self.key = next(each for each in dice.shuffled(("name", "item", "which", "one", "is")) if each not in taken)
        self.stop = dice.one([each for each in _STOPS if each not in taken]) if dice.maybe(0.2) else ""
        """The key that tells whether anything may be changed at all."""
        self.why = dice.one(_WHY) if self.stop and dice.maybe(0.35) else dice.one(("", None))
        self.under = self.scenario.pile or dice.one(("found", "all", "report", "items", "listing"))

    def _sort(self) -> str:
        """How things are listed: by their first fact, each with what is told of it, or the next one alone."""
        taken = {case.source(argument) for case in self.handled for argument in case.takes}
        plain = taken <= {"", "item"}
        if self.scenario.shape == "names":
            return "names" if plain else self.dice.one(("records", "map", "next"))
        single = plain and all(len(case.facts) == 1 for case in self.scenario.cases)
        return self.dice.one(
            ("piles", "piles", "records", "map", "lines", "next") if single else ("records", "map", "next")
        )

    def order(self) -> list[str]:
        *said, last = super().order()
        stopped = self.dice.one(
            (f"If {self.stop} says something, change nothing and submit_result.",
             f"Where {self.stop} tells a reason, all stays as it is: submit_result.",
             f"{self.stop} outweighs everything else: then only submit_result.")
        )  # fmt: skip
        return [*said, *([stopped] if self.stop else []), last]

    def pending(self) -> list[Thing]:
        if self.why:
            return []
        return self.left[:1] if self.sort == "next" else self._in_order()

    def _in_order(self) -> list[Thing]:
        """What is left, in the order in which it is shown."""
        if self.sort != "piles":
            return self.left
        piles = list(self._piles())
        return sorted(self.left, key=lambda thing: piles.index(_pile(thing)))

    def things(self) -> list[Thing]:
        return self.all

    def settle(self, thing: Thing) -> None:
        self.left.remove(thing)

    def _shown(self) -> list[Thing]:
        return [thing for thing in self.all if thing in self.left or thing in self.kept]

    def _piles(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for thing in self.all:
            found.setdefault(_pile(thing), [])
        for thing in self._shown():
            found[_pile(thing)].append(thing.name)
        return found

    def standing(self) -> str:
        if self.sort == "next" and self.left:
            thing = self.left[0]
            return f"Next: {thing.name} ({listed(thing.told)})" if thing.told else f"Next: {thing.name}"
        if self.sort == "piles":
            return ", ".join(f"{len(names)} {pile}" for pile, names in self._piles().items())
        number = len(self._shown())
        return f"{number} {self.thing}s, {len(self.left)} {self.count.replace('_', ' ')}"

    def knowledge(self) -> dict[str, Any]:
        return {**self._listing(), self.count: len(self.left), **({self.stop: self.why} if self.stop else {})}

    def _listing(self) -> dict[str, Any]:
        shown = self._shown()
        if self.sort == "piles":
            return dict(self._piles())
        if self.sort == "names":
            return {self.under: [thing.name for thing in shown]}
        if self.sort == "lines":
            return {self.under: [f"{thing.name}: {listed(thing.told)}" for thing in shown]}
        if self.sort == "map":
            return {self.under: {thing.name: thing.told for thing in shown}}
        if self.sort == "next":
            return {"next": {self.key: self.left[0].name, **self.left[0].told} if self.left else None}
        return {self.under: [{self.key: thing.name, **thing.told} for thing in shown]}

    def wrong(self) -> list[Step]:
        # A call for what is not shown yet would be right some turns later, and nobody could know of it now.
        seen = self._shown() if self.known else []
        gone = [thing for thing in self.all if thing not in self._shown()]
        shown = seen[:2] if self.sort != "next" or not self.known else self.left[:1]
        return [step for step in super().wrong() if self._concerns(step, [*shown, *gone])]

    def _concerns(self, step: Step, things: list[Thing]) -> bool:
        return step.tool not in self.shown.values() or any(
            step == self.step(case, thing) for thing in things for case in self.handled
        )


def _pile(thing: Thing) -> str:
    return str(next(iter(thing.told.values())))
