"""What the viewer's tests share: streams with a payload in every field, a server on a real port, a real browser."""

from __future__ import annotations

import http.client
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from remora import TwoTrack, app
from remora.events import Call, Event, next_id
from remora.trace import FileTrace, claim
from remora.view import Server
from view.loops import finish

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Answer:
    """What the server answered."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.text = answer.read().decode()


class Running:
    """A server of the viewer in a thread of its own."""

    def __init__(self, project: app.Project) -> None:
        self.server = Server(project)
        self.port = self.server.port
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()

    def ask(self, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
        """Send one request exactly as given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in ({"Host": f"127.0.0.1:{self.port}"} | (headers or {})).items():
                connection.putheader(name, value)
            connection.endheaders()
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """Ask as the owner's browser does."""
        return self.ask(path, headers=self.cookie | headers)

    @property
    def cookie(self) -> dict[str, str]:
        return {"Cookie": f"remora-view-{self.port}={self.server.token}"}

    def close(self) -> None:
        self.server.stop()
        self._thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty project with a state folder of the user's own."""
    place = tmp_path / "project"
    (place / ".agentfs").mkdir(parents=True, mode=0o700)
    claim(place / ".agentfs")
    return place


Write = Callable[..., Any]


@pytest.fixture
def write(folder: Path, clock: Any) -> Write:
    """Records events as one agent's stream, and gives its id."""
    state = {"last": ""}

    def record(*drafts: Event) -> str:
        state["last"] = next_id(clock.now(), state["last"])
        finish(append(state["last"], drafts))
        return state["last"]

    async def append(agent_id: str, drafts: Sequence[Event]) -> None:
        async with FileTrace(folder / ".agentfs", clock=clock, sync="off") as trace:
            await trace.append(
                f"traces/{agent_id}", [draft.model_copy(update={"agent_id": agent_id}) for draft in drafts]
            )

    return record


@pytest.fixture
def writing(folder: Path, clock: Any) -> Callable[[str], Any]:
    """An open stream of another agent, to which events can be added while it is read."""

    @asynccontextmanager
    async def opened(agent_id: str) -> AsyncIterator[Callable[..., Any]]:
        async with FileTrace(folder / ".agentfs", clock=clock, sync="off") as trace:

            async def add(*drafts: Event) -> None:
                made = [draft.model_copy(update={"agent_id": agent_id}) for draft in drafts]
                await trace.append(f"traces/{agent_id}", made)

            yield add

    return opened


@pytest.fixture
def project(folder: Path) -> app.Project:
    return app.open_project(folder)


@pytest.fixture
def running(project: app.Project) -> Iterator[Running]:
    server = Running(project)
    yield server
    server.close()


@pytest.fixture
def start_viewer() -> Iterator[Callable[[app.Project], Running]]:
    """Starts a server for any project."""
    started: list[Running] = []

    def start(project: app.Project) -> Running:
        started.append(Running(project))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium; tests are skipped where there is none.

    Its driver keeps a loop running in this thread, so it is closed with its module.
    """
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found is None:
        pytest.skip("no Chromium was found: `make test-browser` installs one where it can")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


LOG = "\n".join(f"18:{n % 60:02d} worker {n % 7} handled order ORD-{1000 + n} in {n * 13 % 97} ms" for n in range(300))
"""What a tool without a summary of its own returns."""


@pytest.fixture
def run(folder: Path) -> Callable[..., str]:
    """Records a run of both tracks as a user's own loop would, and gives its id."""

    async def record(style: Any, turns: int) -> str:
        tools = {
            "find_order": lambda order: {
                "summary": f"{order} is late by 3 days",
                "result": {"order": order, "items": [{"sku": f"SKU-{n}", "count": n} for n in range(12)]},
                "knowledge_delta": {"late_order": order, "days_late": 3},
            },
            "read_log": lambda lines: LOG,
            "refund": lambda order: {
                "outcome": "error",
                "summary": "Refunds are closed",
                "error": "Refunds are closed",
            },
        }
        calls = [("find_order", {"order": "ORD-1007"}), ("read_log", {"lines": 300}), ("refund", {"order": "ORD-1007"})]
        goal = "Find out why order ORD-1007 is late"
        async with TwoTrack(goal, budget=1200, state_dir=folder / ".agentfs", style=style, sync="off") as tt:
            for number in range(turns):
                await tt.request()
                tool, args = calls[number % len(calls)]
                await tt.call(Call(call_id=str(number), tool=tool, args=args), tools[tool])
        return Path(tt.path).stem

    return lambda style="json", turns=4: finish(record(style, turns))
