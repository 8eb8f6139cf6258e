"""Row 37: nothing without the right host, a harmless method and the token; and nothing changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora import app
from remora.events import AgentEndEvent, AgentStartEvent, FileChange, ToolResultEvent
from remora.view._app import make_app
from view.hostile import turn

METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "PROPFIND",
    "LOCK",
    "CONNECT",
    "get",
    "X",
)
QUERIES = {
    "/a/{id}/output": "?seq=8",
    "/a/{id}/seen": "?seq=8&line=some+words+of+it",
    "/a/{id}/explain": "?key=goal&before=5",
    "/a/{id}/search": "?q=x",
    "/search": "?q=words",
}


@pytest.fixture
def agent(write: Any) -> str:
    change = FileChange(path="a.py")
    return str(write(AgentStartEvent(format=1, goal="g"), *turn("some words of it", 1, change), AgentEndEvent()))


def every_path(project: app.Project, agent: str) -> list[str]:
    """An address for every route that the application has."""
    routes = make_app(project, token="t", port=1)._app.routes  # type: ignore[attr-defined]
    names = {"{id}": agent, "{name}": "view.js"}
    found = []
    for route in routes:
        path = route.path + QUERIES.get(route.path, "")
        for name, value in names.items():
            path = path.replace(name, value)
        found.append(path)
    return found


def streams(path: str) -> bool:
    return path.endswith("/live")


def test_every_route_refuses_every_method_without_host_or_token(
    running: Any, project: app.Project, agent: str, record_property: Callable[[str, object], None]
) -> None:
    paths = every_path(project, agent)
    assert len(paths) >= 17
    hosts = (
        *(
            "evil.example",
            f"evil.example:{running.port}",
            f"127.0.0.1:{running.port + 1}",
            "127.0.0.1",
            "",
            "localhost",
        ),
        *(f"127.0.0.1:{running.port}.evil.example", f"evil@127.0.0.1:{running.port}", f"0.0.0.0:{running.port}"),
    )
    tried = 0
    for path in paths:
        for method in METHODS:
            for host in hosts if method in ("GET", "POST") else hosts[:2]:
                answer = running.ask(path, method, running.cookie | {"Host": host})
                assert answer.status in (400, 421), (path, method, host, answer.status)
                tried += 1
            for cookie in ({}, {"Cookie": f"remora-view-{running.port}=wrong"}, {"Cookie": "garbage"}):
                answer = running.ask(path, method, cookie)
                assert answer.status == (403 if method in ("GET", "HEAD") else 405), (path, method, answer.status)
                tried += 1
            if method not in ("GET", "HEAD"):
                assert running.ask(path, method, running.cookie).status == 405
                tried += 1
    record_property("row 37", f"{len(paths)} routes × {len(METHODS)} methods, {tried} requests: 0 passed")


def test_the_owner_reads_every_route_with_a_strict_policy(running: Any, project: app.Project, agent: str) -> None:
    for path in every_path(project, agent):
        if streams(path):
            continue
        answer = running.get(path)
        assert answer.status == 200, (path, answer.text)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers
        assert running.ask(path, "HEAD", running.cookie).status == 200


def test_the_token_of_the_first_address_becomes_a_cookie_and_leaves_the_address(running: Any, agent: str) -> None:
    answer = running.ask(f"/a/{agent}?turn=1&token={running.server.token}")
    assert answer.status == 303
    assert answer.headers["location"] == f"/a/{agent}?turn=1"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert running.ask("/?token=wrong").status == 403
    assert running.ask(f"//evil.example/?token={running.server.token}").headers["location"] == "/evil.example/"


def test_the_server_listens_on_loopback_only_and_every_start_has_another_token(project: app.Project) -> None:
    from remora.view import Server

    one, other = Server(project), Server(project)
    assert one._socket.getsockname()[0] == other._socket.getsockname()[0] == "127.0.0.1"
    assert one.token != other.token and len(one.token) >= 43
    one.stop()
    other.stop()


def test_no_request_changes_a_file(running: Any, project: app.Project, agent: str, folder: Path) -> None:
    (folder / "a.py").write_text("x = 1\n")

    def contents() -> dict[str, str]:
        # The index is a view that every reader may bring up to date.
        found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("index."))
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}

    before = contents()
    for path in every_path(project, agent):
        if not streams(path):
            running.get(path)
            running.ask(path, "POST", running.cookie)
            running.ask(path, "DELETE", running.cookie)
    assert contents() == before


@pytest.mark.parametrize(
    "path",
    [
        "/a/../../../etc/passwd",
        "/a/..%2f..%2fetc%2fpasswd",
        "/static/..%2f_guard.py",
        "/static/../_guard.py",
        "/static/view.css%00.py",
        "/a/%00",
        "/a/" + "9" * 5000,
        "/nothing",
        "/a/ZZZZZZZ",
    ],
)
def test_an_address_that_names_no_page_is_not_found(running: Any, agent: str, path: str) -> None:
    answer = running.get(path)
    assert answer.status == 404
    assert "root:" not in answer.text and "class Guard" not in answer.text


@pytest.mark.parametrize("query", ["turn=-1", "turn=" + "9" * 40, "turn=x", "turn=%D9%A3", "turn=1e9", "turn="])
def test_an_odd_number_in_an_address_is_no_error(running: Any, agent: str, query: str) -> None:
    assert running.get(f"/a/{agent}?{query}").status == 200


@pytest.mark.parametrize("query", ["seq=999999", "seq=0", "seq=8&part=99", "seq=8&at=99999999999"])
def test_an_output_that_does_not_exist_is_said_in_a_sentence(running: Any, agent: str, query: str) -> None:
    answer = running.get(f"/a/{agent}/output?{query}")
    assert answer.status in (200, 422)
    assert "Traceback" not in answer.text


def test_a_stream_that_is_a_pipe_or_a_link_is_refused(running: Any, folder: Path, write: Any) -> None:
    import os

    write(ToolResultEvent(call_id="1", tool="t", outcome="success"))
    os.mkfifo(folder / ".agentfs" / "traces" / "PIPE.jsonl")
    (folder / ".agentfs" / "traces" / "LINK.jsonl").symlink_to("/etc/passwd")
    for name in ("PIPE", "LINK"):
        answer = running.get(f"/a/{name}")
        assert answer.status == 422
        assert "not a regular file" in answer.text
