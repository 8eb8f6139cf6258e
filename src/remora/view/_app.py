"""The routes. Every one is a GET that changes nothing; `Guard` checks every request first."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from remora.app import Project
from remora.errors import ConfigError, RemoraError, TraceNotFound
from remora.view._guard import Guard
from remora.view._live import IsOver, follow, last_id, stream, versions
from remora.view._pages import Pages

ASSETS = {"view.css": "text/css", "view.js": "text/javascript", "icon.svg": "image/svg+xml"}
_ID = re.compile(r"[0-9A-Za-z_.-]{1,128}")

Page = Callable[[Request], str]


def make_app(project: Project, *, token: str, port: int, is_over: IsOver = lambda: False) -> ASGIApp:
    """The whole application for one project. Live pages end once `is_over` says so."""
    pages = Pages(project)
    routes = [
        Route("/", _page(pages, lambda request: pages.runs(request.query_params, rows_only=_is_part(request)))),
        Route("/live", _live_list(pages, is_over)),
        Route("/search", _page(pages, lambda request: pages.search(_text(request, "q")))),
        Route("/compare", _page(pages, lambda request: pages.compare(_text(request, "a"), _text(request, "b")))),
        Route("/changes", _page(pages, lambda request: pages.changes(_text(request, "id")))),
        Route("/report", _page(pages, lambda request: pages.report(_text(request, "id")))),
        Route("/a/{id}", _page(pages, lambda request: pages.agent(_id(request), _number(request, "turn")))),
        Route("/a/{id}/turn", _page(pages, lambda request: pages.turn(_id(request), _number(request, "turn")))),
        Route("/a/{id}/turns", _page(pages, lambda request: pages.turns(_id(request), _number(request, "page") or 0))),
        Route("/a/{id}/timeline", _page(pages, lambda request: pages.time_line(_id(request)))),
        Route("/a/{id}/live", _live_agent(pages, is_over)),
        Route("/a/{id}/output", _page(pages, lambda request: _output(pages, request))),
        Route("/a/{id}/seen", _page(pages, lambda request: _seen(pages, request))),
        Route("/a/{id}/explain", _page(pages, lambda request: _explain(pages, request))),
        Route("/a/{id}/search", _page(pages, lambda request: pages.search_agent(_id(request), _text(request, "q")))),
        Route("/a/{id}/files", _page(pages, lambda request: pages.files(_id(request), _number(request, "turn")))),
        Route("/a/{id}/ladder", _page(pages, lambda request: pages.ladder(_id(request)))),
        Route("/static/{name}", _asset),
    ]
    return Guard(Starlette(routes=routes), token=token, port=port)


def _page(pages: Pages, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """A route that renders a page in a thread. Errors become a page that says what happened."""

    async def answer(request: Request) -> Response:
        try:
            return HTMLResponse(await run_in_threadpool(page, request))
        except RemoraError as error:
            status = 404 if isinstance(error, TraceNotFound) else 400 if isinstance(error, ConfigError) else 422
            return HTMLResponse(pages.error(error), status_code=status)

    return answer


def _live_list(pages: Pages, is_over: IsOver) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        query = dict(request.query_params)
        known = request.headers.get("last-event-id", query.pop("version", ""))
        return stream(versions(lambda: run_in_threadpool(pages.version, query), known, is_over))

    return answer


def _live_agent(pages: Pages, is_over: IsOver) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            outline = await run_in_threadpool(pages.viewing.open, _id(request))
        except RemoraError as error:
            return PlainTextResponse(error.message, status_code=404)
        return stream(follow(pages.viewing, outline, max(last_id(request, -1), -1), is_over))

    return answer


def _output(pages: Pages, request: Request) -> str:
    seq, part, at = (_number(request, name) or 0 for name in ("seq", "part", "at"))
    return pages.output(_id(request), seq, part, at, _text(request, "q"))


def _seen(pages: Pages, request: Request) -> str:
    return pages.seen(_id(request), _number(request, "seq") or 0, _text(request, "line"))


def _explain(pages: Pages, request: Request) -> str:
    before = _number(request, "before") or 0
    return pages.explain(_id(request), _text(request, "key"), before, _text(request, "item"))


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return PlainTextResponse("There is no such file.\n", status_code=404)
    data = files("remora.view").joinpath("static", name).read_bytes()
    return Response(data, media_type=ASSETS[name])


def _id(request: Request) -> str:
    """The agent of the address. Raises `TraceNotFound` for anything that cannot be the name of a stream."""
    given: Any = request.path_params["id"]
    if not _ID.fullmatch(given):
        raise TraceNotFound("The address names no agent")
    return str(given)


def _number(request: Request, name: str) -> int | None:
    given = request.query_params.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 16 else None


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name, "")[:8000]


def _is_part(request: Request) -> bool:
    return request.query_params.get("part") == "rows"
