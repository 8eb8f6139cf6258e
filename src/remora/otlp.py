"""Sends spans to an OpenTelemetry endpoint that the user names, as OTLP/HTTP in protobuf or in JSON."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import orjson

from remora.errors import ConfigError, ExportRefused
from remora.otlp_protobuf import encode, rejected

PATH = "/v1/traces"
TIMEOUT_S = 30.0
MAX_REPLY = 1024 * 1024
MAX_WORDS = 2000
"""Characters of an endpoint's own words in an error."""
_HEADER = re.compile(r"[!#-'*+.^-z|~-]+:[\t -~]*", re.IGNORECASE)
"""The name and value of a header that can be sent."""
Encoding = Literal["protobuf", "json"]
JSON, PROTOBUF = "application/json", "application/x-protobuf"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: spans go to the named endpoint or nowhere."""

    def redirect_request(self, *_args: Any) -> None:
        return None


def send_spans(
    endpoint: str,
    request: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    *,
    encoding: Encoding = "protobuf",
) -> str:
    """Send one export request and return the URL that took it. Raises `ConfigError` or `ExportRefused`.

    By the specification every endpoint reads protobuf; some do not read JSON.
    """
    url = traces_url(endpoint)
    if wrong := [name for name, value in (headers or {}).items() if not _HEADER.fullmatch(f"{name}:{value}")]:
        raise ConfigError(f"Header {wrong[0]!r:.80} cannot be sent: expected a name and one line of ASCII")
    message = urllib.request.Request(  # noqa: S310 - `traces_url` allows only http and https
        url,
        data=encode(request) if encoding == "protobuf" else orjson.dumps(request),
        headers={
            **(headers or {}),
            "Content-Type": PROTOBUF if encoding == "protobuf" else JSON,
            "User-Agent": "remora",
        },
        method="POST",
    )
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
    try:
        with opener.open(message, timeout=TIMEOUT_S) as reply:
            kind, data = reply.headers.get_content_type(), reply.read(MAX_REPLY)
    except urllib.error.HTTPError as error:
        raise ExportRefused(f"`{url}` answered {error.code} {error.reason}: {_words(error)}".rstrip(": ")) from error
    except (OSError, HTTPException, UnicodeError) as error:
        why = getattr(error, "reason", None) or error
        hint = "Is a collector listening there? OTLP/HTTP usually has port 4318"
        raise ExportRefused(f"`{url}` cannot be reached: {why}", hint=hint) from error
    _check_reply(url, kind, data)
    return url


def traces_url(endpoint: str) -> str:
    """The URL for spans: `endpoint` itself if it has a path, else with `/v1/traces`. Raises `ConfigError`."""
    try:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or not endpoint.isascii():
        raise ConfigError(f"`{endpoint}` is not an endpoint: expected a URL such as `http://localhost:4318`")
    return urlunsplit(parts._replace(path=PATH if parts.path in ("", "/") else parts.path, fragment=""))


def _words(error: urllib.error.HTTPError) -> str:
    """What the endpoint says about an error, as far as it can be read."""
    try:
        return error.read(MAX_WORDS).decode(errors="replace")
    except (OSError, HTTPException):
        return ""


def _check_reply(url: str, kind: str, data: bytes) -> None:
    """Raises `ExportRefused` if the endpoint took only a part of the spans."""
    try:
        count, why = rejected(data) if kind == PROTOBUF else _rejected_json(data)
    except ValueError:
        return  # some endpoints answer in other formats; the status says that they took it
    if count:
        raise ExportRefused(f"`{url}` refused {count} spans: {why[:MAX_WORDS] or 'no reason given'}")


def _rejected_json(data: bytes) -> tuple[int, str]:
    found = orjson.loads(data) if data else {}
    partial = found.get("partialSuccess") if isinstance(found, dict) else None
    if not isinstance(partial, dict):
        return 0, ""
    count = partial.get("rejectedSpans")
    return int(count) if isinstance(count, int | str) else 0, str(partial.get("errorMessage", ""))
