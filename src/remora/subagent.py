"""Agent definitions: what an agent is for, what it may use, and when its work counts.

An agent is a folder: `agents/<name>/subagent.yaml`, checked against `SubagentDefinition`, and one script a tool in
`agents/<name>/tools/<tool>.pym`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from remora.config import parse_yaml, validate
from remora.context.contracts import Effects, ToolSpec
from remora.events import CandidateAction
from remora.nodes import NodeType

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
SUBMIT_RESULT_TOOL = "submit_result"
FOLLOW_CANDIDATES = "candidates"

SUBMIT_RESULT = ToolSpec(
    name=SUBMIT_RESULT_TOOL,
    description="End the work and say in one line what was done.",
    parameters={"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]},
    effects="none",
)
"""Always offered, never dispatched as a tool."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolEntry(_Part):
    """A tool of an agent: a script in its `tools/` folder."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str = ""
    """What the model reads; the script's own docstring where this is empty."""
    effects: Effects = "outside"
    limits: Literal["strict", "default", "permissive"] = "default"
    python: str = Field(default="", pattern=r"^$|^[A-Za-z0-9_][A-Za-z0-9_/]*\.py:[A-Za-z_][A-Za-z0-9_]*$")
    """In place of a script: `file.py:function` in the agent's folder, a function with `@remora.tool`; needs trust."""


class CheckRule(_Part):
    """How the files, not the model's word, decide: a tool is run before and after, and a number is compared."""

    tool: str
    count: str
    """The knowledge key that holds the number of things still wrong."""
    words: dict[Literal["clean", "was_clean", "partial", "unchanged", "failed"], str] = Field(default_factory=dict)
    """This agent's own words for a verdict, such as `clean: kept`; `was_clean` is where nothing was wrong before."""


class CandidateRule(_Part):
    """Offers a call when the packet knows something, for tools that offer none themselves."""

    when: str
    """The knowledge key that is looked at."""
    is_: Literal["known", "true", "above", "equal"] = Field(default="true", alias="is")
    value: Any = 0
    """What `above` and `equal` compare with."""
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments; the text `{key}` stands for what is known under that key."""
    reason: str = ""


class CommandRule(_Part):
    """A Python module that a trusted agent's tools may run, such as `mypy`: always inside the OS sandbox."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    flags: tuple[str, ...] = ()
    """Flags that it may be given, such as `--strict`, or `--python-version=` with a value; else only paths."""


class SubagentDefinition(_Part):
    """One agent, as its `subagent.yaml` describes it."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str = ""
    goal: str
    """What the packet shows as the goal; `{node}` and `{file}` are filled in."""
    system_prompt: str
    targets: tuple[NodeType, ...] = (NodeType.FUNCTION, NodeType.METHOD)
    max_turns: int = Field(default=12, ge=1, le=1000)
    tools: tuple[ToolEntry, ...] = Field(min_length=1)
    commands: tuple[str | CommandRule, ...] = ()
    """Programs that its tools may run: bundled ones by name, others with their rules once the agent is trusted."""
    context: tuple[str, ...] = ()
    """Tools that are run, and recorded, before the first turn, so that the model begins with what they tell."""
    safety: tuple[str, ...] = ()
    candidate_actions: tuple[CandidateAction, ...] = ()
    """Offered before the first tool result."""
    candidate_rules: tuple[CandidateRule, ...] = ()
    """Offered after a result of a tool that offers nothing itself."""
    recall: bool = False
    """Whether the agent may look into its own earlier results."""
    extensions: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Extra packet fields, each with its JSON Schema; a tool fills them with `extensions`."""
    rendering: Literal["json", "markdown", "account"] = "json"
    """How the packet is written into the prompt."""
    check: CheckRule | None = None
    summarizers: dict[str, str] = Field(default_factory=dict)
    """Who sums up what a tool returns, by tool: names; for a trusted agent also `file.py:Name` and `package:Name`."""
    script: tuple[str, ...] = ()
    """What the `scripted` policy plays: tool names; `candidates` follows the first candidate until none is left."""

    @field_validator("tools")
    @classmethod
    def _names_are_unique(cls, tools: tuple[ToolEntry, ...]) -> tuple[ToolEntry, ...]:
        names = [tool.name for tool in tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"tool `{twice[0]}` is listed twice")
        if SUBMIT_RESULT_TOOL in names:
            raise ValueError(f"`{SUBMIT_RESULT_TOOL}` is always there and is not listed")
        return tools

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs that its tools may run."""
        return tuple(item if isinstance(item, str) else item.name for item in self.commands)

    def needs_trust(self) -> list[str]:
        """Places of what only a trusted definition may have: import paths, and programs beyond the bundled ones."""
        paths = [f"$.summarizers.{tool}" for tool, name in self.summarizers.items() if not _NAME.fullmatch(name)]
        python = [f"$.tools[{place}].python" for place, tool in enumerate(self.tools) if tool.python]
        extra = [f"$.commands[{place}]" for place, item in enumerate(self.commands) if isinstance(item, CommandRule)]
        return [*paths, *python, *extra]

    @model_validator(mode="after")
    def _named_tools_exist(self) -> SubagentDefinition:
        known = {tool.name for tool in self.tools}
        used = [action.tool for action in self.candidate_actions] + [rule.tool for rule in self.candidate_rules]
        used = [tool for tool in used if tool != SUBMIT_RESULT_TOOL]
        used += list(self.context)
        used += [self.check.tool] if self.check else []
        used += list(self.summarizers)
        used += [step for step in self.script if step not in (FOLLOW_CANDIDATES, SUBMIT_RESULT_TOOL)]
        missing = [name for name in used if name not in known]
        if missing:
            raise ValueError(f"tool `{missing[0]}` is used but not listed under `tools`")
        return self


def parse_definition(text: str, file: Path | str) -> SubagentDefinition:
    """The agent that a `subagent.yaml` describes. Raises `DefinitionError` that names the place of every problem."""
    value: Any = parse_yaml(text, file)
    return validate(SubagentDefinition, value, file)
