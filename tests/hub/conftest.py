"""A small project whose files use each other, its Hub, and a daemon that never outlives its test."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from remora.hub import HubClient, index_now, start_daemon, stop_daemon

FILES = {
    "shop/__init__.py": "from .stock import take\n",
    "shop/stock.py": (
        "class OutOfStock(Exception):\n"
        '    """There is not enough."""\n\n\n'
        "def take(count: int) -> int:\n"
        '    """Take some."""\n'
        "    if count > 3:\n"
        '        raise OutOfStock("no")\n'
        "    return count\n"
    ),
    "shop/cart.py": (
        "from shop import take\n"
        "from . import stock\n\n\n"
        "class Cart:\n"
        "    def add(self, count):\n"
        "        return self.put(take(count))\n\n"
        "    def put(self, count):\n"
        "        return stock.take(count)\n"
    ),
    "tests/test_cart.py": (
        "from shop.cart import Cart\n\n\ndef test_adding():\n    cart = Cart()\n    assert cart.add(1) == 1\n"
    ),
}


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Returns once it holds. Fails after a while that no machine needs."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.005)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES)
    return root


@pytest.fixture
def state(project: Path) -> Path:
    return project / ".agentfs"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project with its daemon, for tests that only change files."""
    root = tmp_path_factory.mktemp("running")
    write(root, FILES)
    start_daemon(root, root / ".agentfs")
    yield root
    stop_daemon(root / ".agentfs")


@pytest.fixture
def hub(project: Path, state: Path) -> Iterator[HubClient]:
    """The Hub of the project, indexed."""
    index_now(project, state)
    client = HubClient(project, state)
    yield client
    client.close()


@pytest.fixture
def daemon(project: Path, state: Path) -> Iterator[Callable[[], int]]:
    """Starts the daemon and gives its process; it is gone after the test, however that ended."""
    started: list[int] = []

    def start() -> int:
        started.append(start_daemon(project, state).pid)
        return started[-1]

    yield start
    with suppress(Exception):
        stop_daemon(state)
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
