"""Agents of a scenario: their prompt, the right calls, and the candidates of their tools."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remora.context.contracts import ToolSpec
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._scenarios import Case, Scenario, scenarios
from remora_lab.train.synthetic._world import TEXT, WHOLE, CallResult, Schema, Step, World

_COUNTS = ("left", "remaining", "to_do", "open_points", "unsettled", "still_open", "count_left", "problems")


@dataclass(frozen=True)
class Thing:
    """What is worked on: how it stands, and what is told of it."""

    name: str
    case: Case
    told: dict[str, Any]


class Scene(World):
    """An agent of a scenario."""

    ordered = True

    def __init__(self, dice: Dice, scenario: Scenario) -> None:
        self.scenario = scenario
        super().__init__(dice)

    def make(self) -> None:
        dice, scenario = self.dice, self.scenario
        self.title, self.thing, self.place = scenario.name, scenario.thing, dice.one(scenario.files)
        self._odd = dice.maybe(0.1)
        """Whether the names of tools mean nothing, so that only the prompt tells what they are for."""
        self.looks = self._named(scenario.look.name, scenario.look.says, {})
        self.begun = dice.maybe(0.3)
        self.handled = [case for case in scenario.cases if case.tool]
        self.shown = {tool: self._named(tool, says, self._schema(tool)) for tool, says in self._tools().items()}
        self.count = dice.one(_COUNTS)
        self.counted = True
        """Whether the tools tell how much is left."""
        self.manner = "orders" if self._odd else dice.one(("orders", "orders", "rules", "either"))
        self.known = False
        self.lay_out()

    def _tools(self) -> dict[str, str]:
        return {case.tool: case.says for case in self.handled}

    def _named(self, name: str, says: str, args: Mapping[str, Schema]) -> str:
        shown = f"{self.dice.nonsense()}_{self.dice.nonsense()}" if self._odd else name
        return self.add(shown, "" if self.dice.maybe(0.05) else says, args)

    def _schema(self, tool: str) -> dict[str, Schema]:
        cases = [case for case in self.handled if case.tool == tool]
        examples = {arg: self._examples(case, arg) for case in cases for arg in case.takes}
        return {arg: WHOLE if all(type(each) is int for each in found) else TEXT for arg, found in examples.items()}

    def _examples(self, case: Case, argument: str) -> list[Any]:
        key = case.source(argument)
        return case.facts.get(key) or self.scenario.values.get(key) or [""]

    @abstractmethod
    def lay_out(self) -> None:
        """Draw how things stand."""

    @abstractmethod
    def pending(self) -> list[Thing]:
        """What is still to be done, the first first."""

    @abstractmethod
    def knowledge(self) -> dict[str, Any]:
        """What the tools tell."""

    @abstractmethod
    def standing(self) -> str:
        """How things stand, in a sentence."""

    @abstractmethod
    def settle(self, thing: Thing) -> None:
        """Note that a thing was taken care of."""

    def draw(self, case: Case, name: str) -> Thing:
        """A thing that stands like this."""
        values = {key: self.dice.one(examples) for key, examples in self.scenario.values.items()}
        return Thing(name, case, {**self.facts(case), **values})

    def facts(self, case: Case) -> dict[str, Any]:
        """What is told in this case."""
        return {key: self.dice.one(examples) for key, examples in case.facts.items()}

    def everything(self, thing: Thing) -> dict[str, Any]:
        """What can be said of a thing, with its name."""
        return {**thing.told, "item": thing.name, "file": self.place}

    def step(self, case: Case, thing: Thing) -> Step | None:
        """The call that is for this case, made for a thing; None if what it takes is not told of it."""
        told = self.everything(thing)
        return self.right(Thing(thing.name, case, told)) if {*map(case.source, case.takes)} <= {"", *told} else None

    def right(self, thing: Thing) -> Step:
        """The call that takes care of a thing."""
        return Step(self.shown[thing.case.tool], thing.case.args(self.everything(thing)))

    def who(self) -> str:
        return self.scenario.who

    def goal(self) -> str:
        return self.dice.one(self.scenario.goals).format(file=self.place)

    def order(self) -> list[str]:
        one, looks, thing = self.dice.one, self.looks, self.thing
        before = (
            f"{looks} has told how things stand.",
            f"From {looks} you know how it stands.",
            f"{looks} was called.",
        )
        first = (f"First call {looks}.", f"Begin with {looks}.", f"{looks} tells how each {thing} stands.")
        told = [one(before)] if self.begun and self.dice.maybe(0.7) else [] if self.begun else [one(first)]
        cases = self.dice.shuffled(self.scenario.cases) if self.dice.maybe(0.4) else list(self.scenario.cases)
        last = one((f"When {self.count} is 0, submit_result." if self.counted else self.ending(), self.ending()))
        return [*told, *(self._said_of(case) for case in cases), last]

    def _said_of(self, case: Case) -> str:
        ordered = self.manner == "orders" or (self.manner == "either" and self.dice.maybe(0.5))
        text = self.dice.one(case.orders) if ordered else case.rule
        text = text.replace("{tool}", self.shown.get(case.tool, ""))
        return text if text.endswith(".") else f"{text}."

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.looks)]
        return [self.right(thing) for thing in self.pending()] or [self.submit()]

    def wrong(self) -> list[Step]:
        made = [self.step(case, thing) for thing in self.things() for case in self.handled]
        steps = [step for step in made if step] + ([Step(self.looks)] if self.known else [])
        steps += [self.submit(self.summary())] if self.pending() or not self.known else []
        fine = self.fine()
        return [step for step in steps if not any(step.like(each) for each in fine)]

    @abstractmethod
    def things(self) -> list[Thing]:
        """Everything that a call could be made for, also what stays or is done."""

    def summary(self) -> str:
        """What a submission could say that repeats how things stand."""
        return self.dice.one((f"{self.place}: {self.standing()}", self.standing(), self.said or self.standing()))

    def menu(self) -> list[Step]:
        """Every way on, for the first that is to be done or for any, with the end among them."""
        if not self.known:
            return []
        thing = (self.pending() or self.things())[0]
        made = [self.step(case, thing) for case in self.handled]
        steps = [step for number, step in enumerate(made) if step and step not in made[:number]]
        return [*steps, self.submit(self.summary())]

    def reason(self, step: Step) -> str:
        """Why one would make a call: what its tool is for, or in which case."""
        cases = [case for case in self.scenario.cases if self.shown.get(case.tool, "submit_result") == step.tool]
        if not cases or self.dice.maybe(0.3):
            return ""
        case = self.dice.one(cases)
        facts = ", ".join(f"{key} {self.dice.one(examples)}" for key, examples in case.facts.items())
        return self.dice.one([text for text in (case.says, case.rule.rstrip("."), facts) if text])

    def do(self, step: Step) -> CallResult:
        if step.tool == self.looks:
            self.known = True
            return CallResult(self.standing(), "partial" if self.pending() else "success", self.knowledge())
        if step.tool not in self.shown.values():
            return CallResult(self.dice.one(("Nothing came of it", "No change", "Not needed here")), "partial")
        if not self.known:
            return CallResult(f"{self.looks} first", "error")
        for thing in self.pending():
            if step == self.right(thing):
                self.settle(thing)
                said = thing.case.done.format_map(self.everything(thing))
                return CallResult(said, "partial" if self.pending() else "success", self.knowledge())
        return CallResult(self._refusal(step), "error", self.knowledge() if self.dice.maybe(0.3) else {})

    def _refusal(self, step: Step) -> str:
        given = [str(value) for value in step.args.values()]
        about = given[0] if given else self.place
        return self.dice.one((f"{step.tool} is not for {about}", f"Refused: {about}", f"{about}: nothing was changed"))

    def distractors(self) -> list[ToolSpec]:
        """Tools of another scenario."""
        other = self.dice.scenario(scenarios())
        found = [case for case in other.cases if case.tool and case.tool not in self.shown and not self._odd]
        before, self.tools = self.tools, []
        for case in self.dice.some(found, 1, 2):
            self.add(case.tool, case.says, dict.fromkeys(case.takes, TEXT))
        made, self.tools = self.tools, before
        return [tool for tool in made if tool.name not in {each.name for each in before}]


def listed(told: Mapping[str, Any]) -> str:
    """What is told of a thing, in words."""
    return ", ".join(f"{key} {value}" for key, value in told.items())
