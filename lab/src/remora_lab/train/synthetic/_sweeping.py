"""Agents that list things and handle them one by one, as a linter agent does."""

from __future__ import annotations

from typing import Any

from remora.events import Excerpt
from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._world import TEXT, WHOLE, CallResult, Step, World, described

_SORTS = (
    ("safe", "by hand"), ("fixable", "manual"), ("ready", "stuck"), ("automatic", "needs care"), ("easy", "hard"),
    ("clear", "unclear"), ("simple", "involved"), ("allowed", "held back"),
)  # fmt: skip
"""Words for what a tool can do by itself, and for what it cannot."""
_FAILS = 0.12
"""Share of the things that cannot be mended though it was said that they can."""


class Sweeping(World):
    """Look, mend what can be mended, change by hand or leave the rest, submit."""

    def make(self) -> None:
        dice = self.dice
        self.noun = dice.noun()
        self.arg = dice.one(("code", "rule", "name", "id", "key", self.noun, "which"))
        self.looks = self.tool(words.LOOK, f"{self.noun}s", described("look", self.noun))
        self.acts = self.tool(words.ACT, self.noun, described("act", self.noun), **{self.arg: TEXT})
        self.easy, self.tough = dice.one(_SORTS)
        self.by_hand = dice.maybe(0.5)
        if self.by_hand:
            self.line_arg = dice.one(("line", "at", "place", "position"))
            self.text_arg = dice.one(("text", "content", "replacement", "new"))
            self.reads = self.tool(words.READ, dice.noun(), described("read", self.noun), **{self.line_arg: WHOLE})
            args = {self.line_arg: WHOLE, self.text_arg: TEXT}
            self.edits = self.tool(words.EDIT, dice.noun(), described("edit", self.noun), **args)
        marks = dice.codes(0, 6)
        self.safe = {mark: dice.number(1, 4) for mark in marks if dice.maybe(0.65)}
        hard = [mark for mark in marks if mark not in self.safe]
        self.hard = dict(zip(hard, self._lines(len(hard)), strict=True))
        self.stubborn = {mark for mark in self.safe if dice.maybe(_FAILS)}
        self.gone: list[str] = []
        self.known = self.seen = False
        self.proposal = ""
        self._listed = dice.one(("lists", "map"))

    def _lines(self, count: int) -> list[int]:
        return sorted(self.dice.chance.sample(range(1, 200), count))

    def goal(self) -> str:
        noun = self.noun
        return self.dice.one(
            (f"Take care of the {noun}s in {self.place}", f"Resolve every {noun} of {self.place}",
             f"No {noun} left in {self.place}", f"Go through the {noun}s of {self.place}")
        )  # fmt: skip

    def order(self) -> list[str]:
        looks, acts = self.looks, self.acts
        one = self.dice.one
        first = one((f"First {looks}.", f"Begin with {looks}.", f"Call {looks} to see what there is."))
        then = one(
            (f"Then {acts} with a {self.arg} that is {self.easy}.", f"{acts} takes those that are {self.easy}.",
             f"For each {self.easy} {self.noun} call {acts}.")
        )  # fmt: skip
        if not self.by_hand:
            return [first, then, one(("Leave the others.", f"What is {self.tough} stays.")), self.ending()]
        hand = one(
            (f"Without any that is {self.easy}: {self.reads}, then {self.edits}.",
             f"For what is {self.tough}: {self.reads} shows the line, {self.edits} changes it.")
        )  # fmt: skip
        return [first, then, hand, self.ending()]

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.looks)]
        if self.safe:
            return [Step(self.acts, {self.arg: mark}) for mark in self.safe]
        if self.by_hand and self.hard:
            line = next(iter(self.hard.values()))
            if self.proposal:
                return [Step(self.edits, {self.line_arg: line, self.text_arg: self.proposal})]
            return [Step(self.reads, {self.line_arg: line})]
        return [self.submit(self._left())]

    def wrong(self) -> list[Step]:
        marks = [*self.gone, *(self.hard if self.known else ()), self.dice.code()]
        steps = [Step(self.acts, {self.arg: mark}) for mark in marks if mark not in self.safe]
        steps += [Step(self.looks)] if self.known else []
        steps += [self.submit("Done")] if self.fine()[0].tool != "submit_result" else []
        if self.by_hand:
            steps.append(Step(self.reads, {self.line_arg: self.dice.number(200, 400)}))
        return steps

    def do(self, step: Step) -> CallResult:
        if step.tool == self.looks:
            self.known = True
            return CallResult(self._found(), "partial" if self.safe or self.hard else "success", self._knowledge())
        if step.tool == self.acts:
            return self._act(str(step.args[self.arg]))
        if self.by_hand and step.tool == self.reads:
            return self._read(step.args[self.line_arg])
        if self.by_hand and step.tool == self.edits:
            return self._edit(step.args[self.line_arg])
        return CallResult(self.dice.one(("Nothing to do here", "Done, without effect")), "partial")

    def _act(self, mark: str) -> CallResult:
        if not self.known:
            return CallResult(f"{self.acts} does not know what there is: call {self.looks} first", "error")
        if mark in self.stubborn:
            self.stubborn.discard(mark)
            del self.safe[mark]
            self.hard[mark] = 200 + len(self.hard)
            return CallResult(f"{mark} is {self.tough} after all", "error", self._knowledge())
        if mark not in self.safe:
            why = f"is {self.tough}" if mark in self.hard else "is not among them"
            return CallResult(f"{mark} {why}", "error")
        count = self.safe.pop(mark)
        self.gone.append(mark)
        return CallResult(f"Resolved {count} {mark}, {self._left()}", "success", self._knowledge())

    def _read(self, line: int) -> CallResult:
        if line not in self.hard.values():
            return CallResult(f"Nothing is open at {self.line_arg} {line}", "error")
        self.proposal = self.dice.one(words.CODE_LINES).strip()
        shown = Excerpt(label=f"around {line}", text=self.dice.lines(2, 5), start_line=max(1, line - 1))
        return CallResult(f"Showed {self.line_arg} {line}", "success", {"proposal": self.proposal}, (shown,))

    def _edit(self, line: int) -> CallResult:
        marks = [mark for mark, at in self.hard.items() if at == line]
        if not marks or not self.proposal:
            return CallResult(f"{self.reads} the {self.line_arg} first", "error")
        self.proposal = ""
        del self.hard[marks[0]]
        self.gone.append(marks[0])
        return CallResult(
            f"Changed {self.line_arg} {line}, {self._left()}", "success", self._knowledge() | {"proposal": ""}
        )

    def _found(self) -> str:
        marks = [*self.safe, *self.hard]
        return (
            f"{len(marks)} {self.noun}s, {len(self.safe)} {self.easy}: {', '.join(marks)}"
            if marks
            else f"no {self.noun}s"
        )

    def _left(self) -> str:
        count = len(self.safe) + len(self.hard)
        return f"{count} {self.noun}s left" if count else f"no {self.noun}s left"

    def _knowledge(self) -> dict[str, Any]:
        left = {f"{self.noun}s_remaining": len(self.safe) + len(self.hard)}
        if self._listed == "map":
            return left | {
                f"{self.noun}s": dict.fromkeys(self.safe, self.easy)
                | {mark: f"{self.tough}, {self.dice.one(('line', 'at'))} {line}" for mark, line in self.hard.items()}
            }
        tough = self.tough.replace(" ", "_")
        return left | {self.easy: list(self.safe), tough: dict(self.hard)}
