"""What every `TraceWriter` and every `BlobStore` promises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remora.errors import TraceError, TraceNotFound, TraceSealed
from remora.events import AgentEndEvent, Event, NoticeEvent, UnknownEvent, digest, encode
from remora.ports import BlobStore, TraceWriter
from remora.trace import MAX_LINE, FileBlobs, FileTrace, MemoryBlobs, MemoryTrace, PostgresBlobs, PostgresTrace

STREAM = "traces/01TEST"
HOSTILE_IDS = [
    "", "traces", "traces/", "traces//x", "/etc/passwd", "traces/../x", "traces/..", "traces/.", "../traces/x",
    "traces/a/b", "traces/a\n", "traces/a\0", "traces/a.jsonl", "other/x", "Traces/x", "runs/é", "runs/" + "x" * 5000,
    "traces/-x", "traces/x ", "traces\\x", "runs/\u0661",
]  # fmt: skip
HOSTILE_DIGESTS = [
    "", "sha256:", "sha256:../../../../etc/passwd", "sha256:" + "A" * 64, "sha256:" + "a" * 63, "sha256:" + "a" * 65,
    "md5:" + "a" * 32, "a" * 64, "sha256:" + "a" * 64 + "\n", "sha256:" + "\u0661" * 64, "sha256:" + "../" * 21 + "a",
]  # fmt: skip


@pytest.fixture(params=["file", "memory", "postgres"])
async def trace(request: pytest.FixtureRequest, tmp_path: Path, clock: Any) -> AsyncIterator[TraceWriter]:
    if request.param == "memory":
        yield MemoryTrace(clock)
        return
    if request.param == "postgres":
        async with PostgresTrace(request.getfixturevalue("postgres").new_url(), clock=clock) as writer:
            yield writer
        return
    async with FileTrace(tmp_path / ".agentfs", clock=clock) as writer:
        yield writer


@pytest.fixture(params=["file", "memory", "postgres"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlobStore]:
    if request.param == "postgres":
        found = PostgresBlobs(request.getfixturevalue("postgres").new_url())
        yield found
        found.close()
        return
    yield FileBlobs(tmp_path / ".agentfs") if request.param == "file" else MemoryBlobs()


def note(text: str) -> NoticeEvent:
    return NoticeEvent(code="test", message=text)


async def read_all(trace: TraceWriter, stream_id: str = STREAM, after: int = -1) -> list[Event]:
    return [event async for event in trace.read(stream_id, after=after)]


async def test_numbers_start_at_zero_and_have_no_gaps(trace: TraceWriter) -> None:
    first = await trace.append(STREAM, [note("a"), note("b")])
    second = await trace.append(STREAM, [note("c")])
    assert [event.seq for event in (*first, *second)] == [0, 1, 2]


async def test_each_event_is_chained_to_the_bytes_of_the_one_before(trace: TraceWriter) -> None:
    a, b = await trace.append(STREAM, [note("a"), note("b")])
    (c,) = await trace.append(STREAM, [note("c")])
    assert a.prev is None
    assert b.prev == digest(encode(a))
    assert c.prev == digest(encode(b))
    assert await trace.head(STREAM) == digest(encode(c))


async def test_what_is_read_is_what_was_returned(trace: TraceWriter) -> None:
    recorded = [*await trace.append(STREAM, [note("a")]), *await trace.append(STREAM, [note("b"), note("c")])]
    assert await read_all(trace) == recorded
    assert await read_all(trace, after=0) == recorded[1:]
    assert await read_all(trace, after=2) == []


async def test_the_writer_alone_assigns_seq_ts_and_prev(trace: TraceWriter) -> None:
    draft = NoticeEvent(message="a", seq=77, ts="yesterday", prev="sha256:none")
    (event,) = await trace.append(STREAM, [draft])
    assert (event.seq, event.ts, event.prev) == (0, "2026-11-15T18:20:45.000001Z", None)
    assert draft.seq == 77


async def test_a_clock_that_jumps_back_does_not_change_the_order(trace: TraceWriter, clock: Any) -> None:
    await trace.append(STREAM, [note("first")])
    clock.time -= timedelta(days=365)
    await trace.append(STREAM, [note("second")])
    events = await read_all(trace)
    assert [event.message for event in events if isinstance(event, NoticeEvent)] == ["first", "second"]
    assert events[1].ts < events[0].ts


async def test_batches_of_many_callers_stay_whole_and_in_order(trace: TraceWriter) -> None:
    async def write(caller: int) -> None:
        for number in range(5):
            await trace.append(STREAM, [note(f"{caller} {number} {part}") for part in "abc"])

    await asyncio.gather(*(write(caller) for caller in range(8)))
    texts = [event.message for event in await read_all(trace) if isinstance(event, NoticeEvent)]
    assert len(texts) == 8 * 5 * 3
    for start in range(0, len(texts), 3):
        assert [text.split()[:2] for text in texts[start : start + 3]] == [texts[start].split()[:2]] * 3
    for caller in range(8):
        mine = [text for text in texts if text.startswith(f"{caller} ")]
        assert mine == sorted(mine)


async def test_streams_do_not_know_of_each_other(trace: TraceWriter) -> None:
    await trace.append(STREAM, [note("a"), note("b")])
    (event,) = await trace.append("runs/01TEST", [note("c")])
    assert (event.seq, event.prev) == (0, None)
    assert len(await read_all(trace)) == 2


async def test_nothing_follows_agent_end(trace: TraceWriter) -> None:
    await trace.append(STREAM, [note("a"), AgentEndEvent()])
    head = await trace.head(STREAM)
    with pytest.raises(TraceSealed):
        await trace.append(STREAM, [note("late")])
    assert await trace.head(STREAM) == head
    assert len(await read_all(trace)) == 2


async def test_a_batch_that_goes_on_after_agent_end_is_refused_whole(trace: TraceWriter) -> None:
    await trace.append(STREAM, [note("a")])
    with pytest.raises(TraceSealed):
        await trace.append(STREAM, [AgentEndEvent(), note("late")])
    assert len(await read_all(trace)) == 1


@pytest.mark.parametrize(
    "value", [{1: "int key"}, 2**70, "\ud800", object()], ids=["key", "int", "surrogate", "object"]
)
async def test_a_value_that_json_cannot_hold_is_refused_before_anything_is_written(
    trace: TraceWriter, value: Any
) -> None:
    await trace.append(STREAM, [note("a")])
    with pytest.raises(TraceError):
        await trace.append(STREAM, [note("b"), NoticeEvent(message="bad", value=value)])
    (event,) = await trace.append(STREAM, [note("c")])
    assert event.seq == 1


async def test_a_line_over_the_limit_is_refused_and_the_stream_goes_on(trace: TraceWriter) -> None:
    with pytest.raises(TraceError, match="bytes"):
        await trace.append(STREAM, [note("x" * MAX_LINE)])
    (event,) = await trace.append(STREAM, [note("x" * (MAX_LINE - 1000))])
    assert event.seq == 0


async def test_appending_nothing_makes_no_stream(trace: TraceWriter) -> None:
    assert await trace.append(STREAM, []) == ()
    with pytest.raises(TraceNotFound):
        await read_all(trace)


async def test_a_missing_stream_is_named(trace: TraceWriter) -> None:
    with pytest.raises(TraceNotFound, match="01TEST"):
        await read_all(trace)
    with pytest.raises(TraceNotFound, match="01TEST"):
        await trace.head(STREAM)


async def test_a_closed_stream_can_be_opened_again(trace: TraceWriter) -> None:
    await trace.append(STREAM, [note("a")])
    await trace.close(STREAM)
    (event,) = await trace.append(STREAM, [note("b")])
    assert event.seq == 1
    assert len(await read_all(trace)) == 2


async def test_an_event_of_a_type_nobody_knows_is_kept(trace: TraceWriter) -> None:
    await trace.append(STREAM, [UnknownEvent(type="from_tomorrow", data={"a": [1, {"b": None}]})])
    (event,) = await read_all(trace)
    assert isinstance(event, UnknownEvent)
    assert (event.type, event.data) == ("from_tomorrow", {"a": [1, {"b": None}]})


@pytest.mark.parametrize("stream_id", HOSTILE_IDS)
async def test_no_other_name_becomes_a_stream(trace: TraceWriter, stream_id: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError):
        await trace.append(stream_id, [note("a")])
    with pytest.raises(TraceError):
        await read_all(trace, stream_id)
    with pytest.raises(TraceError):
        await trace.head(stream_id)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"a", bytes(range(256)), b"\xff\xfe" * 4000, b"abc" * 100_000],
    ids=["empty", "one", "every byte", "large", "larger"],
)
async def test_a_blob_comes_back_as_it_was(blobs: BlobStore, data: bytes) -> None:
    name = await blobs.put(data)
    assert name == digest(data)
    assert await blobs.get(name) == data
    assert await blobs.put(data) == name


async def test_a_blob_that_is_not_there_is_an_error(blobs: BlobStore) -> None:
    with pytest.raises(TraceError, match="gone"):
        await blobs.get(digest(b"never put"))


@pytest.mark.parametrize("name", HOSTILE_DIGESTS)
async def test_only_a_digest_names_a_blob(blobs: BlobStore, name: str) -> None:
    with pytest.raises(TraceError):
        await blobs.get(name)
