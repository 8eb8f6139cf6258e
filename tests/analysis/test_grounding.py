from __future__ import annotations

from remora.analysis import Grounding, call_words, grounding, words_in
from remora.events import (
    AgentStartEvent,
    Call,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolCallEvent,
    ToolResultEvent,
    UserInputEvent,
)


def turn(number: int, prompt: str, **args: str) -> list[ModelRequestEvent | ModelResponseEvent]:
    message = {"role": "user", "content": prompt}
    call = Call(call_id="c", tool="look", args=args)
    return [ModelRequestEvent(turn=number, messages=(message,)), ModelResponseEvent(turn=number, calls=(call,))]


def found(*events: object, system: str = "") -> dict[int, Grounding]:
    return grounding(events, system, lambda event: str(event.raw))  # type: ignore[arg-type]


def test_a_word_counts_if_it_stood_before_and_is_missing_if_the_prompt_lacks_it() -> None:
    start = AgentStartEvent(goal="Fix order_77")
    said = UserInputEvent(text="it is in src/cart.py, line 42")
    assert found(start, said, *turn(1, "order_77 is broken", path="order_77 cart 42")) == {
        1: Grounding(3, ("42", "cart"))
    }


def test_words_that_are_new_or_that_the_system_text_holds_do_not_count() -> None:
    start = AgentStartEvent(goal="Fix order_77 with ruff")
    assert found(start, *turn(1, "", path="invented ruff"), system="Use ruff.") == {}


def test_earlier_calls_and_outputs_count_and_the_agents_check_does_not() -> None:
    call = ToolCallEvent(call_id="1", tool="look", args={"id": "W123"})
    result = ToolResultEvent(call_id="1", tool="look", outcome="success", raw="status shipped_99")
    check = ToolResultEvent(call_id="2", tool="look", outcome="success", raw="secret_word", purpose="check")
    events = (AgentStartEvent(goal="g"), call, result, check, *turn(2, "W123", a="W123 shipped_99 secret_word"))
    assert found(*events) == {2: Grounding(2, ("shipped_99",))}


def test_words_are_identifiers_and_numbers_without_common_words() -> None:
    assert words_in('the order W1234 has\\n12 items and 7 of "new_kind"') == {
        "order",
        "W1234",
        "12",
        "items",
        "new_kind",
    }


def test_null_and_booleans_count_as_json_writes_them() -> None:
    call = Call(call_id="1", tool="look", args={"body": None, "deep": True, "names": [None, "abc"]})
    assert call_words([call]) == {"true", "abc"}
