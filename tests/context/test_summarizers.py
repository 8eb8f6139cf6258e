from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context.projection import EMPTY, apply
from remora.context.summarizers import (
    MAX_DELTA_BYTES,
    LinterSummarizer,
    Summarizer,
    distill,
    get_default_summarizers,
    summarize_here,
)
from remora.events import NoticeEvent, PacketDelta, canonical, decode, encode


def delta_of(value: Any, tool: str = "tool", **summarizers: Summarizer) -> PacketDelta:
    return distill(tool, value, summarize_here(tool, value, summarizers)).delta


def summary_of(value: Any, tool: str = "tool", **summarizers: Summarizer) -> str:
    action = delta_of(value, tool, **summarizers).action
    assert action is not None
    return action.summary


class Broken(Summarizer):
    def summarize(self, raw_result: Any) -> str:
        raise RuntimeError("no")

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        raise RuntimeError("no")


def test_the_tools_own_summary_comes_first() -> None:
    assert summary_of({"summary": "mine", "errors": []}, "lint", lint=LinterSummarizer()) == "mine"


def test_the_registered_summarizer_comes_second() -> None:
    assert summary_of({"errors": [1, 2]}, "lint", lint=LinterSummarizer()) == "Found 2 lint errors"


@pytest.mark.parametrize(
    "value",
    [
        {"stdout": "1 failed, 2 passed in 0.1s"},
        {"report": {"failures": 3}},
        {"passed": ["a"], "failed": ["b"]},
        {"passed": None, "failed": None},
        {"error": "no such file"},
        {"errors": "E501 Line too long"},
        "3 errors",
        [{"code": "E501"}],
    ],
    ids=str,
)
@pytest.mark.parametrize("tool", ["run_tests", "run_linter", "apply_fix"])
def test_a_tool_of_that_name_with_other_results_is_not_said_to_have_found_nothing(value: Any, tool: str) -> None:
    made = delta_of(value, tool, **get_default_summarizers())
    assert made.action is not None
    assert not any(word in made.action.summary for word in ("passed", "No lint errors", "Ran "))
    assert not made.knowledge.keys() & {"tests_passed", "tests_failed", "lint_errors_remaining"}


def test_counts_of_tests_are_read_under_both_names() -> None:
    for value in ({"passed": 3, "failed": 1}, {"tests_passed": 3, "tests_failed": 1, "slow": ["a"]}):
        made = delta_of(value, "run_tests", **get_default_summarizers())
        assert made.action is not None
        assert made.action.summary == "1 of 4 tests failed"
        assert {key: item.value for key, item in made.knowledge.items()} == {"tests_passed": 3, "tests_failed": 1}


def test_the_fallback_names_the_tool() -> None:
    assert summary_of([1, 2], "list_things") == "Executed list_things"
    assert summary_of({"error": "boom"}, "list_things") == "list_things failed"


def test_knowledge_is_extracted_when_the_tool_gives_none() -> None:
    found = delta_of({"errors": [1], "fixed": 2}, "lint", lint=LinterSummarizer()).knowledge
    assert {key: item.value for key, item in found.items()} == {"lint_errors_remaining": 1, "lint_errors_fixed": 2}


def test_knowledge_of_the_tool_wins_over_extraction() -> None:
    found = delta_of({"errors": [1], "knowledge_delta": {"mine": 1}}, "lint", lint=LinterSummarizer()).knowledge
    assert list(found) == ["mine"]


def test_a_summarizer_that_raises_is_replaced_and_told() -> None:
    delta = delta_of({"x": 1}, "lint", lint=Broken())
    assert delta.action is not None
    assert delta.action.summary == "Executed lint"
    assert any("RuntimeError" in line for line in delta.diagnostics)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ({"outcome": "partial"}, "partial"),
        ({"error": "x"}, "error"),
        ({"status": "FAILED"}, "error"),
        ({"status": "warning"}, "partial"),
        ({"status": None}, "success"),
        ({"outcome": "nonsense"}, "success"),
        ("text", "success"),
        (None, "success"),
    ],
)
def test_the_outcome_is_said_or_inferred(value: Any, outcome: str) -> None:
    assert distill("t", value).outcome == outcome


def test_an_error_without_text_uses_the_summary() -> None:
    error = delta_of({"outcome": "error", "summary": "could not write"}).error
    assert error is not None
    assert error.set == "could not write"


def test_an_error_object_gives_its_message() -> None:
    error = delta_of({"error": {"message": "no file", "code": 2}}).error
    assert error is not None
    assert error.set == "no file"


def test_tool_text_enters_as_one_clean_line() -> None:
    assert summary_of({"summary": "a\x1b[31mb\n\nc\u202ed" + "x" * 500}).startswith("a [31mb c d")
    assert len(summary_of({"summary": "x" * 500})) == 200


def test_misfit_candidates_are_dropped_and_told() -> None:
    delta = delta_of({"candidate_actions": [{"args": {}}]})
    assert delta.candidate_actions is None
    assert "candidate_actions of tool were dropped" in delta.diagnostics[0]


def test_a_value_too_large_for_the_packet_leaves_a_handle_to_recall_it_by() -> None:
    delta = delta_of({"summary": "s", "knowledge_delta": {"huge": "x" * 100_000, "small": 1}})
    assert delta.knowledge["small"].value == 1
    assert delta.knowledge["huge"].value == {"recall": "huge", "bytes": 100_021}
    assert "huge is too large" in delta.diagnostics[0]
    assert len(canonical(delta)) <= MAX_DELTA_BYTES


def test_thousands_of_values_are_bounded_at_once_and_told_in_a_few_lines() -> None:
    delta = delta_of({"summary": "s", "knowledge_delta": {f"key{number}": "x" * 150 for number in range(20_000)}})
    assert len(canonical(delta)) <= MAX_DELTA_BYTES
    assert len(delta.knowledge) > 300
    assert delta.diagnostics[-1].startswith("19")
    assert len(delta.diagnostics) == 9


def test_an_excerpt_that_is_too_large_does_not_cost_the_knowledge() -> None:
    delta = delta_of({"summary": "s", "knowledge_delta": {"a": 1}, "excerpts": [{"label": "l", "text": "x" * 99_000}]})
    assert delta.knowledge["a"].value == 1


@given(st.dictionaries(st.text(max_size=5), st.floats() | st.binary(max_size=4) | st.integers() | st.text(max_size=8)))
def test_whatever_a_tool_knows_the_packet_of_today_is_the_packet_replayed(news: dict[str, Any]) -> None:
    delta = delta_of({"summary": "s", "knowledge_delta": news})
    event = NoticeEvent(seq=0, delta=delta)
    replayed = decode(encode(event))
    assert apply(EMPTY, replayed) == apply(EMPTY, event)


def test_a_number_that_json_cannot_hold_never_differs_between_now_and_replay() -> None:
    assert delta_of({"summary": "s", "knowledge_delta": {"n": math.nan}}).knowledge["n"].value is None


def test_the_default_summarizers_are_a_copy() -> None:
    get_default_summarizers().clear()
    assert get_default_summarizers()
