"""The specification's own words: `grail.load(…, grail_dir=…)`, and an executor that gives raw output and delta."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from remora.app import GrailExecutor
from remora.errors import DefinitionError
from remora.scripts import Script

HEADER = "from grail import Input, external\n"


async def test_the_executor_gives_raw_output_and_delta(script: Callable[..., Script]) -> None:
    own = script('{"result": [1], "summary": "One found", "knowledge_delta": {"found": 1}}', "own")
    plain = script('{"a": 1}', "plain")
    async with GrailExecutor() as executor:
        raw, delta = await executor.execute(own)
        assert raw["result"] == [1]
        assert delta.action is not None
        assert delta.action.summary == "One found"
        assert delta.knowledge["found"].value == 1
        raw, delta = await executor.execute(plain.path)
        assert raw == {"a": 1}
        assert delta.action is not None
        assert delta.action.summary


async def test_a_script_that_fails_is_an_error_delta(script: Callable[..., Script]) -> None:
    raw, delta = await GrailExecutor().execute(script("1 / 0"))
    assert raw["code"] == "tool_failed"
    assert delta.error is not None
    assert "tool.pym:1: ZeroDivisionError" in (delta.error.set or "")


async def test_inputs_and_externals_reach_the_script(script: Callable[..., Script], tmp_path: Path) -> None:
    async def fetch(what: str) -> str:
        return what.upper()

    text = HEADER + 'n: str = Input("n")\n@external\nasync def fetch(what: str) -> str: ...\nawait fetch(n)'
    executor = GrailExecutor(grail_dir=tmp_path / ".grail")
    raw, _ = await executor.execute(script(text).path, {"n": "ab"}, {"fetch": fetch})
    assert raw == "AB"
    assert (tmp_path / ".grail" / "tool" / "stubs.pyi").exists()
    with pytest.raises(DefinitionError):
        await executor.execute(tmp_path / "none.pym")
