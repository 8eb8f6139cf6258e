"""The grammar allows exactly the offered calls, in as few characters as JSON can be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference.real import smollm2
from remora.context.contracts import ToolSpec
from remora.inference import PRESETS, EmbeddedPolicy, EmbeddedServer, Endpoint
from remora.inference._grammar import call_grammar
from remora.ports import Prompt

TEXT = {"type": "string"}


def tool(name: str = "t", **schema: Any) -> ToolSpec:
    return ToolSpec(name=name, parameters={"type": "object", **schema})


def test_what_is_required_comes_first_and_the_rest_may_be_left_out() -> None:
    grammar = call_grammar([tool(properties={"a": TEXT, "b": {"type": "integer"}, "c": TEXT}, required=["b"])])
    assert grammar is not None
    assert r'"{" "\"b\":" integer ("," "\"a\":" string)? ("," "\"c\":" string)? "}"' in grammar
    alone = call_grammar([tool(properties={"a": TEXT, "b": TEXT})])
    assert alone is not None
    assert r'"{" ("\"a\":" string ("," "\"b\":" string)? | "\"b\":" string)? "}"' in alone


def test_a_reason_comes_before_the_call_and_is_short() -> None:
    plain, reasoned = (call_grammar([tool()], reasoned=wanted) for wanted in (False, True))
    assert plain is not None
    assert reasoned is not None
    assert plain.splitlines()[0] == 'root ::= "{" (r0)'
    assert reasoned.splitlines()[0] == r'root ::= "{\"why\":" "\"" char{1,200} "\"" "," (r0)'
    assert plain.splitlines()[1:] == reasoned.splitlines()[1:]


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "string", "pattern": "^a"},
        {"type": "string", "maxLength": 3},
        {"type": "integer", "minimum": 1},
        {"$ref": "#/definitions/x"},
        {"type": "strange"},
        True,
    ],
)
def test_a_schema_with_more_than_the_grammar_covers_has_none_so_that_the_server_converts_it(inner: Any) -> None:
    assert call_grammar([tool(properties={"a": TEXT, "b": inner})]) is None


KINDS: dict[str, Any] = {
    "line": {"type": "integer"},
    "share": {"type": "number"},
    "sure": {"type": "boolean"},
    "names": {"type": "array", "items": TEXT},
    "by_name": {"type": "object", "additionalProperties": TEXT},
    "level": {"enum": ["low\n", 'hi"gh', "mittel é", 3]},
    "either": {"anyOf": [{"type": "null"}, {"type": "array"}]},
    "both": {"type": ["string", "null"]},
    "fixed": {"const": {"x": [1, "\\"]}},
    "inside": {"type": "object", "properties": {"y": TEXT}, "required": ["y"]},
}


@pytest.mark.parametrize("names", [list(KINDS)[:5], pytest.param(list(KINDS)[5:], marks=pytest.mark.faults)])
async def test_llama_cpp_takes_the_grammar_and_every_kind_of_argument_is_valid_without_whitespace(
    names: list[str],
) -> None:
    offered = (tool("set_all", properties={name: KINDS[name] for name in names}, required=names), tool("stop"))
    asked = Prompt(({"role": "user", "content": f"Call set_all with {', '.join(names)}: short values."},), offered)
    endpoint = Endpoint(PRESETS["llamacpp"], "", mode="json", max_tokens=160, deadline_s=300)
    async with EmbeddedPolicy(EmbeddedServer(smollm2(), context=1024, threads=1), endpoint) as policy:
        try:
            decision = await policy.decide(asked)
        except Exception as error:  # noqa: BLE001 - a long text may be cut; what there is must still be compact
            text = getattr(error, "text", "")
            assert "was cut at" in str(error)
        else:
            text = decision.text
            assert text == json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
            assert decision.calls[0].tool in ("set_all", "stop")
    assert text.startswith('{"tool":"s')
