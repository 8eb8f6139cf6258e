"""What made-up agents have in common: tools with names and wordings drawn by chance, and a small world they work on.

A world knows which calls are right now. Whoever reads the packet can know it too: everything that decides it stands in
the system prompt, the goal, or what tools have told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora.context.contracts import ToolSpec
from remora.events import Excerpt, Outcome
from remora.subagent import SUBMIT_RESULT, SUBMIT_RESULT_TOOL
from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._dice import Dice

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}


@dataclass(frozen=True)
class Step:
    """A call."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict)

    def like(self, other: Step) -> bool:
        """Whether it is the same call; whoever submits may say it in any words."""
        return self.tool == other.tool and (self.tool == SUBMIT_RESULT_TOOL or self.args == other.args)


@dataclass(frozen=True)
class CallResult:
    """What a call came to."""

    summary: str
    outcome: Outcome = "success"
    known: dict[str, Any] = field(default_factory=dict)
    excerpts: tuple[Excerpt, ...] = ()


class World(ABC):
    """A made-up agent and what it works on."""

    ordered = False
    """Whether only the system prompt tells what comes first."""
    title = ""
    """What the agent is called; nothing for any name."""
    begun = False
    """Whether its first tool has run before the first turn."""
    looks = ""
    """The tool that tells how things stand."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.thing = dice.noun()
        self.place = dice.path(dice.one(("py", "py", "txt", "json", "md")))
        self.tools: list[ToolSpec] = []
        self.said = ""
        """What the latest call told: what a submission repeats where nothing better is offered."""
        self._manner = dice.one(("snake", "snake", "snake", "camel", "pascal", "reversed", "nonsense"))
        self.make()
        self.tools = dice.shuffled([*self.tools, *self.distractors()]) if dice.maybe(0.6) else [*self.tools]
        self.tools.append(SUBMIT_RESULT)

    @abstractmethod
    def make(self) -> None:
        """Name the tools and lay out the world."""

    @abstractmethod
    def order(self) -> list[str]:
        """Sentences that tell in which order tools are called, and by what."""

    @abstractmethod
    def goal(self) -> str:
        """What is wanted."""

    @abstractmethod
    def fine(self) -> list[Step]:
        """All calls that are right now, the best first."""

    @abstractmethod
    def wrong(self) -> list[Step]:
        """Calls that look likely and are wrong now."""

    @abstractmethod
    def do(self, step: Step) -> CallResult:
        """Make the call."""

    def tool(self, among: Sequence[str], noun: str, told: Sequence[str], **args: Schema) -> str:
        """A new tool of that sort; gives its name. Arguments with a default may be left out."""
        name = self._name(self.dice.verb(among), noun)
        while name in {each.name for each in self.tools}:
            name = f"{name}_{self.dice.noun()}"
        described = self._manner == "nonsense" or self.dice.maybe(0.92)
        return self.add(name, self.dice.one(told) if described else "", args)

    def add(self, name: str, description: str, args: Mapping[str, Schema]) -> str:
        """A new tool of that name."""
        required = [each for each, schema in args.items() if "default" not in schema]
        schema: dict[str, Any] = {"type": "object", "properties": {key: dict(item) for key, item in args.items()}}
        parameters = schema | ({"required": required} if required else {})
        self.tools.append(ToolSpec(name=name, description=description, parameters=parameters, effects="none"))
        return name

    def submit(self, text: str = "") -> Step:
        return Step(SUBMIT_RESULT_TOOL, {"summary": text or self.said or "Nothing to do"})

    def menu(self) -> list[Step]:
        """Every way on that a tool could offer, right or not, for whoever decides by what they are for."""
        return []

    def reason(self, step: Step) -> str:
        """Why one would make a call; nothing for any reason."""
        return ""

    def who(self) -> str:
        """A sentence about the agent."""
        return self.dice.one(
            (f"You take care of {self.thing}s, one tool at a time.", f"You are an agent for {self.thing}s.",
             f"You work on one {self.thing} with tools.", f"Look after the {self.thing}, a tool at a time.",
             f"Your work: one {self.thing}. Use a tool in each turn.", f"{self.thing.title()} agent.")
        )  # fmt: skip

    def system(self) -> str:
        """The agent's own text: who it is, and in which order it works."""
        who = self.who()
        order = self.order()
        if not self.ordered and self.dice.maybe(0.15):
            order = order[-1:]  # what tools are for must then be enough
        if self.dice.maybe(0.25):
            lines = [f"{number}. {line}" for number, line in enumerate(order, start=1)]
            return "\n".join([who, *lines])
        return who + ("\n" if self.dice.maybe(0.7) else " ") + self.dice.one(("\n", " ")).join(order)

    def ending(self) -> str:
        """A sentence about how the work ends."""
        return self.dice.one(
            ("At the end submit_result says what was done.", "When nothing is left, call submit_result.",
             "Then submit_result.", "Finish with submit_result.", "submit_result ends the work.",
             "Call submit_result once there is nothing more to do.", "If all is done: submit_result.")
        )  # fmt: skip

    def _name(self, verb: str, noun: str) -> str:
        if self._manner == "nonsense":
            return f"{self.dice.nonsense()}_{self.dice.nonsense()}"
        if self._manner == "camel":
            return verb + noun.title().replace("_", "")
        if self._manner == "pascal":
            return verb.title() + noun.title().replace("_", "")
        return f"{noun}_{verb}" if self._manner == "reversed" else f"{verb}_{noun}"

    def distractors(self) -> list[ToolSpec]:
        """Tools that are never needed."""
        before, self.tools = self.tools, []
        for _ in range(self.dice.number(1, 4)):
            noun, verb = self.dice.noun(), self.dice.verb(words.OTHER)
            extra: dict[str, Schema] = {self.dice.noun(): self.dice.one((TEXT, WHOLE))} if self.dice.maybe(0.6) else {}
            told = (
                f"{verb.title()} the {noun}s.",
                f"{verb.title()} a {noun} for another team.",
                f"Only to {verb} {noun}s.",
            )
            self.tool([verb], noun, told, **extra)
        found = [each for each in self.tools if each.name not in {known.name for known in before}]
        self.tools = before
        return found


def described(among: str, noun: str) -> tuple[str, ...]:
    """Wordings for a tool of a sort, about a noun."""
    by_sort = {
        "look": (f"List the {noun}s.", f"Show which {noun}s there are.", f"See what {noun}s are open.",
                 f"Report every {noun} of this target.", f"Tell how many {noun}s there are, and which."),
        "act": (f"Resolve one {noun}.", f"Apply the safe change for one {noun}.", f"Take care of a {noun} by its mark.",
                f"Mend one {noun}, such as the first that is listed."),
        "read": (f"Show the lines around a {noun}.", f"Open one {noun} and show it.", f"Display a {noun}."),
        "edit": (f"Put text in place of a {noun}.", f"Change a {noun} by hand.", f"Write new text for the {noun}."),
        "write": (f"Write the {noun}.", f"Make a new {noun}.", f"Store the {noun} in its file."),
        "verify": (f"Check if the {noun} works.", f"Run the {noun} and tell what fails.", f"Tell if the {noun} holds."),
        "get": (f"Tell the {noun}.", f"Look up the {noun}.", f"Find out the {noun} of this target."),
    }  # fmt: skip
    return by_sort[among]
