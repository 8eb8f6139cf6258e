"""A delta that is read without models folds as the same delta read with them, and a misfit is never taken for one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context.projection import project
from remora.events import Change, PacketDelta, ToolResultEvent
from remora.events._plain import plain_delta
from strategies import json_values, keys, texts

_values = json_values | st.just({"clear": True}) | st.just({"value": 1})
_actions = st.fixed_dictionaries(
    {"tool": texts | json_values, "summary": texts, "outcome": st.sampled_from(["success", "partial", "good", 1])}
)
_stored = st.dictionaries(st.sampled_from(["action", "knowledge", "error", "v", "other"]), _values) | (
    st.fixed_dictionaries(
        {"action": _actions},
        optional={
            "knowledge": st.dictionaries(keys, st.fixed_dictionaries({"value": json_values}) | _values, max_size=3),
            "error": _values,
        },
    )
)


@given(_stored)
def test_what_is_read_without_models_folds_as_it_does_with_them(stored: dict[str, Any]) -> None:
    plain = plain_delta(stored)
    if plain is not None:
        event = ToolResultEvent(seq=3, turn=2, ts="", call_id="c", tool="t", outcome="success", delta=stored)
        assert isinstance(event.delta, PacketDelta)
        assert project([Change("tool_result", 3, 2, "", plain)]) == project([event])


@pytest.mark.parametrize(
    "stored",
    [
        {"action": {"tool": "t", "summary": "s", "outcome": "success"}},
        {"action": {"tool": "t", "summary": "s", "outcome": "error"}, "knowledge": {"k": {"value": [1]}}},
        {"action": {"tool": "t", "summary": "s", "outcome": "partial"}, "error": {"clear": True}},
    ],
)
def test_what_most_tool_results_say_needs_no_models(stored: dict[str, Any]) -> None:
    assert plain_delta(stored) is not None


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {"v": 2},
        {"action": {"tool": 1, "summary": "s", "outcome": "success"}},
        {"action": {"tool": "t", "summary": "s", "outcome": "well"}},
        {"action": {"tool": "t", "summary": "s", "outcome": ["success"]}},
        {"action": {"tool": "t", "summary": "s", "outcome": "success"}, "knowledge": {"k": 1}},
        {"action": {"tool": "t", "summary": "s", "outcome": "success"}, "error": {"clear": 1}},
        {"action": {"tool": "t", "summary": "s", "outcome": "success"}, "hub": {}},
    ],
)
def test_anything_else_is_left_to_the_models(stored: Any) -> None:
    assert plain_delta(stored) is None
