"""Renames the tools of an agent, and their descriptions, to words that no model was trained on."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from remora.context.contracts import ToolSpec
from remora.errors import ToolError
from remora.events import Call
from remora.ports import Decision, Policy, Prompt, ToolOutput, Tools
from remora.subagent import SubagentDefinition
from remora_lab.bench.wordings import FIRST, SECOND, WORDINGS

_TOLD = ("summary", "error", "candidate_actions", "diagnostics", "knowledge_delta")
"""Fields of a result in which a tool speaks; code that it shows stays as it is."""


class Renaming:
    """Made-up names for the tools of one operation, drawn by a seed."""

    def __init__(self, seed: int, operation: str, texts: str) -> None:
        """`texts`: the project's own words. A tool's name that is among them is not touched in results."""
        self._seed = seed
        self._operation = operation
        self._words = frozenset(re.findall(r"\w+", texts))
        self._names: dict[str, str] = {}

    def definition(self, definition: SubagentDefinition) -> SubagentDefinition:
        """The definition with its tools called otherwise, wherever it names them."""
        self._draw([tool.name for tool in definition.tools])
        renamed = self._deep(definition.model_dump(mode="json", by_alias=True), self._text)
        tools = [
            {**tool, "description": self._described(old.name, tool["description"])}
            for tool, old in zip(renamed["tools"], definition.tools, strict=True)
        ]
        summarizers = {self._names[tool]: name for tool, name in definition.summarizers.items()}
        own = {"tools": tools, "summarizers": summarizers, "name": definition.name}
        return SubagentDefinition.model_validate(renamed | own)

    def tools(self, tools: Tools) -> Tools:
        """The tools under their new names."""
        self._draw([spec.name for spec in tools.specs])
        return _Renamed(tools, self)

    def policy(self, policy: Policy) -> Policy:
        """A policy that knows only the old names, in the world of the new ones."""
        return _Translated(policy, self)

    def spec(self, spec: ToolSpec) -> ToolSpec:
        described = self._described(spec.name, self._text(spec.description))
        return spec.model_copy(update={"name": self.new(spec.name), "description": described})

    def new(self, name: str) -> str:
        return self._names.get(name, name)

    def old(self, name: str) -> str:
        return self._back.get(name, name)

    def told(self, value: Any) -> Any:
        """A result in which the tool speaks of tools by their new names."""
        if not isinstance(value, Mapping):
            return value
        return {key: self._deep(part, self._careful) if key in _TOLD else part for key, part in value.items()}

    def told_error(self, text: str) -> str:
        return self._careful(text)

    def prompt(self, prompt: Prompt) -> Prompt:
        """The prompt as it would have been with the old names."""
        tools = tuple(spec.model_copy(update={"name": self.old(spec.name)}) for spec in prompt.tools)
        candidates = tuple(
            action.model_copy(update={"tool": self.old(action.tool), "reason": self._text_back(action.reason)})
            for action in prompt.candidates
        )
        messages = tuple(self._deep(dict(message), self._text_back) for message in prompt.messages)
        return replace(prompt, messages=messages, tools=tools, candidates=candidates)

    def call(self, call: Call) -> Call:
        return call.model_copy(update={"tool": self.new(call.tool)})

    def calls_back(self, calls: Sequence[Call]) -> tuple[Call, ...]:
        """The calls by the old names."""
        return tuple(call.model_copy(update={"tool": self.old(call.tool)}) for call in calls)

    def _draw(self, names: list[str]) -> None:
        if self._names:
            return
        drawn = random.Random(f"{self._seed} {self._operation}")  # noqa: S311 - repeatable on purpose
        made = [f"{first}_{second}" for first in FIRST for second in SECOND]
        self._names = dict(zip(names, drawn.sample(made, len(names)), strict=True))

    def _described(self, name: str, otherwise: str) -> str:
        found = WORDINGS.get(f"{self._operation}.{name}")
        return found[self._seed % len(found)] if found else otherwise

    @cached_property
    def _back(self) -> dict[str, str]:
        return {new: old for old, new in self._names.items()}

    def _text(self, text: str) -> str:
        return _replaced(text, self._names)

    def _careful(self, text: str) -> str:
        return _replaced(text, {old: new for old, new in self._names.items() if old not in self._words})

    def _text_back(self, text: str) -> str:
        return _replaced(text, self._back)

    def _deep(self, value: Any, change: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, Mapping):
            return {key: self._action(key, part, change) for key, part in value.items()}
        return [self._deep(part, change) for part in value] if isinstance(value, list | tuple) else value

    def _action(self, key: str, part: Any, change: Callable[[str], str]) -> Any:
        """A candidate's tool is always one of ours, whatever the project's words are."""
        return (
            self.new(part)
            if key == "tool" and isinstance(part, str) and part in self._names
            else self._deep(part, change)
        )


class _Renamed:
    """Tools under other names."""

    def __init__(self, tools: Tools, names: Renaming) -> None:
        self._tools = tools
        self._names = names

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(self._names.spec(spec) for spec in self._tools.specs)

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """As the tool of the old name. Raises `ToolError`."""
        try:
            output = await self._tools.call(self._names.old(name), args)
        except ToolError as error:
            error.message = self._names.told_error(error.message)
            raise
        return replace(output, value=self._names.told(output.value))


class _Translated:
    """Decides on the prompt in its old words."""

    def __init__(self, policy: Policy, names: Renaming) -> None:
        self._policy = policy
        self._names = names

    @property
    def name(self) -> str:
        return self._policy.name

    async def decide(self, prompt: Prompt) -> Decision:
        """What the policy decides, by the new names. Raises `DecisionError`."""
        decision = await self._policy.decide(self._names.prompt(prompt))
        return replace(decision, calls=tuple(map(self._names.call, decision.calls)))


def _replaced(text: str, names: Mapping[str, str]) -> str:
    if not names:
        return text
    pattern = r"\b(" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + r")\b"
    return re.sub(pattern, lambda found: names[found[1]], text)
