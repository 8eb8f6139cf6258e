"""A connection to one MCP server: opened before a run, opened again when it was lost, ended with the run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult, Implementation

from remora._version import __version__
from remora.context.text import one_line
from remora.errors import ConfigError, RemoraError, ToolFailed, ToolLimitExceeded
from remora.mcp._http import http_streams
from remora.mcp._stdio import ServerLog, stdio_streams
from remora.mcp_servers import McpServer

MAX_TOOLS = 500
"""Most tools that are read of a server's list."""
MAX_PAGES = 50
MAX_RESTARTS = 3
"""How often a lost connection is opened again."""
CLOSE_S = 5.0
"""Seconds to disconnect in good order, and again after a cancellation."""
_ENVELOPE = 256 * 1024
"""Bytes of a message besides a result, such as a list of tools."""
_SHOWN_LINES = 10
_LOG = "stderr"

logging.getLogger("mcp").addHandler(logging.NullHandler())  # the SDK logs what a server wrote: not for a terminal


@dataclass(frozen=True)
class Launch:
    """A server with everything that starting it needs."""

    name: str
    server: McpServer
    argv: tuple[str, ...] = ()
    """The program and its arguments; empty for a URL."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The whole environment of the program."""
    cwd: Path = Path("/")
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True)
class OfferedTool:
    """A tool as the server lists it. Untrusted text."""

    name: str
    description: str
    parameters: Any


class McpConnection:
    """One server. Open it with `open` or `async with`."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.tools: dict[str, OfferedTool] = {}
        """The server's tools by name, as it listed them at the start."""
        self._log = ServerLog()
        self._client: Client | None = None
        self._holder: asyncio.Task[None] | None = None
        self._close = asyncio.Event()
        self._opening = asyncio.Lock()
        self._restarts = 0

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect and list the tools. Raises `ConfigError` with the end of the server's log."""
        try:
            async with asyncio.timeout(self.launch.server.start_s):
                client = await self._open()
                self.tools = await _list_tools(client)
        except TimeoutError:
            problem = f"it has not listed its tools within {self.launch.server.start_s:g} s"
        except Exception as error:  # noqa: BLE001 - whatever a foreign server makes the SDK raise
            problem = _reason(error)
        else:
            return
        await self.close()
        raise self._not_started(problem)

    async def close(self) -> None:
        """Disconnect and end the server's process."""
        holder, client = self._holder, self._client
        self._holder = self._client = None
        if holder is None:
            return
        self._close.set()
        if client is None:
            holder.cancel()  # it still waits for an answer
        _, pending = await asyncio.wait([holder], timeout=CLOSE_S)
        for task in pending:
            task.cancel()
        await asyncio.wait([holder], timeout=CLOSE_S)

    async def call(self, tool: str, args: Mapping[str, Any]) -> CallToolResult:
        """Call a tool once. Raises `ToolError`. A call is never repeated: it may have had an effect."""
        client = await self._connected(tool)
        limit_s = self.launch.server.call_s
        try:
            async with asyncio.timeout(limit_s):
                return await client.call_tool(tool, dict(args))
        except TimeoutError as error:
            raise ToolLimitExceeded(tool, limit=f"{limit_s:g} s; what it did until then is unknown") from error
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise await self._lost(tool) from error
            raise ToolFailed(f"MCP server `{self.launch.name}` refused `{tool}`: {_line(error.message)}") from error
        except Exception as error:
            raise ToolFailed(f"`{tool}` gave an invalid result: {_reason(error)}") from error

    async def _connected(self, tool: str) -> Client:
        """The open connection. Opens it again if it was lost."""
        async with self._opening:
            if self._client is not None and self._holder is not None and not self._holder.done():
                return self._client
            if self._restarts >= MAX_RESTARTS:
                raise self._failed(tool, f"its connection was lost {self._restarts + 1} times", "it was not called")
            self._restarts += 1
            await self.close()
            try:
                async with asyncio.timeout(self.launch.server.start_s):
                    return await self._open()
            except TimeoutError as error:
                await self.close()
                raise self._failed(tool, "it did not start again in time", "it was not called") from error
            except Exception as error:
                await self.close()
                raise self._failed(tool, f"it did not start again: {_reason(error)}", "it was not called") from error

    async def _open(self) -> Client:
        self._log, self._close = ServerLog(), asyncio.Event()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._holder = asyncio.create_task(self._hold(ready), name=f"mcp-{self.launch.name}")
        self._client = await ready
        return self._client

    async def _hold(self, ready: asyncio.Future[Client]) -> None:
        """Hold the connection open until `close`. The SDK demands that one task opens and closes it."""
        info = Implementation(name="remora", version=__version__)
        try:
            async with Client(self._streams(), client_info=info, cache=None) as client:
                if not ready.done():
                    ready.set_result(client)
                await self._close.wait()
        except Exception as error:  # noqa: BLE001 - the caller of `_open` gets it; later ones see a lost connection
            if not ready.done():
                ready.set_exception(error)
        finally:
            ready.cancel()

    def _streams(self) -> AbstractAsyncContextManager[Any]:
        launch, server = self.launch, self.launch.server
        size = server.max_bytes * 2 + _ENVELOPE
        if launch.argv:
            return stdio_streams(launch.argv, env=launch.env, cwd=launch.cwd, max_message=size, log=self._log)
        return http_streams(server.url, api_key=launch.api_key, timeout_s=server.call_s, max_message=size)

    async def _lost(self, tool: str) -> ToolFailed:
        """The error of a call whose connection was lost. Ends the server, so that its log is complete."""
        log = self._log
        await self.close()
        return self._failed(tool, log.problem or "the connection was lost", "whether it had an effect is unknown", log)

    def _failed(self, tool: str, problem: str, effect: str, log: ServerLog | None = None) -> ToolFailed:
        error = ToolFailed(f"`{tool}` of MCP server `{self.launch.name}` failed: {problem}; {effect}")
        tail = (log or self._log).tail
        error.outputs = ((_LOG, tail),) if tail else ()
        return error

    def _not_started(self, problem: str) -> RemoraError:
        launch = self.launch
        what = " ".join(launch.argv) or launch.server.url
        lines = self._log.tail.decode(errors="replace").splitlines()[-_SHOWN_LINES:]
        said = "".join(f"\n  {one_line(line, 300)}" for line in lines if line.strip())
        said = f"\nIt wrote to its standard error:{said}" if said else ""
        return ConfigError(
            f"MCP server `{launch.name}` (`{one_line(what, 300)}`) cannot be used: {problem}{said}",
            hint="Run the command by hand, and check that it waits for input" if launch.argv else "Check the address",
        )


async def _list_tools(client: Client) -> dict[str, OfferedTool]:
    found: dict[str, OfferedTool] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            found.setdefault(tool.name, OfferedTool(tool.name, tool.description or "", tool.input_schema))
        cursor = page.next_cursor
        if cursor is None or len(found) > MAX_TOOLS:
            break
    if len(found) > MAX_TOOLS:
        raise ConfigError(f"it lists more than {MAX_TOOLS} tools")
    return found


def _reason(error: BaseException) -> str:
    """One line that says what went wrong. Of a group of errors, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return "there is no such program"
    if isinstance(error, MCPError):
        closed = error.code == CONNECTION_CLOSED
        return "it ended before it answered" if closed else f"it answered: {_line(error.message)}"
    return _line(error.strerror or str(error)) if isinstance(error, OSError) else _line(str(error) or repr(error))


def _line(text: str) -> str:
    return one_line(text, 300)
