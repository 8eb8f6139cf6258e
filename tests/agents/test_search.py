"""The search for telling calls: real pytest in the real sandbox, on code with edges, errors, texts and objects."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.sandbox import probe
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
pytestmark = pytest.mark.skipif(probe().applies == "none", reason="row 22: no sandbox works here for project code")

FEES = '''
from dataclasses import dataclass, field
from enum import Enum

LIMIT = 20


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Bag:
    owner: str
    pieces: list[int] = field(default_factory=list)
    size: Size = Size.SMALL


def fee(weight: int) -> int:
    """The fee for a bag."""
    if weight < 0:
        raise ValueError("weight below zero")
    if weight > LIMIT:
        return 50
    return 10


def minutes(clock: str) -> int:
    hours, colon, rest = clock.partition(":")
    if not colon:
        raise ValueError("no colon")
    return int(hours) * 60 + int(rest)


def heavy(bag: Bag) -> Bag:
    return Bag(bag.owner, [piece for piece in bag.pieces if piece >= LIMIT], bag.size)


def spins(count: int) -> int:
    while count > 5:
        pass
    return count * 2 if count > 1 else 0


def noisy(count: int) -> int:
    print("@@remora@@" * count)
    return count + 1


def drawn(count: int) -> int:
    import random
    return random.randint(0, count)
'''


@pytest.fixture
def tools(agent_tools: Make) -> Callable[[str], ScriptTools]:
    return lambda name: agent_tools("test", {"fees.py": FEES}, f"fees.py:{name}")


async def _written(tools: ScriptTools, **args: Any) -> dict[str, Any]:
    value: dict[str, Any] = (await tools.call("write_test_file", args)).value
    return value


async def test_cases_stand_at_the_edges_that_the_code_has(tools: Callable[[str], ScriptTools], tmp_path: Path) -> None:
    agent = tools("fee")
    text = (await _written(agent))["result"]["text"]
    assert "assert fee(20) == 10" in text
    assert "assert fee(0) == 10" in text
    assert "with pytest.raises(ValueError):" in text
    noticed = (await agent.call("run_tests", {})).value["knowledge_delta"]
    assert noticed["changes_missed"] == []
    assert list(tmp_path.rglob("*_remora_*")) == []


@pytest.mark.faults
async def test_a_text_is_found_that_the_code_can_read(tools: Callable[[str], ScriptTools]) -> None:
    value = await _written(tools("minutes"))
    assert value["result"]["search"]["missed"] == []
    assert any("value" in seen and seen["value"] for seen in value["result"]["seen"])


@pytest.mark.faults
async def test_members_of_an_enumeration_are_written_as_members(tools: Callable[[str], ScriptTools]) -> None:
    text = (await _written(tools("heavy")))["result"]["text"]
    assert "size=Size.SMALL" in text
    assert "from fees import Bag, Size, heavy" in text


@pytest.mark.faults
async def test_the_same_code_gets_the_same_test_again(tools: Callable[[str], ScriptTools], tmp_path: Path) -> None:
    first = (await _written(tools("minutes")))["result"]["text"]
    shutil.rmtree(tmp_path / ".agentfs/workspaces/AGENT")  # else the written test is one of the project's own
    assert (await _written(tools("minutes")))["result"]["text"] == first


async def test_a_case_with_an_expectation_is_kept_beside_what_was_found(tools: Callable[[str], ScriptTools]) -> None:
    text = (await _written(tools("fee"), cases=["7 -> 10"]))["result"]["text"]
    assert "assert fee(7) == 10" in text
    assert "fee(20)" in text


@pytest.mark.faults
async def test_calls_that_do_not_end_are_no_cases(tools: Callable[[str], ScriptTools]) -> None:
    value = await _written(tools("spins"))
    assert value["outcome"] == "success"
    assert "spins(10)" not in value["result"]["text"]


@pytest.mark.faults
async def test_what_the_code_prints_is_not_taken_for_an_answer(tools: Callable[[str], ScriptTools]) -> None:
    value = await _written(tools("noisy"))
    search = value["result"]["search"]
    assert search, value
    assert search["calls"]
    assert all(one["call"].startswith("noisy(") for one in search["calls"])


async def test_code_that_answers_by_chance_is_not_searched(tools: Callable[[str], ScriptTools]) -> None:
    assert (await _written(tools("drawn")))["result"]["search"] is None


async def test_no_test_shows_only_that_an_empty_result_is_returned(agent_tools: Make) -> None:
    code = "def send(receivers: list[int]) -> list[int]:\n    return [one for one in receivers if one > 1]\n"
    every, nothing = "[one for one in receivers if one > 1]", "[]"
    for body, outcome in ((code, "success"), (code.replace(every, nothing), "error")):
        tools = agent_tools("test", {"kit/__init__.py": "", "kit/a.py": body}, "kit/a.py:send")
        value = (await tools.call("write_test_file", {})).value
        assert value["outcome"] == outcome
