"""The tools of one agent: its scripts, with its node, its workspace and the programs it may run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.context.contracts import ToolSpec
from remora.errors import DefinitionError, ToolError, ToolNotFound, WorkspaceError
from remora.nodes import CodeNode
from remora.ports import CodeReader, Completed, Spawner, ToolOutput, Workspace
from remora.scripts._externals import external_problems
from remora.scripts._host import Host
from remora.scripts._lines import follow, split_lines
from remora.scripts._modules import ScriptFiles
from remora.scripts._pool import DEFAULT, PERMISSIVE, STRICT, ScriptPool
from remora.scripts._script import Script, check_arguments, load
from remora.scripts._survey import Survey
from remora.subagent import SubagentDefinition, ToolEntry

SYSTEM_INPUTS = ("node_text", "target_file", "workspace_id", "node_lines", "run_stage")
"""Inputs that the runner sets. They are not part of the schema that a model sees, and it cannot pass them."""
LIMITS = {"strict": STRICT, "default": DEFAULT, "permissive": PERMISSIVE}


def load_scripts(
    folder: Path, definition: SubagentDefinition, snapshot: Mapping[str, bytes] | None = None
) -> dict[str, Script]:
    """The script of every tool that is one, from `folder/<tool>.pym`. Raises `DefinitionError` with all problems.

    With `snapshot`, all files of the agent by their path in its folder, none of them is read from the disk.
    """
    scripts: dict[str, Script] = {}
    problems: list[str] = []
    files = ScriptFiles(folder, snapshot)
    for entry in definition.tools:
        if entry.python or entry.mcp:
            continue
        file = f"{entry.name}.pym"
        try:
            script = load(folder / file, files=files)
        except DefinitionError as error:
            problems += [f"{file}:{problem}" for problem in error.problems]
            continue
        problems += [f"{file}:{problem}" for problem in external_problems(script.externals)]
        scripts[entry.name] = script
    problems += [] if problems else _draft_problems(definition, scripts)
    if problems:
        raise DefinitionError(folder, problems)
    return scripts


def _draft_problems(definition: SubagentDefinition, scripts: Mapping[str, Script]) -> list[str]:
    """Drafts for an argument that their tool does not have."""
    found = []
    for place, rule in enumerate(definition.drafts):
        inputs = [item.name for item in scripts[rule.tool].inputs] if rule.tool in scripts else [rule.argument]
        if rule.argument not in inputs:
            expected = ", ".join(f"`{name}`" for name in inputs)
            where = f"$.drafts[{place}].argument"
            found.append(f"{where}: `{rule.tool}` has no input `{rule.argument}`: expected one of {expected}")
    return found


class ScriptTools:
    """The scripts of one agent as its tools."""

    def __init__(
        self,
        definition: SubagentDefinition,
        scripts: Mapping[str, Script],
        *,
        node: CodeNode,
        agent_id: str,
        workspace: Workspace,
        spawner: Spawner,
        root: Path,
        pool: ScriptPool,
        base: bytes | None = None,
        code: CodeReader | None = None,
        stage: str = "",
        survey: Survey | None = None,
    ) -> None:
        """Without `survey`, every rule of the project's linter counts, also those that nobody keeps."""
        self._definition = definition
        self._entries = {entry.name: entry for entry in definition.tools}
        self._scripts = scripts
        self._node = node
        self._agent_id = agent_id
        self._workspace = workspace
        self._spawner = spawner
        self._root = root
        self._pool = pool
        self._code = code
        self._stage = stage
        self._survey = survey
        self._base = base
        """The target file as discovery saw it; by default as the workspace has it at the first call."""
        self.specs = tool_specs(definition, scripts)
        self._ended: dict[str, Completed] = {}
        self._offered = {spec.name: spec.parameters for spec in self.specs}

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """Run a tool. Raises `ToolError` for the model to read, with prints and outputs for the developer."""
        if name not in self._scripts:
            raise ToolNotFound(name, agent=self._definition.name, known=self._scripts)
        check_arguments(name, self._offered[name], args)
        script = self._scripts[name]
        host = Host(
            self._workspace,
            self._spawner,
            commands=self._definition.programs,
            root=self._root,
            node=self._node,
            code=self._code,
            script_files=script.files,
            ended=self._ended,
            survey=self._survey,
        )
        wanted = {spec.name for spec in script.externals}
        functions = {key: function for key, function in host.functions().items() if key in wanted}
        inputs = script.bind({**args, **await self._system_inputs(script)})
        limits = LIMITS[self._entries[name].limits]
        try:
            done = await self._pool.run(
                script.path.name,
                script.source,
                inputs=inputs,
                externals=functions,
                limits=limits,
                modules=script.modules,
            )
        except ToolError as error:
            error.outputs = tuple(host.outputs)
            raise
        return ToolOutput(done.value, done.prints, tuple(host.outputs))

    async def _system_inputs(self, script: Script) -> dict[str, Any]:
        wanted = {item.name for item in script.inputs}.intersection(SYSTEM_INPUTS)
        values: dict[str, Any] = {"target_file": self._node.file_path.as_posix(), "workspace_id": self._agent_id}
        values["run_stage"] = self._stage
        if wanted & {"node_text", "node_lines"}:
            values |= await self._node_now()
        return {name: values[name] for name in wanted}

    async def _node_now(self) -> dict[str, Any]:
        """The node's text and lines in the workspace's current file."""
        node = self._node
        owned = [[lines.first, lines.last] for lines in node.owned]
        try:
            data = await self._workspace.read(node.file_path.as_posix())
            self._base = data if self._base is None else self._base
            before, after = split_lines(self._base.decode()), split_lines(data.decode())
        except (OSError, WorkspaceError, UnicodeDecodeError):
            return {"node_text": node.text, "node_lines": owned}
        whole = follow([[node.lines.first, node.lines.last]], before, after)
        text = "".join(after[whole[0][0] - 1 : whole[-1][1]]) if whole else ""
        return {"node_text": text, "node_lines": follow(owned, before, after)}


def tool_specs(definition: SubagentDefinition, scripts: Mapping[str, Script]) -> tuple[ToolSpec, ...]:
    """The agent's tools as offered to a model."""
    return tuple(_spec(entry, scripts[entry.name]) for entry in definition.tools if entry.name in scripts)


def _spec(entry: ToolEntry, script: Script) -> ToolSpec:
    """The tool as offered to a model: without system inputs."""
    schema = script.parameters
    return ToolSpec(
        name=entry.name,
        description=entry.description or script.description,
        parameters={
            "type": "object",
            "properties": {name: part for name, part in schema["properties"].items() if name not in SYSTEM_INPUTS},
            "required": [name for name in schema["required"] if name not in SYSTEM_INPUTS],
        },
        effects=entry.effects,
    )
