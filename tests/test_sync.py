from __future__ import annotations

import threading
from pathlib import Path

import pytest

from remora import sync
from remora.errors import UsageError
from remora.events import Call
from remora.trace import read_events, verify

COUNT = {"name": "count", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}


def test_a_loop_without_async_has_both_tracks(tmp_path: Path) -> None:
    with sync.TwoTrack("Count", tools=[COUNT], state_dir=tmp_path) as tt:
        prompt = tt.request()
        assert prompt.text == "Count"
        (call,) = tt.response("", calls=[{"tool": "count", "args": {"text": "a b"}}])
        assert tt.call(call, lambda text: len(text.split())) == 2
        tt.user("Thanks")
        tt.submit("2")
    assert tt.packet.recent_actions[-1].tool == "count"
    assert verify(tt.path).status == "sealed"
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("remora-twotrack")] == []


def test_a_tool_runs_on_the_thread_of_its_caller(tmp_path: Path) -> None:
    with sync.TwoTrack("g", state_dir=tmp_path) as tt:
        name = tt.call({"tool": "t"}, lambda: threading.current_thread().name)
    assert name == threading.current_thread().name


def test_a_tool_may_be_async_or_raise(tmp_path: Path) -> None:
    async def later() -> int:
        return 3

    with sync.TwoTrack("g", state_dir=tmp_path) as tt:
        assert tt.call({"tool": "t"}, later) == 3
        assert tt.call({"tool": "t"}, lambda: 1 / 0)["outcome"] == "error"
        with pytest.raises(ZeroDivisionError):
            tt.call({"tool": "t"}, lambda: 1 / 0, raises=True)
    assert tt.packet.error_count == 2


def test_a_tool_may_use_the_track_that_runs_it(tmp_path: Path) -> None:
    with sync.TwoTrack("g", state_dir=tmp_path) as tt:
        tt.call({"tool": "t"}, lambda: tt.notice("inner", "from the tool"))
    types = [event.type for event in read_events(tt.path)]
    assert types == ["agent_start", "tool_call", "notice", "tool_result", "agent_end"]


def test_an_interrupt_in_a_tool_leaves_the_call_without_a_result(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    tt = sync.TwoTrack("g", state_dir=tmp_path)
    with pytest.raises(KeyboardInterrupt), tt:
        tt.call({"tool": "t"}, stop)
    events = list(read_events(tt.path))
    assert [event.type for event in events] == ["agent_start", "tool_call", "notice", "agent_error", "agent_end"]
    assert events[-1].outcome == "cancelled"


def test_the_split_pair_and_a_continued_stream(tmp_path: Path) -> None:
    with sync.TwoTrack("g", state_dir=tmp_path) as tt:
        tt.called(Call(call_id="1", tool="look"))
        tt.returned("1", {"order_id": "W77"})
    with sync.TwoTrack.continue_(tt) as again:
        assert "W77" in again.request().text
    assert again.path != tt.path


def test_a_mistake_is_raised_where_it_was_made(tmp_path: Path) -> None:
    with sync.TwoTrack("g", state_dir=tmp_path) as tt, pytest.raises(UsageError, match="names no tool"):
        tt.call({}, print)
    tt.close()


def test_fold_works_without_async(tmp_path: Path) -> None:
    with sync.TwoTrack("", state_dir=tmp_path) as tt:
        prompt = tt.fold([{"role": "user", "content": "Hello"}])
        tt.response("Hi")
        tt.observe([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
    assert "Hello" in prompt.text
    assert [event.type for event in read_events(tt.path)].count("model_response") == 1
