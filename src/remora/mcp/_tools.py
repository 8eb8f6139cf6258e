"""The tools of one agent that are an MCP server's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remora.context.contracts import ToolSpec
from remora.context.schema import problems
from remora.context.text import one_line
from remora.errors import ConfigError, ToolArgumentsInvalid, ToolNotFound
from remora.mcp._connection import McpConnection, OfferedTool
from remora.mcp._content import read_result
from remora.mcp._schema import SchemaRefused, clean_description, clean_parameters
from remora.mcp_servers import PROJECT
from remora.ports import ToolOutput
from remora.subagent import ToolEntry

_NAMED = 30
"""Most tools that an error lists."""


class McpTools:
    """Only the tools that the definition lists: a server cannot add one."""

    def __init__(
        self, entries: Sequence[ToolEntry], connections: Mapping[str, McpConnection], project: str = ""
    ) -> None:
        """`connections` holds the open servers by name. Raises `ConfigError` for a tool that cannot be offered."""
        self._entries = {entry.name: entry for entry in entries}
        self._connections = connections
        self._fixed = {entry.name: _in_project(entry.fixed, project) for entry in entries}
        self.specs: tuple[ToolSpec, ...] = tuple(_spec(entry, connections[entry.mcp_server]) for entry in entries)
        self._parameters = {spec.name: spec.parameters for spec in self.specs}

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """Call a tool. Raises `ToolError` for the model to read."""
        if name not in self._entries:
            raise ToolNotFound(name, known=self._entries)
        if found := problems(self._parameters[name], args):
            raise ToolArgumentsInvalid(name, found)
        entry = self._entries[name]
        server = self._connections[entry.mcp_server]
        result = await server.call(entry.mcp_tool, {**args, **self._fixed[name]})
        return read_result(name, result, server.launch.server.max_bytes)


def offer_all(server: McpConnection) -> dict[str, ToolSpec | str]:
    """All tools of a server as a model would see them; for one that cannot be offered, the reason."""
    found: dict[str, ToolSpec | str] = {}
    for name, offered in server.tools.items():
        try:
            found[name] = _offer(offered)
        except SchemaRefused as error:
            found[name] = str(error)
    return found


def _offer(offered: OfferedTool) -> ToolSpec:
    return ToolSpec(
        name=one_line(offered.name, 128),
        description=clean_description(offered.description),
        parameters=clean_parameters(offered.parameters),
    )


def _spec(entry: ToolEntry, server: McpConnection) -> ToolSpec:
    offered = _find(entry.mcp_tool, server)
    try:
        spec = _offer(offered)
    except SchemaRefused as error:
        raise ConfigError(
            f"Tool `{offered.name}` of MCP server `{server.launch.name}` cannot be offered: {error}",
            hint=f"Remove `{entry.name}` from the agent's tools",
        ) from error
    properties = spec.parameters["properties"]
    if unknown := [name for name in entry.fixed if name not in properties]:
        known = ", ".join(f"`{name}`" for name in properties) or "none"
        raise ConfigError(f"Tool `{entry.name}` has no argument `{unknown[0]}` to fix: expected one of {known}")
    parameters = {
        "type": "object",
        "properties": {name: part for name, part in properties.items() if name not in entry.fixed},
        "required": [name for name in spec.parameters["required"] if name not in entry.fixed],
    }
    own = {"description": entry.description} if entry.description else {}
    return spec.model_copy(update={"name": entry.name, "effects": entry.effects, "parameters": parameters, **own})


def _in_project(value: Any, project: str) -> Any:
    """`value` with the project's folder for every `{project}` in its texts."""
    if isinstance(value, str):
        return value.replace(PROJECT, project)
    if isinstance(value, Mapping):
        return {key: _in_project(item, project) for key, item in value.items()}
    return [_in_project(item, project) for item in value] if isinstance(value, list) else value


def _find(name: str, server: McpConnection) -> OfferedTool:
    if name in server.tools:
        return server.tools[name]
    known = sorted(server.tools)
    names = ", ".join(f"`{one_line(each, 80)}`" for each in known[:_NAMED]) or "none"
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    raise ConfigError(f"MCP server `{server.launch.name}` has no tool `{name}`: expected one of {names}{more}")
