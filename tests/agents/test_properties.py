"""A property that the project's own inputs prove is written instead of a pinned output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.sandbox import probe
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
pytestmark = pytest.mark.skipif(probe().applies == "none", reason="row 22: no sandbox works here for project code")

CODE = '''
def encode_tags(tags: list) -> str:
    """The tags as one text."""
    return ",".join(tag.replace("~", "~0").replace(",", "~1") for tag in tags) if tags else "-"


def decode_tags(text: str) -> list:
    """The tags of one text."""
    return [tag.replace("~1", ",").replace("~0", "~") for tag in text.split(",")] if text != "-" else []


def normalize_path(path: str) -> str:
    """The path without empty parts."""
    parts = [part for part in path.split("/") if part and part != "."]
    return "/".join(parts) if parts else "."
'''
WEAK = """from tags import encode_tags, normalize_path


def test_encode():
    for tags in (["red", "a,b"], ["a,b"], ["a~b", "c"]):
        assert encode_tags(tags)


def test_normalize():
    for path in ("a//b", "./a/b", "a/./b", "a"):
        assert "a" in normalize_path(path)
"""


async def written(make: Make, folder: Path, code: str, own: str, name: str) -> tuple[str, dict[str, Any]]:
    """The test file that the agent writes for a function, and what the check says about it."""
    tools = make("test", {"tags.py": code, "tests/test_old.py": own}, f"tags.py:{name}")
    await tools.call("write_test_file", {})
    checked: dict[str, Any] = (await tools.call("run_tests", {})).value
    file = folder / ".agentfs/workspaces/AGENT/tests/test_tags.py"
    return (file.read_text() if file.exists() else ""), checked


async def test_an_inverse_that_gives_back_every_own_input_is_tested(agent_tools: Make, tmp_path: Path) -> None:
    text, checked = await written(agent_tools, tmp_path, CODE, WEAK, "encode_tags")
    assert "def test_decode_tags_reverses_encode_tags(" in text
    assert "assert decode_tags(encode_tags(" in text
    assert "# Fails if " in text
    assert checked["knowledge_delta"]["test_problems"] == 0


async def test_an_inverse_that_loses_an_own_input_is_no_property(agent_tools: Make, tmp_path: Path) -> None:
    lossy = CODE.replace('.replace("~0", "~")', "")
    text, _ = await written(agent_tools, tmp_path, lossy, WEAK, "encode_tags")
    assert "def test_encode_tags" in text
    assert "decode_tags" not in text


async def test_a_settled_result_stays_as_it_is(agent_tools: Make, tmp_path: Path) -> None:
    text, checked = await written(agent_tools, tmp_path, CODE, WEAK, "normalize_path")
    assert "def test_normalize_path" in text
    assert checked["knowledge_delta"]["test_problems"] == 0


async def test_a_property_is_written_as_the_project_writes_tests(agent_tools: Make, tmp_path: Path) -> None:
    calls = [line for line in WEAK.split("\n") if "tags" in line][1:]
    body = "\n".join(f"    {line}" for line in calls).replace(
        "assert encode_tags(tags)", "self.assertTrue(encode_tags(tags))"
    )
    head = "import unittest\n\nfrom tags import encode_tags\n\n\nclass TestTags(unittest.TestCase):\n"
    own = f"{head}    def test_encode(self):\n{body}\n"
    text, checked = await written(agent_tools, tmp_path, CODE, own, "encode_tags")
    assert "(unittest.TestCase):" in text
    assert "decode_tags(encode_tags(" in text
    assert "pytest" not in text
    assert checked["knowledge_delta"]["test_problems"] == 0


async def test_no_object_is_made_of_guesses(agent_tools: Make, tmp_path: Path) -> None:
    untyped = "class Graph:\n    def __init__(self, name, count):\n        self.count = count\n\n"
    untyped += "    def size(self):\n        return self.count + 2\n"
    assert (await written(agent_tools, tmp_path, untyped, "", "Graph.size"))[0] == ""
    typed = untyped.replace("name, count", "name: str, count: int")
    assert "Graph(" in (await written(agent_tools, tmp_path, typed, "", "Graph.size"))[0]
