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
from remora.ports import ToolOutput
from remora.subagent import ToolEntry

_NAMED = 30
"""Most tools that an error lists."""


class McpTools:
    """Only the tools that the definition lists: a server cannot add one."""

    def __init__(self, entries: Sequence[ToolEntry], connections: Mapping[str, McpConnection]) -> None:
        """`connections` holds the open servers by name. Raises `ConfigError` for a tool that cannot be offered."""
        self._entries = {entry.name: entry for entry in entries}
        self._connections = connections
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
        return read_result(name, await server.call(entry.mcp_tool, args), server.launch.server.max_bytes)


def _spec(entry: ToolEntry, server: McpConnection) -> ToolSpec:
    offered = _find(entry.mcp_tool, server)
    try:
        parameters = clean_parameters(offered.parameters)
    except SchemaRefused as error:
        raise ConfigError(
            f"Tool `{offered.name}` of MCP server `{server.launch.name}` cannot be offered: {error}",
            hint=f"Remove `{entry.name}` from the agent's tools",
        ) from error
    return ToolSpec(
        name=entry.name,
        description=entry.description or clean_description(offered.description),
        parameters=parameters,
        effects=entry.effects,
    )


def _find(name: str, server: McpConnection) -> OfferedTool:
    if name in server.tools:
        return server.tools[name]
    known = sorted(server.tools)
    names = ", ".join(f"`{one_line(each, 80)}`" for each in known[:_NAMED]) or "none"
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    raise ConfigError(f"MCP server `{server.launch.name}` has no tool `{name}`: expected one of {names}{more}")
