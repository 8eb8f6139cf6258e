from __future__ import annotations

import base64
import gzip
import re
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import remora
from remora.context.contracts import ToolSpec
from remora.context.projection import project
from remora.errors import BudgetError, ConfigError, ToolFailed, UsageError
from remora.events import (
    AgentEndEvent,
    BlobRef,
    Call,
    ModelRequestEvent,
    ToolCallEvent,
    ToolResultEvent,
    UserInputEvent,
    unpack,
)
from remora.inference import EstimatedCounter
from remora.ports import Decision, ToolOutput
from remora.trace import FileBlobs, FileTrace, read_events, verify
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

COUNT = ToolSpec(
    name="count_words",
    description="Count words.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


def call(**args: Any) -> Call:
    return Call(call_id="c1", tool="count_words", args=args)


def track(folder: Path, **settings: Any) -> remora.TwoTrack:
    return remora.TwoTrack(goal="Count", tools=[COUNT], state_dir=folder, **settings)


async def test_the_packet_is_what_the_stream_folds_to(tmp_path: Path) -> None:
    async with track(tmp_path) as tt:
        await tt.request()
        await tt.call(call(text="a b"), lambda text: {"summary": f"{len(text.split())} words", "result": text})
        shown = tt.packet
    assert project(read_events(tt.path)).model_copy(update={"turn": shown.turn}) == shown
    assert [action.summary for action in shown.recent_actions] == ["2 words"]


async def test_leaving_the_block_seals_the_stream(tmp_path: Path) -> None:
    async with track(tmp_path) as tt:
        await tt.user("hello")
    assert verify(tt.path).status == "sealed"
    assert any(isinstance(event, UserInputEvent) for event in read_events(tt.path))


async def test_an_exception_in_the_block_is_in_the_sealed_stream(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="my loop broke"):
        async with track(tmp_path) as tt:
            raise RuntimeError("my loop broke")
    types = [event.type for event in read_events(tt.path)]
    assert types == ["agent_start", "agent_error", "agent_end"]


async def test_the_intent_is_durable_before_the_tool_runs(tmp_path: Path) -> None:
    seen: list[str] = []

    def look(text: str) -> str:
        seen.extend(event.type for event in read_events(tt.path))
        return text

    async with track(tmp_path) as tt:
        await tt.request()
        await tt.call(call(text="x"), look)
    assert seen[-1] == "tool_call"


async def test_a_failing_tool_is_a_result_and_not_the_end(tmp_path: Path) -> None:
    async def fail(text: str) -> None:
        raise ToolFailed("no such file")

    async with track(tmp_path) as tt:
        await tt.request()
        result = await tt.perform(call(text="x"), fail)
        assert result.outcome == "error"
        assert tt.packet.last_error == "no such file"
        await tt.call(call(text="x"), lambda text: 1 / 0)
        assert tt.packet.last_error == "ZeroDivisionError: division by zero"
    assert tt.packet.error_count == 2


@pytest.mark.parametrize("value", ["x" * 20_000, b"\x00\xff", {1: float("inf")}, "\ud800", {"k": [1, 2.5, None, True]}])
async def test_the_raw_value_can_be_read_back_exactly(tmp_path: Path, value: Any) -> None:
    async with track(tmp_path) as tt:
        await tt.request()
        await tt.call(call(text="x"), lambda text: value)
    (event,) = [event for event in read_events(tt.path) if isinstance(event, ToolResultEvent)]
    stored = event.raw
    if event.raw_ref is not None:
        stored = unpack(await FileBlobs(tmp_path).get(event.raw_ref.blob), event.raw_ref.encoding)
    assert stored == value


async def test_prints_and_outputs_are_kept_beside_the_result(tmp_path: Path) -> None:
    async with track(tmp_path) as tt:
        await tt.request()
        await tt.call(call(text="x"), lambda text: ToolOutput(1, prints="hi\n", outputs=(("ruff stdout", b"[]"),)))
    (event,) = [event for event in read_events(tt.path) if isinstance(event, ToolResultEvent)]
    kept = {item["name"]: await FileBlobs(tmp_path).get(item["ref"]["blob"]) for item in event.attachments}
    assert kept == {"prints": b"hi\n", "ruff stdout": b"[]"}


async def test_the_receipt_holds_exactly_the_messages_that_were_sent(tmp_path: Path) -> None:
    async with track(tmp_path, system_prompt="Be brief.") as tt:
        prompt = await tt.request()
    (receipt,) = [event for event in read_events(tt.path) if isinstance(event, ModelRequestEvent)]
    system = await FileBlobs(tmp_path).get(BlobRef.model_validate(receipt.messages[0]["content_ref"]).blob)
    assert [system.decode(), receipt.messages[1]["content"]] == [message["content"] for message in prompt.messages]
    assert receipt.tokens["total"] <= receipt.limit
    assert receipt.counter == {"name": "estimate-1", "exact": False}


async def test_a_candidate_that_its_tool_would_refuse_is_dropped_and_told(tmp_path: Path) -> None:
    wrong = [{"tool": "count_words", "args": {"text": 3}}, {"tool": "count_words", "args": {"text": "ok"}}]
    async with track(tmp_path) as tt:
        await tt.request()
        await tt.call(call(text="x"), lambda text: {"summary": "s", "candidate_actions": wrong})
        assert [action.args for action in tt.packet.candidate_actions] == [{"text": "ok"}]
        assert "Candidate count_words was dropped: `text`: expected string, got integer" in tt.packet.diagnostics


async def test_a_budget_that_could_be_exceeded_is_refused_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="limit of 300 tokens is too small"):
        track(tmp_path, budget=300)
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"goal": None}, "`goal` is `None`: expected a text"),
        ({"budget": "800"}, "`budget` is `'800'`: expected a number of tokens, or None"),
        ({"style": "prose"}, "`style` is `'prose'`: expected one of `json`, `markdown`, `account`, `chat`"),
        ({"calling": "json"}, "`calling` is `'json'`: expected one of `text`"),
        ({"sync": "never"}, "`sync` is `'never'`: expected one of `always`"),
    ],
)
def test_a_wrong_setting_is_told_before_the_start(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        remora.TwoTrack(**{"goal": "Count", "state_dir": tmp_path / "state"} | settings)
    assert not (tmp_path / "state").exists()


def test_a_state_folder_that_is_a_file_is_told_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(ConfigError, match="is not a folder"):
            track(place)


async def test_a_request_without_a_goal_or_a_word_is_refused_and_nothing_is_recorded(tmp_path: Path) -> None:
    async with remora.TwoTrack("", state_dir=tmp_path) as tt:
        before = len(list(read_events(tt.path)))
        with pytest.raises(UsageError, match="nothing to ask"):
            await tt.request()
        assert len(list(read_events(tt.path))) == before
        await tt.user("Count the words")
        assert "Count the words" in (await tt.request()).text


async def test_an_unknown_tool_counts_as_one_that_touches_the_outside(tmp_path: Path) -> None:
    async with track(tmp_path) as tt:
        await tt.request()
        await tt.call(Call(call_id="c", tool="mystery", args={}), lambda: None)
    (intent,) = [event for event in read_events(tt.path) if isinstance(event, ToolCallEvent)]
    assert intent.effects == "outside"


async def test_a_registered_secret_is_nowhere_on_the_disk(tmp_path: Path) -> None:
    key = "sk-canary-0123456789"
    encoded = base64.b64encode(key.encode()).decode()
    output = ToolOutput(
        {"summary": f"used {key}", "result": [encoded] * 2000, "knowledge_delta": {"key": key}},
        prints=key[:7] + key[7:],
        outputs=(("log", f"Authorization: {key}".encode()),),
    )
    settings = {"system_prompt": f"Use {key}.", "secrets": {"API_KEY": key}}
    async with track(tmp_path, **settings) as tt:
        await tt.user(f"my key is {key}")
        prompt = await tt.request()
        await tt.response(Decision((call(text=key),), text=key))
        result = await tt.perform(call(text=key), lambda text: output)
        assert "[secret:API_KEY]" in tt.packet.recent_actions[0].summary
    assert result.redactions == 2000 + 4
    assert key not in str(prompt)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            assert key.encode() not in data
            assert encoded.encode() not in data


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("not even a text")


@dataclass
class Plain:
    x: int


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        Plain(1),
        Odd(),
        uuid.uuid4(),
        nested(5_000),
        {"extensions": {1: 2}},
        {"extensions": {"\ud800": 1}},
        {"summary": "s", "excerpts": [{"label": "a", "text": "x" * 300_000}]},
        {"summary": "s", "diagnostics": ["d"] * 100_000},
        {"summary": "s", "knowledge_delta": {"n": 10**5000}},
        {"candidate_actions": [{"tool": "count_words", "args": {"text": None}}]},
        time.struct_time(range(9)),
        {"sk-canary-0123456789"},
        bytearray(b"sk-canary-0123456789"),
        float("nan"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_whatever_a_tool_returns_is_a_result_in_the_stream(tmp_path: Path, value: Any) -> None:
    async with track(tmp_path, secrets={"KEY": "sk-canary-0123456789"}) as tt:
        await tt.request()
        await tt.call(call(text="x"), lambda text: value)
        await tt.request()
    types = [event.type for event in read_events(tt.path)]
    assert types.count("tool_result") == 1
    assert types[-1] == "agent_end"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"sk-canary" in _bytes(path)]


def _bytes(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


async def test_arguments_too_large_for_a_record_are_kept_apart_and_the_tool_is_not_run(tmp_path: Path) -> None:
    async with track(tmp_path) as tt:
        await tt.request()
        (chosen,) = await tt.response(Decision((call(text="y" * 400_000),), text="z" * 400_000))
        result = await tt.perform(chosen, lambda text: pytest.fail("it ran"))
    assert result.outcome == "error"
    (intent,) = [event for event in read_events(tt.path) if isinstance(event, ToolCallEvent)]
    assert b"y" * 400_000 in await FileBlobs(tmp_path).get(intent.args["blob"])
    assert verify(tt.path).status == "sealed"


async def test_a_secret_in_any_field_of_any_event_is_gone(tmp_path: Path) -> None:
    key = "sk-canary-0123456789"
    tt = track(tmp_path, secrets={"KEY": key})
    await tt.start()
    await tt.request()
    bad = Call(call_id=key, tool=key, args={key: key})
    await tt.response(Decision((bad,), text=key, model=key, usage={key: key}, finish=key))
    await tt.call(bad, lambda **_: {"summary": key})
    await tt.submit({"summary": key})
    await tt.end(AgentEndEvent(reason=key, summary=key))
    assert key not in str(tt.packet)
    assert key.encode() not in tt.path.read_bytes()


class BackwardsClock:
    """A clock that is set back all the time."""

    def __init__(self) -> None:
        self.left = 10_000.0

    def now(self) -> datetime:
        self.left -= 1
        return datetime(2026, 11, 15, tzinfo=UTC) + timedelta(seconds=self.left)

    def monotonic(self) -> float:
        self.left -= 1
        return self.left


async def test_a_clock_that_jumps_back_changes_no_order_and_makes_no_negative_duration(tmp_path: Path) -> None:
    clock = BackwardsClock()
    async with FileTrace(tmp_path, clock=clock) as writer:
        tt = TwoTrack.of(
            Wiring(
                identity=Identity("01BACK"),
                goal="g",
                tools=[COUNT],
                system_prompt="",
                prompts=PromptSettings(1000),
                writer=writer,
                blobs=FileBlobs(tmp_path),
                counter=EstimatedCounter(),
                clock=clock,
            )
        )
        async with tt:
            await tt.request()
            result = await tt.perform(call(text="x"), lambda text: text)
    assert result.duration_ms == 0
    events = list(read_events(writer.path("traces/01BACK")))
    assert [event.seq for event in events] == list(range(len(events)))
    assert [event.ts for event in events] == sorted((event.ts for event in events), reverse=True)
