"""Tools of a trusted agent that are Python functions, combined with its other tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.context.contracts import ToolSpec
from remora.errors import DefinitionError
from remora.ports import ToolOutput, Tools
from remora.snapshot import Snapshot
from remora.subagent import SubagentDefinition
from remora.tools import FunctionTool


def load_functions(files: Snapshot, definition: SubagentDefinition) -> dict[str, FunctionTool]:
    """Load the functions that a definition names. They run in this process without limits: the agent must be trusted.

    The code comes from `files`, whose digest the user trusted. Nothing is read from disk.
    """
    return {tool.name: _load_function(files, tool.python) for tool in definition.tools if tool.python}


class MixedTools:
    """The scripts, functions and MCP tools of one agent as one set of tools, in the order of its definition."""

    def __init__(
        self,
        definition: SubagentDefinition,
        scripts: Tools,
        functions: Mapping[str, FunctionTool],
        servers: Tools | None = None,
    ) -> None:
        self._scripts = scripts
        self._functions = functions
        self._servers = servers
        self._of_servers = {spec.name: spec for spec in servers.specs} if servers else {}
        specs = {spec.name: spec for spec in scripts.specs} | self._of_servers
        for entry in definition.tools:
            if entry.name in functions:
                specs[entry.name] = _spec(entry.description, entry.effects, functions[entry.name])
        self.specs: tuple[ToolSpec, ...] = tuple(specs[entry.name] for entry in definition.tools)

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """Run a tool. Raises `ToolError`; its message goes to the model."""
        if name in self._functions:
            return ToolOutput(await self._functions[name](**args))
        if self._servers is not None and name in self._of_servers:
            return await self._servers.call(name, args)
        return await self._scripts.call(name, args)


def _spec(description: str, effects: Any, function: FunctionTool) -> ToolSpec:
    override = {"description": description} if description else {}
    return function.spec.model_copy(update={"effects": effects, **override})


def _load_function(files: Snapshot, reference: str) -> FunctionTool:
    file, _, name = reference.partition(":")
    path = files.folder / file
    if file not in files.files:
        raise DefinitionError(files.folder / "subagent.yaml", [f"`{file}` is not a Python file in the agent's folder"])
    try:
        function = getattr(files.module(file), name)
    except Exception as error:
        raise DefinitionError(path, [f"`{name}` cannot be loaded: {type(error).__name__}: {error}"]) from error
    if not isinstance(function, FunctionTool):
        raise DefinitionError(path, [f"`{name}` is not a tool: put `@remora.tool` above it"])
    return function
