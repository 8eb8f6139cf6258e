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


class CheckRule(_Part):
    """How the files, not the model's word, decide: a tool is run before and after, and a number is compared."""

    tool: str
    count: str
    """The knowledge key that holds the number of things still wrong."""


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
    commands: tuple[str, ...] = ()
    """Programs that its tools may run."""
    safety: tuple[str, ...] = ()
    candidate_actions: tuple[CandidateAction, ...] = ()
    """Offered before the first tool result."""
    recall: bool = False
    """Whether the agent may look into its own earlier results."""
    extensions: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Extra packet fields, each with its JSON Schema; a tool fills them with `extensions`."""
    rendering: Literal["json", "markdown"] = "json"
    """How the packet is written into the prompt."""
    check: CheckRule | None = None
    summarizers: dict[str, str] = Field(default_factory=dict)
    """Who sums up what a tool returns: names of summarizers, by tool."""
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

    @field_validator("summarizers")
    @classmethod
    def _summarizers_are_names(cls, summarizers: dict[str, str]) -> dict[str, str]:
        paths = [name for name in summarizers.values() if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)]
        if paths:
            raise ValueError(
                f"`{paths[0]}` is not the name of a summarizer; import paths need `remora trust`, which is planned"
            )
        return summarizers

    @model_validator(mode="after")
    def _named_tools_exist(self) -> SubagentDefinition:
        known = {tool.name for tool in self.tools}
        used = [action.tool for action in self.candidate_actions]
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
