"""`remora hub`: what people and scripts see."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Remora

NODE = "shop/orders.py:place_order"


@pytest.fixture
def stopped(shop: Path, remora: Remora) -> Iterator[None]:
    yield
    remora("hub", "stop")


def test_an_index_is_made_told_and_asked(shop: Path, remora: Remora, remora_json: Callable[..., Any]) -> None:
    assert remora("hub", "status").returncode == 1
    made = remora("hub", "index")
    assert (made.stdout, made.returncode) == ("7 files, 7 changed\n", 0)
    assert remora_json("hub", "index")["changed"] == 0
    told = remora_json("hub", "status")
    assert (told["daemon"], told["index"], told["files"]) == ("none", "ready", 7)
    node = remora_json("hub", "query", NODE)
    assert "shop/inventory.py:Inventory.reserve" in node["callees"]
    shown = remora("hub", "query", NODE)
    assert "def place_order(cart: Cart" in shown.stdout
    assert shown.returncode == 0


def test_a_node_that_is_not_there_is_named_with_those_that_are(shop: Path, remora: Remora) -> None:
    done = remora("hub", "query", "shop/orders.py:nope")
    assert done.returncode == 1
    assert "There is no node `shop/orders.py:nope` now" in done.stderr
    assert "`place_order`" in done.stderr
    done = remora("hub", "query", "nothing.py")
    assert "`nothing.py` is not a code file here" in done.stderr


def test_a_daemon_is_started_once_followed_and_stopped(
    shop: Path, remora: Remora, remora_json: Callable[..., Any], stopped: None
) -> None:
    pid = remora_json("hub", "start")["pid"]
    again = remora("hub", "start")
    assert again.returncode == 1
    assert f"running already: process {pid}" in again.stderr
    refused = remora("hub", "index")
    assert refused.returncode == 1
    assert f"Process {pid} is writing the index" in refused.stderr
    assert remora_json("hub", "status")["daemon"] == "running"
    assert "place_order" in remora("hub", "query", NODE).stdout
    assert remora_json("hub", "stop") == {"stopped": pid}
    assert remora("hub", "stop").stdout == "no daemon was running\n"
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_secret_in_the_code_is_in_no_index(shop: Path, remora: Remora) -> None:
    secret = "canary_of_the_hub_77"
    (shop / "leak.py").write_text(f"import {secret}\n\n\ndef f(key='{secret}'):\n    '''{secret}'''\n")
    remora("hub", "index", env={"SHOP_API_KEY": secret})
    kept = [path.read_bytes() for path in (shop / ".agentfs").rglob("*") if path.is_file()]
    assert kept
    assert not [data for data in kept if secret.encode() in data]
