"""Agents that look at the state of one thing and choose the action that the prompt gives for it."""

from __future__ import annotations

from typing import Any

from remora.events import Outcome
from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._world import TEXT, WHOLE, CallResult, Schema, Step, World, described

_CONDITIONS = (
    "ahead", "ancient", "behind", "blank", "blocked", "borrowed", "correct", "cracked", "damaged", "doubtful", "due",
    "excess", "exact", "filed", "finished", "good", "hollow", "incomplete", "known", "lost", "mended", "narrow", "odd",
    "partial", "plain", "pristine", "ragged", "ready", "rejected", "settled", "short", "sound", "swapped", "thin",
    "torn", "twisted", "unset", "upright", "vague", "void", "wide",
)  # fmt: skip
_ENDS = 0.7
"""Share of the calls after which nothing more is to be done."""


class Judging(World):
    """Look; the condition tells which tool is next, and values that were told are its arguments; submit."""

    ordered = True

    def make(self) -> None:
        dice = self.dice
        self.noun = dice.noun()
        self.key = dice.one(("condition", "standing", f"{self.noun}_state", f"{self.noun}_condition", "finding"))
        self.looks = self.tool([*words.LOOK, *words.READ], self.noun, described("get", f"state of the {self.noun}"))
        self.values: dict[str, Any] = {self._key(): self._value() for _ in range(dice.number(1, 4))}
        conditions = dice.some(_CONDITIONS, 3, 5)
        acting = dice.number(1, len(conditions) - 1)
        self.idle = conditions[acting:]
        self.sources: dict[str, dict[str, str]] = {}
        self.handles = {condition: self._handler(condition) for condition in conditions[:acting]}
        self.condition = dice.one(conditions)
        self.known = False

    def _key(self) -> str:
        return f"{self.dice.noun()}_{self.dice.one(('line', 'name', 'count', 'row', 'size', 'mark', 'text'))}"

    def _value(self) -> Any:
        return self.dice.one((self.dice.number(0, 400), self.dice.code(), self.dice.noun()))

    def _handler(self, condition: str) -> str:
        """A tool for this condition. Its arguments are called like the values, or a little shorter."""
        used = self.dice.some(list(self.values), 0, 2)
        short = self.dice.maybe(0.5)
        names = {key: key.rpartition("_")[2] if short else key for key in used}
        sources = {name: key for key, name in names.items()}
        args: dict[str, Schema] = {
            name: WHOLE if isinstance(self.values[key], int) else TEXT for name, key in sources.items()
        }
        told = (
            f"For a {self.noun} that is {condition}.", f"Mend what is {condition}.", f"Only where it is {condition}.",
            f"Bring a {self.noun} in order.",
        )  # fmt: skip
        tool = self.tool([*words.ACT, *words.EDIT, *words.WRITE], self.noun, told, **args)
        self.sources[condition] = sources
        return tool

    def goal(self) -> str:
        return self.dice.one(
            (f"See that the {self.noun} of {self.place} is in order", f"{self.place}: a {self.noun} as it should be",
             f"Look after the {self.noun} of {self.place}")
        )  # fmt: skip

    def order(self) -> list[str]:
        one = self.dice.one
        first = one((f"First {self.looks}.", f"Start with {self.looks}.", f"{self.looks} tells the {self.key}."))
        then = one((f"What comes next depends on {self.key}:", f"Go by {self.key}.", f"Then, by {self.key}:"))
        manner = one(("{} means {}", "{}: {}", "If it is {}: {}", "Where {} is told, {}", "When {}, call {}"))
        rules = [f"{manner.format(each, tool)}{self._with(each)}." for each, tool in self.handles.items()]
        done = one((" or ".join(self.idle), ", ".join(self.idle)))
        nothing = one((f"{manner.format(done, 'submit_result')}.", f"{done}: nothing to do, submit_result."))
        return [first, then, *self.dice.shuffled([*rules, nothing])]

    def _with(self, condition: str) -> str:
        pairs = self.sources[condition].items()
        if not pairs:
            return ""
        taken = " and ".join(key if name == key else f"{key} as {name}" for name, key in pairs)
        return self.dice.one((f" with {taken}", f", which takes {taken}"))

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.looks)]
        return [self._step(self.condition)] if self.condition in self.handles else [self.submit()]

    def _step(self, condition: str) -> Step:
        args = {name: self.values[key] for name, key in self.sources[condition].items()}
        return Step(self.handles[condition], args)

    def wrong(self) -> list[Step]:
        steps = [Step(self.looks)] if self.known else []
        steps += [self._step(each) for each in self.handles if each != self.condition or not self.known]
        return steps + ([] if self.known and self.condition in self.idle else [self.submit("In order")])

    def do(self, step: Step) -> CallResult:
        if step.tool == self.looks:
            self.known = True
            outcome: Outcome = "success" if self.condition in self.idle else "partial"
            return CallResult(f"The {self.noun} is {self.condition}", outcome, self._knowledge())
        if step.tool not in self.handles.values():
            return CallResult("Nothing happened", "partial")
        if not self.known or self.condition not in self.handles or not step.like(self._step(self.condition)):
            return CallResult(f"{step.tool} is not for this: {self._why()}", "error")
        before = self.condition
        self.condition = self._after(before)
        return CallResult(f"The {self.noun} was {before} and is {self.condition}", "success", self._knowledge())

    def _why(self) -> str:
        return f"the {self.noun} is {self.condition}" if self.known else f"call {self.looks} first"

    def _after(self, condition: str) -> str:
        others = [each for each in self.handles if each != condition]
        if others and not self.dice.maybe(_ENDS):
            return self.dice.one(others)
        return self.dice.one(self.idle)

    def _knowledge(self) -> dict[str, Any]:
        return dict(self.dice.shuffled([(self.key, self.condition), *self.values.items()]))
