"""`Guard`: no request reaches a page without the right host, a harmless method and the token.

1. The `Host` header must name this server on loopback: a foreign name that resolves to it (DNS rebinding) gets 421.
2. Only GET and HEAD exist: everything else gets 405.
3. The token of the first URL, or the cookie that it becomes: everything else gets 403.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types remora"
)
"""No inline script or style, nothing from another origin, no frame."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
METHODS = ("GET", "HEAD")
NAMES = ("127.0.0.1", "localhost", "[::1]")
"""The names under which this server may be asked."""


class Guard:
    """Lets only the owner's own browser through to `app`. `port` is the one that the server listens on."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset(f"{name}:{port}" for name in NAMES) | (frozenset(NAMES) if port == 80 else frozenset())
        self._cookie = f"remora-view-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self._refuse(scope)
        await (answer or self._app)(scope, receive, send_safe)

    def _refuse(self, scope: Scope) -> Response | None:
        """The answer to a request that may not pass; None for one that may."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [headers.get("host", "")] or headers["host"].lower() not in self._hosts:
            return _plain("This page is only served to `127.0.0.1` and `localhost`.", 421)
        if scope["method"] not in METHODS:
            return _plain("This page only reads: expected GET or HEAD.", 405, {"Allow": "GET, HEAD"})
        given = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        if "token" in given and self._is_token(given["token"]):
            return self._welcome(scope, given)
        if self._is_token(self._cookie_of(headers)):
            return None
        return _plain("The token is missing or wrong: open the address that `remora view` printed.", 403)

    def _welcome(self, scope: Scope, given: dict[str, str]) -> Response:
        """Turn the token of the URL into a cookie, and leave it out of the address."""
        rest = urlencode({name: value for name, value in given.items() if name != "token"})
        path = "/" + scope["path"].lstrip("/\\")  # never `//host`, which would lead elsewhere
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
        return answer

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self._token.encode())

    def _cookie_of(self, headers: Headers) -> str:
        found: SimpleCookie = SimpleCookie()
        try:
            found.load(headers.get("cookie", ""))
        except CookieError:
            return ""
        return found[self._cookie].value if self._cookie in found else ""


def _plain(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=status, headers=headers)
