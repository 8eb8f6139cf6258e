"""Opens the MCP servers of a run's agents, for as long as the run lasts."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from remora.app._project import Project
from remora.app._settings import USER_CONFIG_FILE, user_config_dir
from remora.context.contracts import ToolSpec
from remora.errors import ConfigError
from remora.mcp_servers import PROJECT, McpServer, McpServerConfig
from remora.snapshot import Snapshot
from remora.subagent import SubagentDefinition
from remora.validation import validate

if TYPE_CHECKING:
    from remora.mcp import Launch, McpConnection, McpTools
    from remora.scripts import Agent

_INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""Variables that every server's program gets. None of them holds a key."""


@asynccontextmanager
async def open_mcp(project: Project, agents: Mapping[str, Agent]) -> AsyncIterator[dict[str, McpTools]]:
    """Connect to the servers that the agents use. Gives the tools by agent.

    Raises `ConfigError` for a server that is unknown or does not start, and for a tool that it lacks. The caller has
    checked that the agents are trusted.
    """
    users = {name: agent for name, agent in agents.items() if any(tool.mcp for tool in agent.definition.tools)}
    if not users:
        yield {}
        return
    from remora.mcp import McpTools, check_installed

    check_installed()
    async with AsyncExitStack() as stack:
        opened: dict[str, McpTools] = {}
        for name, agent in users.items():
            entries = [tool for tool in agent.definition.tools if tool.mcp]
            opened[name] = McpTools(entries, await _connect(project, agent, stack), str(project.root))
        yield opened


async def list_mcp_tools(project: Project, words: Sequence[str]) -> dict[str, ToolSpec | str]:
    """The tools of a server by name, as a model would see them; for one that cannot be offered, the reason.

    `words` is the name of a server in the user's settings, a URL, or a command. Raises `ConfigError`.
    """
    from remora.mcp import McpConnection, check_installed, offer_all

    check_installed()
    name, server = _named_server(project, words)
    with tempfile.TemporaryDirectory(prefix="remora-mcp-") as folder:
        async with McpConnection(launch(project, name, server, Path(folder))) as connection:
            return offer_all(connection)


def _named_server(project: Project, words: Sequence[str]) -> tuple[str, McpServer]:
    first = words[0]
    if len(words) == 1 and first in project.config.mcp:
        return first, project.config.mcp[first]
    given = {"url": first} if len(words) == 1 and "://" in first else {"command": tuple(words)}
    return "server", validate(McpServerConfig, given, "arguments")


def mcp_names(agents: Iterable[Agent]) -> tuple[str, ...]:
    """The servers that the agents use, by name."""
    return tuple(sorted({tool.mcp_server for agent in agents for tool in agent.definition.tools if tool.mcp}))


async def _connect(project: Project, agent: Agent, stack: AsyncExitStack) -> dict[str, McpConnection]:
    """Start all servers of an agent at once."""
    from remora.mcp import McpConnection

    names = dict.fromkeys(tool.mcp_server for tool in agent.definition.tools if tool.mcp)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="remora-mcp-")))
    servers = {name: _server(project, agent.definition, name) for name in names}
    connections = {
        name: McpConnection(launch(project, name, server, _start_folder(folder, name, server, agent.files)))
        for name, server in servers.items()
    }
    for connection in connections.values():
        stack.push_async_callback(connection.close)
    started = await asyncio.gather(*(each.open() for each in connections.values()), return_exceptions=True)
    for problem in started:
        if isinstance(problem, BaseException):
            raise problem
    return connections


def _server(project: Project, definition: SubagentDefinition, name: str) -> McpServer:
    """The server of that name: of the user's settings, else of the agent's definition."""
    found = project.config.mcp.get(name) or definition.mcp.get(name)
    if found is not None:
        return found
    known = ", ".join(f"`{each}`" for each in sorted({*project.config.mcp, *definition.mcp})) or "none"
    raise ConfigError(
        f"Agent `{definition.name}` uses the MCP server `{name}`, which is not defined: expected one of {known}",
        hint=f"Add it under `mcp` to {user_config_dir(os.environ) / USER_CONFIG_FILE}",
    )


def launch(project: Project, name: str, server: McpServer, folder: Path) -> Launch:
    """Everything that starting a server needs. Raises `ConfigError` for a missing variable."""
    from remora.mcp import Launch

    own = server if isinstance(server, McpServerConfig) else None
    variables = {each: _variable(each, f"mcp.{name}.env") for each in (own.env if own else ())}
    inherited = {each: os.environ[each] for each in _INHERITED if each in os.environ}
    key = _variable(own.api_key_env, f"mcp.{name}.api_key_env") if own and own.api_key_env else ""
    return Launch(
        name=name,
        server=server,
        argv=tuple(part.replace(PROJECT, str(project.root)) for part in server.command),
        env=inherited | variables,
        cwd=folder,
        api_key=key,
    )


def _variable(name: str, setting: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"`{setting}` names `{name}`, which is not set", hint=f"Set it: `export {name}=…`")
    return value


def _start_folder(folder: Path, name: str, server: McpServer, files: Snapshot) -> Path:
    """A new folder to start a server in. Never the project: Python would import the project's modules.

    A server of the agent's definition gets a copy of the agent's files, exactly those that the user trusted.
    """
    place = folder / name
    place.mkdir()
    if not isinstance(server, McpServerConfig):
        for path, data in files.files.items():
            file = place / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    return place
