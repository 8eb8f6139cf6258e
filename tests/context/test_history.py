"""A run told as a chat: what servers and models need of it."""

from __future__ import annotations

from remora.context.history import History
from remora.events import AgentStartEvent, ErrorDelta, ModelResponseEvent, PacketDelta, ToolResultEvent
from remora.inference import EstimatedCounter


def roles(history: History) -> list[str]:
    return [message["role"] for message in history.messages]


def test_an_answer_without_a_call_is_followed_by_what_was_wrong_with_it() -> None:
    history = History("text", EstimatedCounter())
    history.take(AgentStartEvent(goal="Fix it"))
    for _ in range(2):
        wrong = PacketDelta(error=ErrorDelta(set="The reply was cut off"))
        history.take(ModelResponseEvent(text="I think", error="reply_cut", delta=wrong))
    # Servers refuse a chat in which one side speaks twice.
    assert roles(history) == ["user", "assistant", "user", "assistant", "user"]
    assert history.messages[-1]["content"] == "The reply was cut off"


def test_an_answer_with_a_call_is_followed_by_its_result_alone() -> None:
    history = History("text", EstimatedCounter())
    history.take(AgentStartEvent(goal="Fix it"))
    history.take(ModelResponseEvent(text='{"tool":"look","args":{}}'))
    history.take(ToolResultEvent(call_id="1", tool="look", outcome="success"), raw="42")
    assert roles(history) == ["user", "assistant", "user"]
    assert history.messages[-1]["content"] == "look returned:\n42"
