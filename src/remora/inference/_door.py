"""HTTP transport to a model server: only to its own address, with bounded replies.

The `openai` client uses it. In any case, no redirect is followed, no proxy or netrc is used, nothing of the environment
is sent, and neither a reply nor its headers can fill the memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

MAX_BYTES = 8 * 1024 * 1024
"""Bytes of one reply, including headers and stream framing."""
_SENT = {"host", "accept", "content-type", "content-length", "user-agent", "connection"}
"""Request headers that are kept, besides our own."""


class TooMuch(httpx2.TransportError):
    """The reply is larger than `MAX_BYTES`."""


class Door(httpx2.AsyncBaseTransport):
    """Sends requests to one origin, with one key."""

    def __init__(self, url: str, api_key: str, *, max_bytes: int = MAX_BYTES) -> None:
        self._origin = _origin(httpx2.URL(url))
        self._api_key = api_key
        self._max_bytes = max_bytes
        # Loading certificates takes a while, and a plain connection needs none.
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False, verify=url.startswith("https"))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to our server. Raises `UnsupportedProtocol` for any other origin."""
        if _origin(request.url) != self._origin:
            raise httpx2.UnsupportedProtocol(f"Requests may only go to {self._origin}, not to {request.url.host}")
        kept = [(name, value) for name, value in request.headers.raw if name.decode().lower() in _SENT]
        kept.append((b"Accept-Encoding", b"identity"))
        if self._api_key:
            kept.append((b"Authorization", f"Bearer {self._api_key}".encode()))
        request.headers = httpx2.Headers(kept)
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("The reply is compressed, although `identity` was requested")
        response.stream = _Bounded(response.stream, self._max_bytes)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A stream that raises once it is too long."""

    def __init__(self, inner: Any, left: int) -> None:
        self._inner = inner
        self._left = left

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._left -= len(part)
            if self._left < 0:
                raise TooMuch("The reply is too large")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def http_client(url: str, api_key: str, timeout_s: float) -> httpx2.AsyncClient:
    """An HTTP client that uses this transport."""
    return httpx2.AsyncClient(
        transport=Door(url, api_key),
        timeout=httpx2.Timeout(timeout_s),
        follow_redirects=False,
        trust_env=False,
    )


def _origin(url: httpx2.URL) -> str:
    port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
    return f"{url.scheme}://{url.host}:{port}"
