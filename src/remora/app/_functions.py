"""Tools that are Python functions of a trusted agent, beside its scripts."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.context.contracts import ToolSpec
from remora.errors import DefinitionError
from remora.ports import ToolOutput, Tools
from remora.subagent import SubagentDefinition
from remora.tools import FunctionTool


def load_functions(folder: Path, definition: SubagentDefinition) -> dict[str, FunctionTool]:
    """The functions that a definition names. They run in this process, unbounded: only for what the user trusts."""
    return {tool.name: _function(folder, tool.python) for tool in definition.tools if tool.python}


class MixedTools:
    """Scripts and functions of one agent, in the order of its definition."""

    def __init__(self, definition: SubagentDefinition, scripts: Tools, functions: Mapping[str, FunctionTool]) -> None:
        self._scripts = scripts
        self._functions = functions
        specs = {spec.name: spec for spec in scripts.specs}
        for entry in definition.tools:
            if entry.name in functions:
                specs[entry.name] = _spec(entry.description, entry.effects, functions[entry.name])
        self.specs: tuple[ToolSpec, ...] = tuple(specs[entry.name] for entry in definition.tools)

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """Run a tool. Raises `ToolError`, which the model will read."""
        if name in self._functions:
            return ToolOutput(await self._functions[name](**args))
        return await self._scripts.call(name, args)


def _spec(description: str, effects: Any, function: FunctionTool) -> ToolSpec:
    described = {"description": description} if description else {}
    return function.spec.model_copy(update={"effects": effects, **described})


def _function(folder: Path, place: str) -> FunctionTool:
    file, _, name = place.partition(":")
    path = folder / file
    spec = importlib.util.spec_from_file_location(f"remora_agent_{folder.name}_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise DefinitionError(folder / "subagent.yaml", [f"`{file}` is not a Python file in the agent's folder"])
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        found = getattr(module, name)
    except Exception as error:
        raise DefinitionError(path, [f"`{name}` cannot be loaded: {type(error).__name__}: {error}"]) from error
    if not isinstance(found, FunctionTool):
        raise DefinitionError(path, [f"`{name}` is not a tool: put `@remora.tool` above it"])
    return found
