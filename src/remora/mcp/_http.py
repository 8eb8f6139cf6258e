"""A server at a URL, over streamable HTTP: only to its own origin, with bounded replies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client


class ReplyRefused(httpx2.StreamError):
    """A reply is too large or compressed."""


@asynccontextmanager
async def http_streams(url: str, *, api_key: str, timeout_s: float, max_message: int) -> AsyncIterator[Any]:
    """Connect to a server. The key goes to no other origin: the SDK follows no redirect to another."""
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})

    async def check(response: httpx2.Response) -> None:
        _check_reply(response, max_message)

    async with (
        httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(timeout_s),
            trust_env=False,
            event_hooks={"response": [check]},
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=max_message) as streams,
    ):
        yield streams


def _check_reply(response: httpx2.Response, max_message: int) -> None:
    """Refuse a compressed reply, and limit the length of one that is read as a whole."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ReplyRefused("the reply is compressed, although `identity` was requested")
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _Bounded(response.stream, max_message)


class _Bounded(httpx2.AsyncByteStream):
    """A stream that raises once it is too long."""

    def __init__(self, inner: Any, limit: int) -> None:
        self._inner = inner
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > self._limit:
                raise ReplyRefused(f"the reply has more than {self._limit:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
