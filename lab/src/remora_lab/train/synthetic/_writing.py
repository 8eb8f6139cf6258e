"""Agents that write one text from what a tool returned, as a documentation agent does."""

from __future__ import annotations

from remora.events import Excerpt
from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._world import TEXT, CallResult, Schema, Step, World, described

_STATES = (("missing", "outdated", "complete"), ("absent", "stale", "current"), ("empty", "old", "full"))


class Writing(World):
    """What is missing or outdated is written from a suggestion; what is complete is left as it is; submit."""

    def make(self) -> None:
        dice = self.dice
        self.noun = dice.noun()
        self.looks = self.tool([*words.READ, *words.LOOK], self.noun, described("look", self.noun))
        self.text_arg = dice.one(("text", "summary", "sentence", "content", self.noun))
        args: dict[str, Schema] = {self.text_arg: TEXT}
        if dice.maybe(0.4):
            args.setdefault("note", {"type": "string", "default": ""})
        told = (
            f"Write the {self.noun} from one sentence.",
            f"Put a new {self.noun} in place.",
            f"Set the {self.noun}.",
        )
        self.writes = self.tool(words.WRITE, self.noun, told, **args)
        self.missing, self.old, self.full = dice.one(_STATES)
        self.state = dice.one((self.missing, self.missing, self.old, self.full))
        self.key = dice.one(("suggestion", "proposal", "draft", "short", f"{self.noun}_text"))
        self.text = self._sentence()
        self.known = False

    def _sentence(self) -> str:
        dice = self.dice
        verb, noun, other = dice.verb(words.WRITE).title(), dice.noun(), dice.noun()
        return dice.one(
            (f"{verb} the {noun} of a {other}.", f"{verb} one {noun} for each `{other}`.", f"{verb} {noun}s.")
        )

    def goal(self) -> str:
        return self.dice.one(
            (f"Write the {self.noun} of {self.place}", f"{self.place} needs a {self.noun} that is {self.full}")
        )

    def order(self) -> list[str]:
        one = self.dice.one
        return [
            one((f"First {self.looks}.", f"{self.looks} tells how it stands.")),
            one(
                (
                    f"Then {self.writes} with the {self.key}.",
                    f"If it is not {self.full}, {self.writes} takes the {self.key}.",
                )
            ),
            one(
                (f"If it is {self.full}, or written, call submit_result.", f"What is {self.full} stays: submit_result.")
            ),
        ]

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.looks)]
        if self.state == self.full:
            return [self.submit()]
        return [Step(self.writes, {self.text_arg: self.text})]

    def wrong(self) -> list[Step]:
        steps = [Step(self.looks)] if self.known else [Step(self.writes, {self.text_arg: self._sentence()})]
        if self.state == self.full:
            return [*steps, Step(self.writes, {self.text_arg: self._sentence()})]
        return [*steps, self.submit(f"The {self.noun} is fine")]

    def do(self, step: Step) -> CallResult:
        if step.tool == self.looks:
            self.known = True
            shown = Excerpt(label="code", text=self.dice.lines(3, 8), start_line=self.dice.number(1, 60))
            said = f"The {self.noun} is {self.state}"
            beside = {} if self.state == self.full else {self.key: self.text}
            return CallResult(said, "success", {f"{self.noun}_state": self.state, **beside}, (shown,))
        if step.tool != self.writes:
            return CallResult("Nothing changed", "partial")
        if not self.known:
            return CallResult(f"Nobody has looked yet: {self.looks} first", "error")
        if step.args[self.text_arg] != self.text:
            return CallResult(f"That is not the {self.key}", "error")
        self.state = self.full
        return CallResult(f"Wrote the {self.noun}", "success", {f"{self.noun}_state": self.state})
