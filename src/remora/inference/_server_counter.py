"""Counts tokens by asking the server."""

from __future__ import annotations

import hashlib
import socket
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Timer
from urllib.parse import SplitResult, urlsplit

import orjson

from remora.errors import ConfigError, CountingFailed

MAX_REPLY = 256 * 1024 * 1024
MAX_CACHED = 16_384


class ServerCounter:
    """Counts with a server's `/tokenize` (llama.cpp; vLLM if its `model` is given), exactly as the server would.

    Each text is sent once. Each request has a deadline; no proxy is used and no redirect is followed. Raises
    `CountingFailed` if there is no answer: an uncounted prompt is never assumed to be within its limit.
    """

    exact = True
    digest = ""

    def __init__(self, url: str, *, deadline_s: float = 5.0, api_key: str = "", model: str = "") -> None:
        self._url = _parse_url(url)
        self._model = model
        self._deadline_s = deadline_s
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._counts: dict[bytes, int] = {}
        self.name = f"server:{self._url.netloc.rpartition('@')[2]}"

    def count(self, text: str) -> int:
        """Tokens of `text`. Asks the server unless the count is cached."""
        data = text.encode(errors="replace")
        key = hashlib.sha256(data).digest()
        if key not in self._counts:
            if len(self._counts) >= MAX_CACHED:
                self._counts.clear()
            self._counts[key] = self._ask(data)
        return self._counts[key]

    def _ask(self, text: bytes) -> int:
        content = text.decode()
        vllm = {"model": self._model, "prompt": content, "add_special_tokens": False}
        body = orjson.dumps(vllm if self._model else {"content": content})
        try:
            status, reply = self._post(body)
        except (OSError, HTTPException) as error:
            raise self._failed(f"{type(error).__name__}: {error}") from error
        if status != 200:
            raise self._failed(f"HTTP status {status}")
        return self._tokens_in(reply)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        connect = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = connect(self._url.hostname or "", self._url.port, timeout=self._deadline_s)
        try:
            connection.connect()
            # A socket's own timeout restarts with every byte. This one does not.
            watch = Timer(self._deadline_s, _shut_down, [connection.sock])
            watch.daemon = True
            watch.start()
            try:
                connection.request("POST", f"{self._url.path.rstrip('/')}/tokenize", body, self._headers)
                response = connection.getresponse()
                return response.status, response.read(MAX_REPLY)
            finally:
                watch.cancel()
        finally:
            connection.close()

    def _tokens_in(self, reply: bytes) -> int:
        try:
            tokens = orjson.loads(reply)["tokens"]
        except (orjson.JSONDecodeError, KeyError, TypeError, IndexError) as error:
            raise self._failed('the answer is not {"tokens": […]}') from error
        if not isinstance(tokens, list):
            raise self._failed('the answer is not {"tokens": […]}')
        return len(tokens)

    def _failed(self, reason: str) -> CountingFailed:
        return CountingFailed(
            f"`{self.name}` did not count tokens: {reason}",
            hint="Is it a llama.cpp or vLLM server, and running? A tokenizer file or the estimate count without one",
        )


def _parse_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        ok = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        ok = False
    if not ok:
        raise ConfigError(f"`{url}` is not the address of a server: expected one such as `http://127.0.0.1:8080`")
    return parts


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
