"""Tests that take the fixtures of the project: real pytest in the real sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.sandbox import probe
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
pytestmark = pytest.mark.skipif(probe().applies == "none", reason="no OS sandbox works here")

SHOP = """class Cart:
    def __init__(self, lines):
        self.lines = lines

    def total(self, off=0):
        if off > 50:
            raise ValueError("too much")
        return sum(price for name, price in self.lines) * (100 - off) // 100

    def take(self, name: str):
        found = [line for line in self.lines if line[0] == name]
        self.lines = [line for line in self.lines if line[0] != name]
        return found


def cheapest(cart):
    return min(price for name, price in cart.lines)


def names(basket: Cart):
    return sorted(name for name, price in basket.lines if price > 0)
"""
CONFTEST = """import pytest

from shop import Cart


@pytest.fixture
def cart():
    return Cart([("tea", 300), ("cup", 250)])


@pytest.fixture(autouse=True)
def quiet():
    yield Cart([])
"""
FILES = {"shop.py": SHOP, "tests/conftest.py": CONFTEST, "tests/test_other.py": "def test_it(cart):\n    assert cart\n"}


async def _made(make: Make, node: str, files: dict[str, str] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    tools = make("test", files or FILES, f"shop.py:{node}")
    written: dict[str, Any] = (await tools.call("write_test_file", {})).value
    judged: dict[str, Any] = (await tools.call("run_tests", {})).value
    return written, judged


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param("Cart.total", "cart.total(", marks=pytest.mark.faults),
        ("Cart.take", 'assert cart.take("tea") == [("tea", 300)]'),
        ("cheapest", "assert cheapest(cart) == 250"),
        pytest.param("names", 'assert names(cart) == ["cup", "tea"]', marks=pytest.mark.faults),
    ],
)
async def test_an_object_that_no_type_can_make_comes_from_a_fixture(
    agent_tools: Make, node: str, expected: str
) -> None:
    written, judged = await _made(agent_tools, node)
    text = written["result"]["text"]
    assert expected in text
    assert "(cart):\n" in text
    assert "Cart" not in text.replace("`", "")
    assert judged["knowledge_delta"]["test_problems"] == 0


async def test_a_fixture_that_is_more_than_an_object_is_not_taken(agent_tools: Make) -> None:
    special = CONFTEST.replace("@pytest.fixture\n", "@pytest.fixture(params=[1, 2])\n")
    written, _ = await _made(agent_tools, "Cart.total", FILES | {"tests/conftest.py": special})
    assert (
        written["error"] == "No test written: no `Cart` can be made from the types of its `__init__`, nor by a fixture"
    )


async def test_an_object_that_cannot_be_copied_makes_no_test(agent_tools: Make, tmp_path: Path) -> None:
    locked = CONFTEST.replace('("tea", 300)', '("tea", __import__("threading").Lock())')
    written, _ = await _made(agent_tools, "Cart.take", FILES | {"tests/conftest.py": locked})
    assert "cannot pickle" in written["error"]
    assert not (tmp_path / ".agentfs/workspaces/AGENT/tests/test_shop.py").exists()


async def test_tests_that_cannot_be_collected_may_protect_the_code_already(agent_tools: Make) -> None:
    files = {"shop.py": "def fee(weight: int):\n    return 50 if weight > 20 else 10\n"}
    broken = "import nothing_of_this_name\nfrom shop import fee\n\n\ndef test_it():\n    assert fee(21) == 50\n"
    written, judged = await _made(agent_tools, "fee", files | {"tests/test_shop.py": broken})
    assert "the project's own tests did not run" in written["error"]
    assert "nothing_of_this_name" in written["error"]
    assert "nothing_of_this_name" in judged["error"]


async def test_another_file_that_cannot_be_collected_does_not_matter(agent_tools: Make) -> None:
    files = {"shop.py": "def fee(weight: int):\n    return 50 if weight > 20 else 10\n"}
    written, _ = await _made(agent_tools, "fee", files | {"tests/test_other.py": "import nothing_of_this_name\n"})
    assert "# Fails if `weight > 20` becomes `weight >" in written["result"]["text"]
