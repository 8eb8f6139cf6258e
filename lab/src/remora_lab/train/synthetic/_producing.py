"""Agents that produce something and check it, as an agent that writes tests does."""

from __future__ import annotations

from typing import Any

from remora.events import Excerpt
from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._world import TEXT, CallResult, Step, World, described

_STATES = (("holds", "fails"), ("passes", "fails"), ("valid", "invalid"), ("green", "red"), ("ok", "broken"))


class Producing(World):
    """Look, write a variant, verify it; another variant where it fails; submit."""

    def make(self) -> None:
        dice = self.dice
        self.noun, self.file = dice.noun(), dice.path(dice.one(("json", "py", "md")))
        self.looks = self.tool(words.LOOK, dice.noun(), described("look", self.thing))
        self.arg = dice.one(("variant", "kind", "mode", "style", "way"))
        self.variants = list(dice.one(words.ENUMS)) if dice.maybe(0.6) else dice.codes(2, 4)
        schema = {"enum": self.variants} if dice.maybe(0.6) else TEXT
        self.writes = self.tool(words.WRITE, self.noun, described("write", self.noun), **{self.arg: schema})
        self.checked = dice.maybe(0.75)
        if self.checked:
            self.verifies = self.tool(words.VERIFY, self.noun, described("verify", self.noun))
        self.good = set(dice.some(self.variants, 0, len(self.variants)))
        self.tried: list[str] = []
        self.known = False
        self.holds: bool | None = None
        self.works, self.breaks = dice.one(_STATES)
        self.label = dice.one(("options", "variants", f"{self.noun}_kinds", "choices"))

    def goal(self) -> str:
        return self.dice.one(
            (f"Write the {self.noun} for {self.place}", f"A {self.noun} that holds, for {self.place}",
             f"{self.place} needs a {self.noun}")
        )  # fmt: skip

    def order(self) -> list[str]:
        one = self.dice.one
        first = one((f"First {self.looks}.", f"Start with {self.looks}, which tells the {self.label}."))
        then = one(
            (f"Then {self.writes} with the first of them.", f"{self.writes} takes one of the {self.label} at a time.")
        )
        if not self.checked:
            return [first, then, self.ending()]
        check = one((f"Then {self.verifies}.", f"Each is followed by {self.verifies}."))
        again = one(
            (f"If it fails, {self.writes} with the next that was not tried.", "After a failure try the next one.")
        )
        return [first, then, check, again, self.ending()]

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.looks)]
        if self.tried and (self.holds or not self.checked):
            return [self.submit()]
        if self.tried and self.holds is None:
            return [Step(self.verifies)]
        left = [each for each in self.variants if each not in self.tried]
        return [Step(self.writes, {self.arg: each}) for each in left] or [self.submit()]

    def wrong(self) -> list[Step]:
        steps = [Step(self.writes, {self.arg: each}) for each in (self.tried or self.variants)]
        steps += [Step(self.looks)] if self.known else []
        steps += [Step(self.verifies)] if self.checked else []
        steps.append(self.submit("Finished"))
        return [step for step in steps if not any(step.like(right) for right in self.fine())]

    def do(self, step: Step) -> CallResult:
        if step.tool == self.looks:
            self.known = True
            shown = Excerpt(label=self.thing, text=self.dice.lines(2, 6))
            return CallResult(f"{len(self.variants)} {self.label}", "success", self._knowledge(), (shown,))
        if step.tool == self.writes:
            return self._write(str(step.args[self.arg]))
        if self.checked and step.tool == self.verifies:
            return self._verify()
        return CallResult("Nothing came of it", "partial")

    def _write(self, variant: str) -> CallResult:
        if not self.known:
            return CallResult(f"Nothing is known yet: {self.looks} first", "error")
        if variant not in self.variants:
            return CallResult(f"`{variant}` is none of the {self.label}", "error")
        if variant not in self.tried:
            self.tried.append(variant)
            self.holds = None
        return CallResult(f"Wrote {self.file}: {variant}", "success", self._knowledge())

    def _verify(self) -> CallResult:
        if not self.tried:
            return CallResult(f"There is no {self.noun} to check", "error")
        self.holds = self.tried[-1] in self.good
        if self.holds:
            return CallResult(f"{self.tried[-1]}: {self.works}", "success", self._knowledge())
        why = f"{self.dice.noun()} is not {self.dice.noun()}"
        return CallResult(f"{self.tried[-1]}: {self.breaks}, {why}", "error", self._knowledge())

    def _knowledge(self) -> dict[str, Any]:
        state = "unchecked" if self.holds is None else self.works if self.holds else self.breaks
        known: dict[str, Any] = {self.label: self.variants}
        return known | ({"tried": list(self.tried), f"{self.noun}_state": state} if self.tried else {})
