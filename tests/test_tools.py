from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import remora
from remora.context.contracts import ToolResult, make_success_result
from remora.errors import DefinitionError, ToolArgumentsInvalid
from remora.events import Call
from remora.testing import completion, tool_call_message
from remora.trace import read_events


class Place(BaseModel):
    """Where something is."""

    line: int
    title: str = "x"
    inner: list[Place] = []


@remora.tool(effects="none")
def find(
    text: str,
    kind: Literal["word", "line"] = "word",
    limit: int | None = None,
    names: list[str] = [],  # noqa: B006 - a default that is not changed
    table: dict[str, float] = {},  # noqa: B006
    place: Place | None = None,
) -> dict[str, Any]:
    """Find something
    in a text.

    Args:
        text: Where to look,
            all of it.
        limit (int): How many.

    Returns:
        What was found.
    """
    return make_success_result({"thread": threading.current_thread().name, "place": place}, f"{kind} {limit}")


def test_annotations_and_docstring_become_the_schema() -> None:
    spec = find.spec
    assert (spec.name, spec.description, spec.effects) == ("find", "Find something in a text.", "none")
    place = spec.parameters["properties"].pop("place")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "Where to look, all of it."},
            "kind": {"type": "string", "enum": ["word", "line"], "default": "word"},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "description": "How many."},
            "names": {"type": "array", "items": {"type": "string"}, "default": []},
            "table": {"type": "object", "additionalProperties": {"type": "number"}, "default": {}},
        },
        "required": ["text"],
    }
    model = place["anyOf"][0]
    assert model["properties"]["line"] == {"type": "integer"}
    assert model["properties"]["title"] == {"type": "string", "default": "x"}
    assert model["properties"]["inner"]["items"] == {"type": "object"}
    assert "$ref" not in str(place)


async def test_arguments_are_checked_and_nothing_is_coerced() -> None:
    with pytest.raises(ToolArgumentsInvalid) as caught:
        await find(kind="page", limit="3", names=["a", 1], table={"a": True}, place={"title": "y"}, colour=1)
    told = caught.value.problems
    assert "`text` is missing" in told
    assert "`colour` is not an argument: expected `text`, `kind`, `limit`, `names`, `table`, `place`" in told
    assert any(problem.startswith("`kind`: input should be 'word' or 'line', got 'page'") for problem in told)
    assert any(problem.startswith("`names`.1: ") for problem in told)
    assert any(problem.startswith("`place`.line is missing") for problem in told)
    assert len(told) == 7


async def test_a_function_that_is_not_async_runs_in_a_thread_with_its_models() -> None:
    value = await find("a", limit=2, place={"line": 3})
    assert value["summary"] == "word 2"
    assert value["result"]["thread"] != threading.current_thread().name
    assert value["result"]["place"] == {"line": 3, "title": "x", "inner": []}


async def test_models_that_a_tool_returns_are_the_contracts_dicts() -> None:
    @remora.tool
    async def give() -> ToolResult:
        return ToolResult(result=1, summary="one")

    assert (await give())["summary"] == "one"
    assert give.spec.effects == "outside"
    assert give.spec.parameters == {"type": "object", "properties": {}, "required": []}


def test_every_problem_of_a_tool_is_told_at_once_with_its_place() -> None:
    def broken(untyped, given: threading.Event, *rest: int) -> None:  # type: ignore[no-untyped-def]
        """Do it.

        Args:
            other: Not there.
        """

    with pytest.raises(DefinitionError) as caught:
        remora.tool(broken, name="no name")  # type: ignore[call-overload]
    told = "\n".join(caught.value.problems)
    assert caught.value.file == __file__
    for words in (
        "`no name` is not a valid tool name",
        "`untyped` has no type",
        "`rest` cannot be passed by name",
        "no JSON Schema",
        "`other` is desc",
    ):
        assert words in told


async def test_a_decorated_function_drives_both_tracks(tmp_path: Path) -> None:
    @remora.tool(effects="workspace")
    async def count_words(text: str, least: int = 1) -> dict[str, Any]:
        """Count the words of a text."""
        words = [word for word in text.split() if len(word) >= least]
        return make_success_result(words, f"{len(words)} words", {"words": len(words)})

    async with remora.TwoTrack("Count", tools=[count_words], state_dir=tmp_path) as track:
        prompt = await track.request()
        assert prompt.openai_tools() == [count_words.spec.openai()]
        calls = await track.response(completion(tool_call_message("count_words", {"text": "a bc d", "least": 2})))
        event = await track.perform(calls[0], count_words)
        assert event.outcome == "success"
        assert track.packet.knowledge["words"].value == 1
        wrong = await track.perform(Call(call_id="2", tool="count_words", args={"least": "two"}), count_words)
        assert wrong.outcome == "error"
        assert "`text` is missing" in (track.packet.last_error or "")
    intents = [event for event in read_events(track.path) if event.type == "tool_call"]
    assert [event.effects for event in intents] == ["workspace", "workspace"]


def test_the_decorator_needs_no_more_than_the_base_install() -> None:
    code = (
        "import sys, remora\n@remora.tool\ndef f(x: int) -> int: return x\n"
        "hands = [name for name in sys.modules if name.startswith(('remora.scripts', 'remora.trace', 'remora.app'))]\n"
        "assert not hands and f.spec.name == 'f', hands"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
