"""Agents that search for a thing; agents whose next tool depends on the kind of thing."""

from __future__ import annotations

from typing import Any

from remora.events import Excerpt
from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._world import TEXT, WHOLE, CallResult, Schema, Step, World, described


class Seeking(World):
    """Search for a word of the goal, open what was found one by one, until it is there; submit."""

    def make(self) -> None:
        dice = self.dice
        self.noun, self.query = dice.noun(), dice.code()
        self.query_arg = dice.one(("query", "text", "word", "term", "pattern"))
        self.path_arg = dice.one(("path", "file", "name", "document"))
        told = (f"Search for a {self.noun}.", f"Find where a {self.noun} is named.", "Search everywhere for a word.")
        self.searches = self.tool(words.LOOK, self.noun, told, **{self.query_arg: TEXT})
        self.opens = self.tool(words.READ, dice.noun(), described("read", self.noun), **{self.path_arg: TEXT})
        self.hits = list(dict.fromkeys(dice.path() for _ in range(dice.number(0, 4))))
        self.place_of = dice.one(self.hits) if self.hits and dice.maybe(0.8) else ""
        self.hits_key = dice.one(("hits", "matches", "places", "found_in", "results"))
        self.opened_key = dice.one(("opened", "seen", "read", "looked_at"))
        self.known = self.found = False
        self.opened: list[str] = []

    def goal(self) -> str:
        return self.dice.one(
            (f"Find the {self.noun} `{self.query}`", f"Where is the {self.noun} {self.query}?",
             f"Say what is known about {self.noun} {self.query}")
        )  # fmt: skip

    def order(self) -> list[str]:
        one = self.dice.one
        return [
            one((f"First {self.searches} with the {self.noun} of the goal.", f"{self.searches} finds places.")),
            one((f"Then {self.opens} one hit after the other, until it is found.", f"{self.opens} each hit in order.")),
            self.ending(),
        ]

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.searches, {self.query_arg: self.query})]
        left = [path for path in self.hits if path not in self.opened]
        if self.found or not left:
            return [self.submit()]
        return [Step(self.opens, {self.path_arg: path}) for path in left]

    def wrong(self) -> list[Step]:
        steps = [Step(self.opens, {self.path_arg: path}) for path in (*self.opened, self.dice.path())]
        steps.append(Step(self.searches, {self.query_arg: self.dice.code()}))
        steps += [Step(self.searches, {self.query_arg: self.query})] if self.known else []
        steps += [] if self.fine()[0].tool == "submit_result" else [self.submit("Not found")]
        return steps

    def do(self, step: Step) -> CallResult:
        if step.tool == self.searches:
            return self._search(str(step.args[self.query_arg]))
        if step.tool == self.opens:
            return self._open(str(step.args[self.path_arg]))
        return CallResult("Nothing useful", "partial")

    def _search(self, query: str) -> CallResult:
        if query != self.query:
            return CallResult(f"No {self.noun} `{query}`", "partial")
        self.known = True
        return CallResult(f"{len(self.hits)} {self.hits_key} for {query}", "success", self._knowledge())

    def _open(self, path: str) -> CallResult:
        if not self.known or path not in self.hits:
            return CallResult(f"{path} is no hit: {self.searches} first", "error")
        self.opened += [path] if path not in self.opened else []
        self.found = self.found or path == self.place_of
        text = f"{self.dice.one(words.CODE_LINES)}\n{self.query if path == self.place_of else self.dice.code()}"
        said = f"{self.query} is in {path}" if path == self.place_of else f"{path} does not say it"
        return CallResult(said, "success", self._knowledge(), (Excerpt(label=path, text=text),))

    def _knowledge(self) -> dict[str, Any]:
        return {self.hits_key: list(self.hits), self.opened_key: list(self.opened), "found": self.found}


class Routing(World):
    """Look once, then call the tool that is for this kind of thing, with arguments from what is known; submit."""

    def make(self) -> None:
        dice = self.dice
        self.noun, self.number_, self.person = dice.noun(), dice.number(10, 9999), dice.noun()
        self.kinds = [f"{dice.one(words.ADJECTIVES)} {self.noun}" for _ in range(dice.number(2, 4))]
        self.kinds = list(dict.fromkeys(self.kinds))
        self.levels = list(dice.one(words.ENUMS))
        self.id_arg, self.who_arg, self.level_arg = (
            dice.one(("id", "number", "ref")),
            "owner",
            dice.one(("level", "priority")),
        )
        self.fetches = self.tool(words.READ, self.noun, described("get", f"{self.noun} and its kind"))
        self.kind, self.level = dice.one(self.kinds), dice.one(self.levels)
        self.wants = {kind: self._wanted() for kind in self.kinds}
        self.handles = {kind: self._handler(kind) for kind in self.kinds}
        self.known = self.done = False

    def _wanted(self) -> dict[str, Schema]:
        parts: dict[str, Schema] = {
            self.id_arg: WHOLE, self.who_arg: TEXT, self.level_arg: {"enum": self.levels}
        }  # fmt: skip
        return {name: parts[name] for name in self.dice.some(list(parts), 1, 3)}

    def _handler(self, kind: str) -> str:
        told = (f"For a {kind}.", f"Handle a {kind}.", f"Use it when the kind is {kind}.")
        return self.tool([*words.ACT, *words.WRITE], self.dice.noun(), told, **self.wants[kind])

    def goal(self) -> str:
        return self.dice.one((f"Handle the {self.noun} of {self.place}", f"Route {self.noun} in {self.place}"))

    def order(self) -> list[str]:
        first = self.dice.one((f"First {self.fetches}.", f"{self.fetches} tells the kind."))
        rules = [f"If it is a {kind}: {tool}." for kind, tool in self.handles.items()]
        named = rules if self.dice.maybe(0.5) or self._manner == "nonsense" else ["Then call the tool for its kind."]
        return [first, *self.dice.shuffled(named), self.ending()]

    def fine(self) -> list[Step]:
        if not self.known:
            return [Step(self.fetches)]
        return [self.submit()] if self.done else [self._step(self.kind)]

    def _step(self, kind: str) -> Step:
        values = {self.id_arg: self.number_, self.who_arg: self.person, self.level_arg: self.level}
        return Step(self.handles[kind], {name: values[name] for name in self.wants[kind]})

    def wrong(self) -> list[Step]:
        steps = [self._step(kind) for kind in self.kinds if kind != self.kind or self.done]
        steps += [Step(self.fetches)] if self.known else []
        return steps + ([] if self.done else [self.submit("Handled")])

    def do(self, step: Step) -> CallResult:
        if step.tool == self.fetches:
            self.known = True
            known = {
                "kind": self.kind,
                self.id_arg: self.number_,
                self.who_arg: self.person,
                self.level_arg: self.level,
            }
            return CallResult(f"A {self.kind}", "success", dict(self.dice.shuffled(list(known.items()))))
        if self.known and step.like(self._step(self.kind)):
            self.done = True
            return CallResult(f"Handled {self.noun} {self.number_}", "success", {"handled": True})
        if step.tool in self.handles.values():
            return CallResult(f"{step.tool} is not for this {self.noun}", "error")
        return CallResult("Nothing happened", "partial")
