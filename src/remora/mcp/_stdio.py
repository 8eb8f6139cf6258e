"""A server as a child process that speaks MCP on its standard streams, with bounded messages and a bounded log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

GRACE_S = 0.5
"""Seconds to exit after its input is closed, and again after SIGTERM. Ctrl-C leaves 1.5 s for everything."""
MAX_LOG = 8 * 1024
"""Bytes of the end of its standard error that are kept."""
_CHUNK = 64 * 1024


class ServerLog:
    """The end of what a server wrote to its standard error, and why its connection was lost."""

    def __init__(self) -> None:
        self._tail = b""
        self.problem = ""

    def add(self, data: bytes) -> None:
        """Add output. Only the end is kept."""
        self._tail = (self._tail + data)[-MAX_LOG:]

    @property
    def tail(self) -> bytes:
        """The end of the output."""
        return self._tail


@asynccontextmanager
async def stdio_streams(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, max_message: int, log: ServerLog
) -> AsyncIterator[tuple[Any, Any]]:
    """Run a server and connect to it. Raises `OSError` if it cannot be started. On exit, nothing of it is left.

    The SDK's own transport holds a message of any length in memory and writes the server's errors to a file.
    """
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=dict(env), cwd=cwd, start_new_session=True, limit=max_message
    )
    try:
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group, from_server, to_server:
            group.start_soon(_read_messages, process, to_session, max_message, log)
            group.start_soon(_write_messages, process, from_session, to_session)
            group.start_soon(_read_log, process, log)
            yield from_server, to_server
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process, log)


async def _read_messages(process: Process, to_session: Any, max_message: int, log: ServerLog) -> None:
    output = _pipe(process.stdout)
    async with to_session:
        while True:
            try:
                line = await output.readline()
            except ValueError:  # longer than the reader's limit
                log.problem = f"it sent a message of more than {max_message:,} bytes"
                return
            if not line:
                return
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await to_session.send(_parse(line))


def _parse(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:  # the session ignores a line that is no message
        return error


async def _write_messages(process: Process, from_session: Any, to_session: Any) -> None:
    entry = _pipe(process.stdin)
    try:
        async with from_session:
            async for message in from_session:
                entry.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await entry.drain()
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await to_session.aclose()  # so that no request waits for a server that reads no more


async def _read_log(process: Process, log: ServerLog) -> None:
    errors = _pipe(process.stderr)
    while data := await errors.read(_CHUNK):
        log.add(data)


async def _stop(process: Process, log: ServerLog) -> None:
    """Close its input, then end it and all processes of its group."""
    _pipe(process.stdin).close()
    try:
        if not await _has_exited(process):
            _signal_group(process, signal.SIGTERM)
            await _has_exited(process)
    finally:
        _signal_group(process, signal.SIGKILL)  # also what it started itself
    await _has_exited(process)
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(GRACE_S):
            log.add(await _pipe(process.stderr).read(_CHUNK))
    process._transport.close()  # type: ignore[attr-defined] # else it warns when collected after the loop has ended


async def _has_exited(process: Process) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await process.wait()
    return process.returncode is not None


def _signal_group(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _pipe(stream: Any) -> Any:
    assert stream is not None  # noqa: S101 - all three are pipes
    return stream
