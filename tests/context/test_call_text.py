"""Whatever a model wrote, it is a call or it is not; reading it never fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context.call_text import calls_in_text, marked_calls
from remora.context.calls import BadCall, sort_calls
from remora.context.contracts import ToolSpec
from remora.events import Call

FIX = {"tool": "apply_fix", "args": {"code": "F401"}}
SPEC = ToolSpec(
    name="apply_fix",
    parameters={"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
)


def marked(args: str, name: str = "apply_fix") -> str:
    return f"<start_function_call>call:{name}{args}<end_function_call>"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(FIX),
        f"```json\n{json.dumps(FIX, indent=2)}\n```",
        f"I will fix it.\n\n```\n{json.dumps(FIX)}\n```\nDone.",
        f"Sure! {json.dumps(FIX)} is the call.",
        'The options {a, b} do not matter: {"name": "apply_fix", "arguments": {"code": "F401"}}',
        '<tool_call>\n{"name": "apply_fix", "arguments": {"code": "F401"}}\n</tool_call>',
        '{"name": "apply_fix", "parameters": {"code": "F401"}}',
        '[{"type": "function", "function": {"name": "apply_fix", "arguments": {"code": "F401"}}}]',
        '{"thought": "F401 is fixable"} {"tool": "apply_fix", "args": {"code": "F401"}}',
        marked("{code:<escape>F401<escape>}"),
        f"Now:\n{marked('{ code: <escape>F401<escape> }')}<start_function_response>",
        "<start_function_call>call:apply_fix{code:F401}",
    ],
)
def test_a_call_is_found_however_it_is_wrapped(text: str) -> None:
    assert calls_in_text(text) == (FIX,)


@pytest.mark.parametrize(
    "text", ["", "All done.", "{}", "[1, 2]", '{"name": "Ada"}', '{"tool": 5}', "{" * 5000, "[" * 5000]
)
def test_a_text_without_a_call_has_none(text: str) -> None:
    assert calls_in_text(text) == ()


@pytest.mark.parametrize(
    ("written", "args"),
    [
        ("{}", {}),
        ("{n:3,x:-1.5,yes:true,no:null}", {"n": 3, "x": -1.5, "yes": True, "no": None}),
        ("{text:<escape>a, {b}: [c] \n\"d\"<escape>}", {"text": 'a, {b}: [c] \n"d"'}),
        ("{list:[<escape>a<escape>,2,[]]}", {"list": ["a", 2, []]}),
        ("{at:{line:4,why:<escape><escape>}}", {"at": {"line": 4, "why": ""}}),
        ("{<escape>odd key<escape>:1}", {"odd key": 1}),
        ("{path:src/a.py}", {"path": "src/a.py"}),
    ],
)  # fmt: skip
def test_the_marks_of_functiongemma_hold_every_kind_of_value(written: str, args: dict[str, Any]) -> None:
    assert marked_calls(marked(written)) == ({"tool": "apply_fix", "args": args},)


def test_several_marked_calls_are_several_calls() -> None:
    text = marked("{code:<escape>F401<escape>}") + marked("{}", "submit_result")
    assert [call["tool"] for call in calls_in_text(text)] == ["apply_fix", "submit_result"]


@pytest.mark.parametrize("written", ["{code:<escape>F401}", "{code", "", "{code:[1,2}", "{" + "a:{" * 200])
def test_marked_arguments_that_cannot_be_read_are_a_bad_call(written: str) -> None:
    good, (bad,) = sort_calls(marked_calls(marked(written) if written else "<start_function_call>call:x[1]"), [], 1)
    assert good == ()
    assert "expected a JSON object" in bad.error.message


@given(
    st.text()
    | st.lists(st.sampled_from(["<start_function_call>call:f", "<escape>", "{", "}", "[", ",", ":", "a"])).map("".join)
)
def test_any_text_is_read_without_an_error(text: str) -> None:
    good, bad = sort_calls(calls_in_text(text), [SPEC], 1, strict=True)
    assert all(isinstance(call, Call) for call in good)
    assert all(isinstance(call, BadCall) for call in bad)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"tool": "rm", "args": {}}, "`rm` is not offered: expected one of `apply_fix`"),
        ({"tool": "apply_fix", "args": {}}, "`code` is missing"),
        ({"tool": "apply_fix", "args": {"code": 5}}, "`code`: expected string, got integer"),
        ({"tool": "apply_fix", "args": {"code": "F401", "also": 1}}, "`also` is not an argument"),
        ({"tool": "apply_fix", "args": [1]}, "expected a JSON object"),
        ({"tool": "apply_fix", "args": {"code": "\ud800"}}, "expected a JSON object"),
    ],
)
def test_a_call_that_its_tool_would_refuse_is_told_to_the_model(call: dict[str, Any], words: str) -> None:
    good, (bad,) = sort_calls([call], [SPEC], 1, strict=True)
    assert good == ()
    assert words in bad.error.message


def test_ten_thousand_calls_with_one_id_get_an_id_each() -> None:
    good, _ = sort_calls([{"id": "x", "tool": "apply_fix", "args": {"code": "a"}}] * 10_000, [SPEC], 3)
    assert len({call.call_id for call in good}) == 10_000
