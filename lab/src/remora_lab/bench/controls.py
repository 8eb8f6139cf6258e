"""Controls: the same agent with candidates that help less, or in words that nobody has seen.

Each stands between the agent and the runner (`remora.app.RunOverrides`), so what it changes is what the stream
records, and the packet stays a function of the stream.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from remora.app import Deciders, RunOverrides
from remora.context.contracts import ToolSpec
from remora.errors import ConfigError
from remora.events import CandidateAction
from remora.ports import ToolOutput, Tools
from remora.subagent import SUBMIT_RESULT_TOOL, SubagentDefinition
from remora_lab.bench.tasks import Task
from remora_lab.bench.unfamiliar import Renaming

Change = Callable[[list[dict[str, Any]], Sequence[ToolSpec]], list[dict[str, Any]]]
"""Candidates as a tool gave them → candidates as they are offered."""


@dataclass(frozen=True)
class Control:
    """One way to make sure that we do not fool ourselves."""

    name: str
    title: str
    draws: bool
    """Whether it depends on the seed."""


CONTROLS: dict[str, Control] = {
    control.name: control
    for control in (
        Control("none", "as shipped", False),
        Control("shuffled", "candidates in any order", True),
        Control("planted", "a wrong candidate first in every result", True),
        Control("withheld", "no candidates", False),
        Control("unfamiliar", "tools under other names and descriptions", True),
    )
}
WRONG_REASON = "Recommended next step"


def select_controls(names: Iterable[str]) -> list[Control]:
    """The controls of these names; `all` are all, none is `none`. Raises `ConfigError`."""
    wanted = list(dict.fromkeys(names)) or ["none"]
    if "all" in wanted:
        return list(CONTROLS.values())
    if unknown := [name for name in wanted if name not in CONTROLS]:
        known = ", ".join(f"`{name}`" for name in (*CONTROLS, "all"))
        raise ConfigError(f"There is no control `{unknown[0]}`: expected one of {known}")
    return [CONTROLS[name] for name in wanted]


def apply_control(control: Control, task: Task, seed: int, deciders: Deciders, names: Renaming | None) -> RunOverrides:
    """What stands between the agent of this task and the runner. `names`: as `renaming` gave them."""
    if names is not None:
        return RunOverrides(deciders, names.definition, names.tools)
    change = _change(control.name, random.Random(f"{control.name} {seed} {task.id}"))  # noqa: S311 - repeatable
    if change is None:
        return RunOverrides(deciders)
    if control.name == "planted":
        # Not before the first result: there, all that could be planted without arguments is the end itself.
        return RunOverrides(deciders, tools=lambda tools: Offered(tools, change))
    rules = control.name != "withheld"
    return RunOverrides(
        deciders,
        lambda definition: _offering(definition, change, rules=rules),
        lambda tools: Offered(tools, change),
    )


def renaming(control: Control, task: Task, seed: int) -> Renaming | None:
    """How tools are called in this trial, where they are called otherwise."""
    if control.name != "unfamiliar":
        return None
    return Renaming(seed, task.operation, "\n".join([*task.files, *task.files.values()]))


def _change(name: str, drawn: random.Random) -> Change | None:
    if name == "shuffled":
        return lambda offered, specs: drawn.sample(offered, len(offered))
    if name == "planted":
        return lambda offered, specs: [*_wrong(offered, specs, drawn), *offered]
    if name == "withheld":
        return lambda offered, specs: []
    return None


def _wrong(offered: Sequence[Mapping[str, Any]], specs: Sequence[ToolSpec], drawn: random.Random) -> list[Any]:
    """A call that can be made and that nobody advised: of a tool that no candidate names, or an end too soon."""
    named = {action.get("tool") for action in offered}
    calls = [(spec.name, _some_args(spec.parameters)) for spec in specs if spec.name not in named]
    if SUBMIT_RESULT_TOOL not in named:
        calls.append((SUBMIT_RESULT_TOOL, {"summary": "Nothing to do"}))
    if not calls:
        return []
    tool, args = drawn.choice(calls)
    return [{"tool": tool, "args": args, "reason": WRONG_REASON}]


def _some_args(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that fit the schema, and mean nothing."""
    parts = schema.get("properties", {})
    return {name: _some_value(parts.get(name, {})) for name in schema.get("required", ())}


def _some_value(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kinds = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
    return kinds.get(str(schema.get("type")), "TODO")


def _offering(definition: SubagentDefinition, change: Change, *, rules: bool) -> SubagentDefinition:
    """The definition with other candidates at the start, with its rules or without."""
    offered = change([action.model_dump() for action in definition.candidate_actions], ())
    actions = tuple(CandidateAction.model_validate(action) for action in offered)
    kept = definition.candidate_rules if rules else ()
    return definition.model_copy(update={"candidate_actions": actions, "candidate_rules": kept})


class Offered:
    """Tools whose results offer other candidates."""

    def __init__(self, tools: Tools, change: Change) -> None:
        self._tools = tools
        self._change = change

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._tools.specs

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """As the tool, but for its candidates. Raises `ToolError`."""
        output = await self._tools.call(name, args)
        if not isinstance(output.value, Mapping):
            return output
        offered = [dict(action) for action in output.value.get("candidate_actions") or ()]
        return replace(output, value={**output.value, "candidate_actions": self._change(offered, self.specs)})
