"""Agent definitions: an agent's goal, its tools, and the check that judges its work.

An agent is a folder. `agents/<name>/subagent.yaml` is validated by `SubagentDefinition`, and each tool is a script,
`agents/<name>/tools/<tool>.pym`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from remora.config import EscalationRules
from remora.context.contracts import Effects, ToolSpec
from remora.events import CandidateAction
from remora.mcp_servers import NAME as SERVER_NAME
from remora.mcp_servers import McpServer
from remora.nodes import NodeType
from remora.validation import parse_yaml, validate

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
SUBMIT_RESULT_TOOL = "submit_result"
ESCALATE_TOOL = "escalate"
NO_TOOL_FITS_TOOL = "no_tool_fits"
RESERVED_TOOLS = (SUBMIT_RESULT_TOOL, ESCALATE_TOOL, NO_TOOL_FITS_TOOL)
FOLLOW_CANDIDATES = "candidates"

SUBMIT_RESULT = ToolSpec(
    name=SUBMIT_RESULT_TOOL,
    description="End the work and say in one line what was done.",
    parameters={"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]},
    effects="none",
)
"""Offered to every agent. The runner handles it; it is never dispatched as a tool."""

ESCALATE = ToolSpec(
    name=ESCALATE_TOOL,
    description="Hand this step to a larger model if you cannot do it, and say in one line why.",
    parameters={"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
    effects="none",
)
"""Offered below the top of a ladder if the rule `ask` allows it. Like `submit_result`, it is never dispatched."""

NO_TOOL_FITS = ToolSpec(
    name=NO_TOOL_FITS_TOOL,
    description="Decline: no other tool does what the goal asks for. Say in one line what is missing.",
    parameters={"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
    effects="none",
)
"""Offered to agents with `decline`. It ends the run, and changes nothing."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolEntry(_Part):
    """A tool of an agent: a script in its `tools/` folder, a Python function, or a tool of an MCP server."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str = ""
    """The description that the model reads. If empty, the script's docstring is used."""
    effects: Effects = "outside"
    """What a call can change. After a crash, only calls with `none` or `workspace` run again."""
    limits: Literal["strict", "default", "permissive"] = "default"
    """Limits of a script: memory and time."""
    python: str = Field(default="", pattern=r"^$|^[A-Za-z0-9_][A-Za-z0-9_/]*\.py:[A-Za-z_][A-Za-z0-9_]*$")
    """`file.py:function` in the agent's folder, a function with `@remora.tool`, instead of a script. Needs trust."""
    mcp: str = Field(default="", pattern=rf"^$|^{SERVER_NAME}(/[!-~]{{1,128}})?$")
    """`server` or `server/tool`: a tool of an MCP server instead of a script. Without `/tool`, it has the same name
    there. Needs trust."""
    fixed: dict[str, Any] = Field(default_factory=dict)
    """Arguments of an MCP tool that the model neither sees nor sets. `{project}` is replaced by the project's
    folder."""

    @property
    def mcp_server(self) -> str:
        """The name of the MCP server; empty if the tool is not from one."""
        return self.mcp.partition("/")[0]

    @property
    def mcp_tool(self) -> str:
        """The tool's name on that server."""
        return self.mcp.partition("/")[2] or self.name

    @model_validator(mode="after")
    def _is_one_kind(self) -> ToolEntry:
        if self.mcp and self.python:
            raise ValueError("expected either `python` or `mcp`")
        if self.fixed and not self.mcp:
            raise ValueError("`fixed` is for tools of MCP servers")
        if self.mcp and self.effects == "workspace":
            raise ValueError("an MCP server cannot write to the workspace: expected `effects` of `none` or `outside`")
        return self


class CheckRule(_Part):
    """Judges an agent by its files, not by the model's claims: compares a tool's counts before and after."""

    tool: str
    count: str
    """The knowledge key that holds the number of problems."""
    words: dict[Literal["clean", "was_clean", "changed", "partial", "unchanged", "failed"], str] = Field(
        default_factory=dict
    )
    """This agent's own names for verdicts, such as `clean: kept`. `was_clean` means that the first check was clean,
    and `changed` that the agent changed such code all the same."""
    unsafe: str = ""
    """The knowledge key that counts fixes that may change behaviour. Such work has the verdict `unsafe`: it is accepted
    only if the user names the agent."""
    ask_when_clean: bool = False
    """Whether to ask the model even if the check finds no problem. By default, such an agent ends by rule."""


class CandidateRule(_Part):
    """Offers a call depending on knowledge in the packet, after tools that return no candidates."""

    model_config = ConfigDict(populate_by_name=True)  # streams of earlier versions hold `is_`

    when: str
    """The knowledge key that the rule tests."""
    is_: Literal["known", "true", "above", "equal"] = Field(default="true", alias="is")
    value: Any = 0
    """The value for `above` and `equal`."""
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the call. `{key}` is replaced by the knowledge under that key."""
    reason: str = ""


class DecisionRule(CandidateRule):
    """Makes a call without asking the model, depending on knowledge in the packet. Each call is made once.

    `tool: candidates` makes the first call that the last tool offered.
    """

    when: str = ""
    """The knowledge key that the rule tests; empty for a rule that always matches."""


class DraftExample(_Part):
    """A text that the model is shown as if it had written it."""

    shown: str
    """What it was written about, as a prompt shows it."""
    written: str


class DraftRule(CandidateRule):
    """Has the model write one argument of a tool in plain words, several times, where it would make a call as JSON.

    The calls are alternatives: they are made in turn until one succeeds. The likeliest draft is the first, then come
    those whose words the others or the excerpts have too. Policies without a model, and models that only learned to
    choose, make a call as usual.
    """

    when: str = ""
    """The knowledge key that the rule tests; empty for a rule that always matches."""
    argument: str
    """The argument that the model writes. `args` has the others."""
    system_prompt: str
    """The instructions at the start of these prompts, instead of those of the agent."""
    examples: tuple[DraftExample, ...] = Field(default=(), max_length=8)
    """The same in every prompt, so that a server reads them once."""
    excerpts: tuple[str, ...] = ()
    """The labels of the packet's excerpts that are shown; all if empty."""
    count: int = Field(default=3, ge=1, le=4)
    """How many drafts. The first is the likeliest text, the others are drawn with seeds 1, 2, 3 and so on."""
    temperature: float = Field(default=0.4, gt=0, le=2)
    """For all drafts but the first."""
    max_tokens: int = Field(default=80, ge=8, le=1000)
    """Most tokens of a draft."""


class CommandRule(_Part):
    """A Python module that tools of a trusted agent may run, such as `mypy`. It always runs in the OS sandbox."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    flags: tuple[str, ...] = ()
    """Allowed flags, such as `--strict`, or `--python-version=` with any value. All other arguments must be paths."""


class SubagentDefinition(_Part):
    """One agent: the content of its `subagent.yaml`."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str = ""
    goal: str
    """The goal in the packet. `{node}` and `{file}` are replaced."""
    system_prompt: str
    """The instructions at the start of every prompt."""
    targets: tuple[NodeType, ...] = (NodeType.FUNCTION, NodeType.METHOD)
    """The kinds of code: one agent runs on each piece."""
    whole_file_first: bool = False
    """Whether an agent works on each whole file before the others, which then start with its changes."""
    max_turns: int = Field(default=12, ge=1, le=1000)
    """Maximum turns. A lower limit of the settings applies."""
    tools: tuple[ToolEntry, ...] = Field(min_length=1)
    """What the model may call."""
    mcp: dict[Annotated[str, Field(pattern=rf"^{SERVER_NAME}$")], McpServer] = Field(default_factory=dict)
    """MCP servers by name. Those of the user's settings come first. Need trust."""
    commands: tuple[str | CommandRule, ...] = ()
    """Programs that its tools may run: bundled ones by name, others as `CommandRule`s, which need trust."""
    context: tuple[str, ...] = ()
    """Tools that run before the first turn. Their results are recorded and shown to the model."""
    safety: tuple[str, ...] = ()
    """Rules that every prompt shows."""
    candidate_actions: tuple[CandidateAction, ...] = ()
    """Offered before the first tool result."""
    candidate_rules: tuple[CandidateRule, ...] = ()
    """Offered after a tool result without candidates."""
    decision_rules: tuple[DecisionRule, ...] = ()
    """Calls made without a model: before each turn, the first rule that matches decides. Recorded as `by rule`."""
    drafts: tuple[DraftRule, ...] = ()
    """Texts that a model writes in plain words: the first rule that matches decides how a turn is asked."""
    recall: bool = False
    """Whether the agent gets the tool `recall`, which searches its earlier results."""
    decline: bool = False
    """Whether the agent gets the tool `no_tool_fits`, which ends the run if its tools cannot do what the goal says."""
    extensions: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Extra packet fields, each with its JSON Schema. Tools set them by `extensions` in their results."""
    rendering: Literal["json", "markdown", "account", "chat"] = "json"
    """The prompt style."""
    check: CheckRule | None = None
    """What decides the verdict."""
    escalation: EscalationRules = EscalationRules()
    """When the agent moves to a larger model of the user's ladder. Rules given here replace those of the settings."""
    summarizers: dict[str, str] = Field(default_factory=dict)
    """Summarizers by tool: registered names; for a trusted agent also `file.py:Name` and `package:Name`."""
    script: tuple[str, ...] = ()
    """Tool names that the `scripted` policy calls. `candidates` follows the first candidate until none is left."""

    @field_validator("tools")
    @classmethod
    def _names_are_unique(cls, tools: tuple[ToolEntry, ...]) -> tuple[ToolEntry, ...]:
        names = [tool.name for tool in tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"tool `{twice[0]}` is listed twice")
        if reserved := [name for name in RESERVED_TOOLS if name in names]:
            raise ValueError(f"`{reserved[0]}` is reserved: Remora offers it by itself, and it is not listed")
        return tools

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs that its tools may run."""
        return tuple(item if isinstance(item, str) else item.name for item in self.commands)

    def needs_trust(self) -> list[str]:
        """JSON paths of the parts that need trust: import paths, Python tools, MCP servers, and other programs."""
        paths = [f"$.summarizers.{tool}" for tool, name in self.summarizers.items() if not _NAME.fullmatch(name)]
        python = [f"$.tools[{place}].python" for place, tool in enumerate(self.tools) if tool.python]
        servers = [f"$.tools[{place}].mcp" for place, tool in enumerate(self.tools) if tool.mcp]
        servers += [f"$.mcp.{name}" for name in self.mcp]
        extra = [f"$.commands[{place}]" for place, item in enumerate(self.commands) if isinstance(item, CommandRule)]
        return [*paths, *python, *servers, *extra]

    @model_validator(mode="after")
    def _named_tools_exist(self) -> SubagentDefinition:
        known = {tool.name for tool in self.tools}
        used = [action.tool for action in self.candidate_actions] + [rule.tool for rule in self.candidate_rules]
        used = [tool for tool in used if tool != SUBMIT_RESULT_TOOL]
        used += [rule.tool for rule in self.decision_rules if rule.tool not in (FOLLOW_CANDIDATES, SUBMIT_RESULT_TOOL)]
        used += [rule.tool for rule in self.drafts]
        used += list(self.context)
        used += [self.check.tool] if self.check else []
        used += list(self.summarizers)
        used += [step for step in self.script if step not in (FOLLOW_CANDIDATES, SUBMIT_RESULT_TOOL)]
        missing = [name for name in used if name not in known]
        if missing:
            raise ValueError(f"tool `{missing[0]}` is used but not listed under `tools`")
        return self


def parse_definition(text: str, file: Path | str) -> SubagentDefinition:
    """Parse a `subagent.yaml`. Raises `DefinitionError`, which locates every problem."""
    value: Any = parse_yaml(text, file)
    return validate(SubagentDefinition, value, file)
