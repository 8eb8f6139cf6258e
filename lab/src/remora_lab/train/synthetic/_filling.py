"""Agents that gather values with several tools and use them together; agents with a list of steps."""

from __future__ import annotations

from typing import Any

from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._world import TEXT, WHOLE, CallResult, Schema, Step, World, described


class Filling(World):
    """One tool a value, in the order of the system prompt; then one that takes them all; submit."""

    ordered = True

    def make(self) -> None:
        dice = self.dice
        self.keys = list(dict.fromkeys(dice.noun() for _ in range(dice.number(1, 4))))
        self.values: dict[str, Any] = {key: self._value() for key in self.keys}
        self.gets = {key: self.tool([*words.READ, *words.LOOK], key, described("get", key)) for key in self.keys}
        self.noun = dice.noun()
        used = dice.some(self.keys, 1, len(self.keys))
        self.used = [key for key in self.keys if key in used]
        args: dict[str, Schema] = {key: WHOLE if isinstance(self.values[key], int) else TEXT for key in self.used}
        if dice.maybe(0.3):
            args.setdefault(dice.one(("note", "comment")), {"type": "string", "default": ""})
        self.final = self.tool(words.WRITE, self.noun, described("write", self.noun), **args)
        self.known: dict[str, Any] = {}
        self.done = False

    def _value(self) -> Any:
        return self.dice.one((self.dice.number(1, 9999), self.dice.code(), self.dice.path("txt"), self.dice.noun()))

    def goal(self) -> str:
        return self.dice.one((f"Write the {self.noun} of {self.place}", f"{self.place}: one {self.noun}, complete"))

    def order(self) -> list[str]:
        one = self.dice.one
        gathered = [self.gets[key] for key in self.keys]
        first = (
            [f"First {', then '.join(gathered)}."] if self.dice.maybe(0.5) else [f"Call {tool}." for tool in gathered]
        )
        last = one(
            (
                f"Then {self.final} with what they told.",
                f"{self.final} takes {' and '.join(self.used)} as they were told.",
            )
        )
        return [*first, last, self.ending()]

    def fine(self) -> list[Step]:
        missing = [key for key in self.keys if key not in self.known]
        if missing:
            return [Step(self.gets[missing[0]])]
        return [self.submit()] if self.done else [Step(self.final, {key: self.values[key] for key in self.used})]

    def wrong(self) -> list[Step]:
        steps = [Step(self.gets[key]) for key in self.known]
        later = [key for key in self.keys if key not in self.known][1:]
        steps += [Step(self.gets[key]) for key in later]
        steps.append(Step(self.final, {key: self._other(self.values[key]) for key in self.used}))
        return steps + ([] if self.done else [self.submit("Complete")])

    def _other(self, value: Any) -> Any:
        return value + self.dice.number(1, 9) if isinstance(value, int) else self.dice.code()

    def do(self, step: Step) -> CallResult:
        for key, tool in self.gets.items():
            if step.tool == tool:
                self.known[key] = self.values[key]
                return CallResult(f"{key}: {self.values[key]}", "success", {key: self.values[key]})
        if step.tool != self.final:
            return CallResult("That does not help", "partial")
        if len(self.known) < len(self.keys):
            missing = next(key for key in self.keys if key not in self.known)
            return CallResult(f"The {missing} is not known: {self.gets[missing]} first", "error")
        if any(step.args.get(key) != self.values[key] for key in self.used):
            return CallResult(f"That is not the {self.used[0]} that was told", "error")
        self.done = True
        return CallResult(f"Wrote the {self.noun}", "success", {f"{self.noun}_written": True})


_STATES = (("open", "done", "after"), ("todo", "finished", "waits for"), ("pending", "closed", "blocked by"))


class Stepping(World):
    """A list of steps, each open, done or waiting for another one; the first open one that can be done is next."""

    def make(self) -> None:
        dice = self.dice
        self.noun, self.arg = dice.noun(), dice.one(("step", "stage", "part", "name"))
        self.steps = list(dict.fromkeys(dice.noun() for _ in range(dice.number(2, 6))))
        self.looks = self.tool(words.LOOK, f"{self.noun}s", described("look", self.noun))
        told = (
            f"Do one {self.noun} by its name.",
            f"Carry out a {self.noun} that is open.",
            f"Finish one {self.noun}.",
        )
        schema = {"enum": dice.shuffled(self.steps)} if dice.maybe(0.4) else TEXT
        self.does = self.tool([*words.ACT, *words.VERIFY], self.noun, told, **{self.arg: schema})
        self.open, self.done, self.waits = dice.one(_STATES)
        self.state = dict.fromkeys(self.steps, self.open)
        for step in dice.some(self.steps, 0, len(self.steps) - 1):
            self.state[step] = self.done
        self._wait()
        self.known = False

    def _wait(self) -> None:
        """Sometimes one waits for another that is open."""
        left = [step for step, state in self.state.items() if state == self.open]
        self.after: tuple[str, str] | None = None
        if len(left) > 1 and self.dice.maybe(0.5):
            first, second = self.dice.chance.sample(left, 2)
            self.after = (first, second)
            self.state[first] = f"{self.waits} {second}"

    def goal(self) -> str:
        return self.dice.one((f"Finish all {self.noun}s of {self.place}", f"Every {self.noun} done: {self.place}"))

    def order(self) -> list[str]:
        return [
            self.dice.one((f"First {self.looks}.", f"{self.looks} tells which {self.noun}s are {self.open}.")),
            self.dice.one(
                (
                    f"Then {self.does} for each that is {self.open}, in order.",
                    f"{self.does} the next one.",
                )
            ),
            self.ending(),
        ]

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.looks)]
        left = [step for step, state in self.state.items() if state == self.open]
        return [Step(self.does, {self.arg: step}) for step in left] or [self.submit()]

    def wrong(self) -> list[Step]:
        closed = [step for step, state in self.state.items() if state != self.open] if self.known else self.steps
        steps = [Step(self.does, {self.arg: step}) for step in closed]
        steps += [Step(self.looks)] if self.known else []
        return steps + ([] if self.fine()[0].tool == "submit_result" else [self.submit("All done")])

    def do(self, step: Step) -> CallResult:
        if step.tool == self.looks:
            self.known = True
            left = sum(state != self.done for state in self.state.values())
            return CallResult(
                f"{left} of {len(self.steps)} {self.noun}s not {self.done}",
                "success",
                {f"{self.noun}s": dict(self.state)},
            )
        if step.tool != self.does:
            return CallResult("No change", "partial")
        name = str(step.args[self.arg])
        if not self.known:
            return CallResult(f"Call {self.looks} first", "error")
        if self.state.get(name) != self.open:
            return CallResult(f"{name} is {self.state.get(name, 'unknown')}", "error")
        self.state[name] = self.done
        if self.after and self.after[1] == name:
            self.state[self.after[0]] = self.open
        return CallResult(f"Did {name}", "success", {f"{self.noun}s": dict(self.state)})
