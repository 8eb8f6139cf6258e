"""Episodes on a suite's tasks: the oracle names what is right, and now and then something else is called.

The candidates are changed as the bench's controls do, but with other words: what a table is measured by is not
trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from remora.app import Deciders, RunOverrides
from remora.context.contracts import ToolSpec
from remora.events import Call, CandidateAction
from remora.ports import Decision, Prompt
from remora.subagent import SUBMIT_RESULT_TOOL, SubagentDefinition
from remora_lab.bench.controls import Offered
from remora_lab.bench.results import Choice
from remora_lab.bench.shadow import TaskOracle, is_among, plain
from remora_lab.bench.tasks import Task
from remora_lab.bench.unfamiliar import Renaming
from remora_lab.train._rows import answer_text
from remora_lab.train.synthetic import CONTROLS, Control, Dice
from remora_lab.train.synthetic import words as spoken

STRAYS = 6
"""Wrong calls of one episode at most."""
_REASONS = ("Next", "Try this", "It may help", "Usually right", "See more", "Not done yet", "The simplest way", "")
_VALUES = {"integer": 3, "number": 2, "boolean": True, "array": [], "object": {}}


@dataclass(frozen=True)
class Variation:
    """How one episode differs from the agent as it is shipped."""

    control: Control = "as offered"
    renamed: bool = False
    style: Literal["json", "markdown"] = "json"
    limit: int = 1000
    strays: float = 0.0
    """Share of the turns in which something wrong is called."""


def variation(dice: Dice, number: int) -> Variation:
    """The number-th of a task's episodes: the first is the agent as it is."""
    if number == 0:
        return Variation()
    return Variation(
        control=dice.one(CONTROLS),
        renamed=dice.maybe(0.35),
        style="markdown" if dice.maybe(0.2) else "json",
        limit=dice.one((1000, 1000, 1000, 1000, 1200, 1500)),
        strays=dice.one((0.0, 0.25, 0.25, 0.4)),
    )


@dataclass
class Episode:
    """One run of one task, and what would have been right in each of its turns."""

    task: Task
    oracle: TaskOracle
    how: Variation
    dice: Dice
    labels: dict[int, tuple[Prompt, Call]] = field(default_factory=dict)
    """By turn: what was asked, and the right answer."""

    def instead(self, deciders: Deciders) -> RunOverrides:
        """What stands between the agent and the runner."""
        texts = "\n".join([*self.task.files, *self.task.files.values()])
        names = _Names(self.dice, self.task.operation, texts) if self.how.renamed else None
        explorer = _Explorer(self, names)
        return RunOverrides(
            replace(deciders, policy=lambda definition: explorer),
            lambda definition: self._definition(names.definition(definition) if names else definition),
            lambda tools: Offered(names.tools(tools) if names else tools, self.offered),
        )

    def offered(self, actions: Sequence[Mapping[str, Any]], specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
        """The candidates that are shown in place of those that were offered."""
        control, dice, own = self.how.control, self.dice, [dict(action) for action in actions]
        if control == "withheld":
            return []
        if control == "as offered":
            return own
        named = {action.get("tool") for action in own}
        wrong = [_some_call(spec, dice) for spec in dice.some([s for s in specs if s.name not in named], 1, 2)]
        if SUBMIT_RESULT_TOOL not in named and dice.maybe(0.2):
            wrong.append(
                {"tool": SUBMIT_RESULT_TOOL, "args": {"summary": dice.one(("Done", "All is well", "Finished"))}}
            )
        wrong = [action | {"reason": dice.one(_REASONS)} for action in wrong]
        if control == "shuffled":
            return dice.shuffled([*own, *(wrong[:1] if dice.maybe(0.5) else [])])
        return [*wrong[:1], *own]

    def _definition(self, definition: SubagentDefinition) -> SubagentDefinition:
        without = {*definition.context, *(action.tool for action in definition.candidate_actions if not action.args)}
        specs = [ToolSpec(name=tool.name) for tool in definition.tools if tool.name in without]
        offered = self.offered([action.model_dump() for action in definition.candidate_actions], specs)
        actions = tuple(CandidateAction.model_validate(action) for action in offered)
        return definition.model_copy(update={"candidate_actions": actions, "rendering": self.how.style})


class _Explorer:
    """Calls what the oracle would call, or something else, and notes what was right."""

    name = "oracle"

    def __init__(self, episode: Episode, names: Renaming | None) -> None:
        self._episode = episode
        self._names = names
        self._strays = 0

    async def decide(self, prompt: Prompt) -> Decision:
        """A call, mostly a right one."""
        asked = self._names.prompt(prompt) if self._names else prompt
        choices = [self._names.call(call) if self._names else call for call in self._episode.oracle.choices(asked)]
        right = label(choices, prompt)
        self._episode.labels[prompt.turn] = (prompt, right)
        made = self._stray(prompt, choices) or right
        self._episode.oracle.asked(self._names.calls_back([made]) if self._names else [made])
        # As a model would have written it, so that a chat of this run looks like a chat with a model.
        text = answer_text(made.tool, made.args, prompt.tools) or ""
        return Decision(calls=(made,), text=text, finish="stop")

    def _stray(self, prompt: Prompt, choices: Sequence[Call]) -> Call | None:
        dice, how = self._episode.dice, self._episode.how
        if self._strays >= STRAYS or not dice.maybe(how.strays):
            return None
        calls = [action.model_dump() for action in prompt.candidates]
        calls += [_some_call(spec, dice) for spec in prompt.tools]
        wrong = [call for call in calls if call["tool"] != SUBMIT_RESULT_TOOL and not _is_right(call, choices)]
        if not wrong:
            return None
        self._strays += 1
        drawn = dice.one(wrong)
        return Call(call_id=f"call-{prompt.turn}", tool=drawn["tool"], args=drawn["args"])


def label(choices: Sequence[Call], prompt: Prompt) -> Call:
    """The right answer: the first candidate that is a choice; else the choice that the prompt tells most of."""
    for action in prompt.candidates:
        if _is_right(action.model_dump(), choices):
            return choices[0].model_copy(update={"tool": action.tool, "args": action.args})
    best = choices[0]
    same = [call for call in choices if call.tool == best.tool]
    told = str(prompt.messages[-1]["content"])
    return next((call for call in same if _stands_in(call.args, told)), best)


def _is_right(action: Mapping[str, Any], choices: Sequence[Call]) -> bool:
    return is_among(Choice(tool=action["tool"], args=action["args"]), [plain(call) for call in choices])


def _stands_in(value: Any, text: str) -> bool:
    if isinstance(value, Mapping):
        return all(_stands_in(part, text) for part in value.values())
    if isinstance(value, list):
        return all(_stands_in(part, text) for part in value)
    return str(value) in text


def _some_call(spec: ToolSpec, dice: Dice) -> dict[str, Any]:
    """A call that fits the tool's schema, and means nothing."""
    parts = spec.parameters.get("properties", {})
    return {"tool": spec.name, "args": {name: _some(parts[name], dice) for name in spec.parameters.get("required", ())}}


def _some(schema: Mapping[str, Any], dice: Dice) -> Any:
    if schema.get("enum"):
        return dice.one(schema["enum"])
    return _VALUES.get(str(schema.get("type")), dice.code())


class _Names(Renaming):
    """Tools under names made of the words of made-up agents, never of the bench's own."""

    def __init__(self, dice: Dice, operation: str, texts: str) -> None:
        super().__init__(0, operation, texts)
        self._dice = dice

    def _draw(self, names: list[str]) -> None:
        verbs = [*spoken.LOOK, *spoken.ACT, *spoken.READ, *spoken.WRITE]
        made: list[str] = []
        while not self._names and len(made) < len(names):
            name = f"{self._dice.verb(verbs)}_{self._dice.noun()}"
            if name not in made:
                made.append(name)
        self._names = self._names or dict(zip(names, made, strict=True))

    def _described(self, name: str, otherwise: str) -> str:
        return otherwise
