from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remora.errors import ConfigError, TraceLocked
from remora.events import (
    ActionDelta,
    AgentEndEvent,
    AgentErrorEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    BlobRef,
    ErrorDelta,
    Event,
    FileChange,
    NoticeEvent,
    PacketDelta,
    RunStartEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    UnknownEvent,
    decode,
    digest,
    encode,
    new_id,
    next_id,
)
from remora.trace import FileBlobs, Filter, MemoryTrace, TraceIndex, TraceKey, read_events
from remora.trace.index.database import SCHEMA, IndexFile
from strategies import events, texts

MakeStream = Callable[..., Awaitable[Path]]
EVERYTHING = Filter()
WHO = {"run_id": "01RUN", "operation": "lint", "node_id": "src/a.py:load"}


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 11, 15, 18, 20, 45, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


async def write(state_dir: Path, stream_id: str, drafts: list[Event]) -> Path:
    """The stream as a file, fast: made in memory, written at once."""
    trace = MemoryTrace(Clock())
    await trace.append(stream_id, drafts)
    path = state_dir / f"{stream_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in trace.lines(stream_id)))
    return path


def everything(state_dir: Path) -> dict[str, Any]:
    """What the index file holds, without the numbers that depend on the order of indexing."""
    with closing(sqlite3.connect(f"file:{state_dir / 'index.db'}?mode=ro", uri=True)) as db:
        query = (
            "SELECT s.stream_id, e.id & 4294967295 AS seq, e.turn, e.offset, e.length, e.ts, e.type, e.tool, "
            "e.outcome, o.run_id, o.agent_id, o.operation, o.node_id, t.body FROM events e "
            "JOIN owners o ON o.id = e.owner JOIN streams s ON s.id = e.id >> 32 LEFT JOIN texts t ON t.rowid = e.id "
            "ORDER BY 1, 2"
        )
        streams = db.execute("SELECT * FROM streams ORDER BY stream_id").fetchall()
        counts = [db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("events", "texts")]  # noqa: S608
        return {"events": db.execute(query).fetchall(), "streams": [row[1:] for row in streams], "counts": counts}


def fresh(state_dir: Path) -> dict[str, Any]:
    with TraceIndex(state_dir) as index:
        index.rebuild()
    return everything(state_dir)


def shown(index: TraceIndex, wanted: Filter = EVERYTHING) -> list[tuple[str, int]]:
    return [(found.stream_id, found.event.seq) for found in index.find_events(wanted)]


@contextmanager
def somebody_is_indexing(state_dir: Path) -> Iterator[None]:
    with (state_dir / "index.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def index(state_dir: Path) -> Iterator[TraceIndex]:
    with TraceIndex(state_dir) as made:
        yield made


async def test_every_event_of_every_stream_is_found(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    paths = [await make_stream(5, stream_id=f"traces/{name}") for name in "AB"]
    found = index.find_events()
    assert [each.event for each in found] == [event for path in paths for event in read_events(path)]
    assert [each.stream_id for each in found] == ["traces/A"] * 5 + ["traces/B"] * 5


async def test_only_what_is_new_is_read(state_dir: Path, index: TraceIndex, make_stream: MakeStream) -> None:
    await make_stream(5, stream_id="traces/A")
    path = await make_stream(5, stream_id="traces/B")
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    first = index.catch_up()
    with path.open("ab") as file:
        file.write(b"".join(whole.splitlines(keepends=True)[3:]))
    second, third = index.catch_up(), index.catch_up()
    assert [(done.streams, done.events) for done in (first, second, third)] == [(2, 8), (1, 2), (0, 0)]
    assert first.notices == second.notices == ()
    assert everything(state_dir) == fresh(state_dir)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(events, min_size=1, max_size=4), min_size=1, max_size=4), st.data())
async def test_indexing_in_parts_equals_indexing_at_once(batches: list[list[Event]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder)
        whole = (await write(state_dir, "traces/A", [each for batch in batches for each in batch])).read_bytes()
        cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=4).map(sorted))
        path = state_dir / "traces" / "A.jsonl"
        path.unlink()
        with TraceIndex(state_dir) as index:
            for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
                with path.open("ab") as file:
                    file.write(whole[start:end])
                index.catch_up()
        assert everything(state_dir) == fresh(state_dir)


async def test_a_line_that_is_still_being_written_is_not_shown(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    path = await make_stream(3)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert len(index.find_events()) == 2
    path.write_bytes(whole)
    assert len(index.find_events()) == 3


def cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))


def replace_by_another(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes().replace(b"result", b"answer"))
    other.replace(path)


def change_the_first_line(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"goal":"g"', b'"goal":"h"'))


def change_the_last_line_and_go_on(path: Path) -> None:
    data = path.read_bytes().replace(b"result 3", b"result 9")
    path.write_bytes(data + data.splitlines(keepends=True)[-1])


def append_a_record_that_fits(path: Path) -> None:
    """Also after a seal, which ends a stream."""
    last = path.read_bytes().splitlines()[-1]
    draft = NoticeEvent(message="result of nothing", seq=decode(last).seq + 1, prev=digest(last), ts="2027")
    path.write_bytes(path.read_bytes() + encode(draft) + b"\n")


def write_nonsense_at_the_end(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"nonsense\n")


def empty(path: Path) -> None:
    path.write_bytes(b"")


CHANGES = [
    cut,
    replace_by_another,
    change_the_first_line,
    change_the_last_line_and_go_on,
    append_a_record_that_fits,
    write_nonsense_at_the_end,
    empty,
    Path.unlink,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("sealed", [False, True])
async def test_a_stream_that_is_not_the_indexed_one_is_indexed_as_it_is_now(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream, change: Callable[[Path], None], sealed: bool
) -> None:
    await make_stream(4, stream_id="traces/A")
    path = await make_stream(5, sealed=sealed, stream_id="traces/B")
    index.catch_up()
    change(path)
    index.catch_up()
    assert everything(state_dir) == fresh(state_dir)


@pytest.mark.parametrize("change", CHANGES)
async def test_while_another_process_indexes_answers_are_as_complete(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream, change: Callable[[Path], None]
) -> None:
    await make_stream(4, stream_id="traces/A")
    path = await make_stream(5, stream_id="traces/B")
    index.catch_up()
    change(path)
    await make_stream(3, stream_id="traces/C", goal="something new")
    with somebody_is_indexing(state_dir):
        assert not index.catch_up().complete
        late = shown(index), index.find_streams_by(), index.search("result"), index.search("new"), index.turns()
    assert index.catch_up().complete
    assert late == (shown(index), index.find_streams_by(), index.search("result"), index.search("new"), index.turns())
    assert late[0]


async def test_streams_and_hits_come_as_they_were_recorded_and_other_names_by_their_time(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream, clock: Any
) -> None:
    first = new_id(clock.now())
    second = next_id(clock.now() - timedelta(days=365), first)
    names = [first, "zebra", second, "7" + "Z" * 25]
    for name in names:
        await make_stream(3, stream_id=f"traces/{name}")
        clock.time += timedelta(seconds=1) if name != first else -timedelta(days=365)
    expected = [f"traces/{name}" for name in (names[1], names[3], first, second)]
    for _ in range(2):
        assert [stream.stream_id for stream in index.find_streams_by()] == expected
        hits = [(hit.stream_id, hit.event.seq) for hit in index.search("result")]
        assert hits == [(name, seq) for name in expected[::-1] for seq in (2, 1)]
        index.rebuild()


@pytest.mark.parametrize(
    "wanted", [Filter(), Filter(tool="read_file"), Filter(run="01RUN"), Filter(outcome="success")], ids=str
)
async def test_the_newest_streams_are_the_last_of_all_also_while_another_process_indexes(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream, wanted: Filter
) -> None:
    for name in ("traces/A", "runs/B", "traces/C", "traces/D"):
        await make_stream(3, sealed=name != "traces/D", stream_id=name)
    index.catch_up()
    await make_stream(4, stream_id="traces/E")
    (state_dir / "traces" / "A.jsonl").unlink()
    with somebody_is_indexing(state_dir):
        beside = [index.newest_streams(wanted, limit=limit) for limit in (1, 2, 9)]
    every = [stream for stream in index.find_streams_by(wanted) if stream.kind == "traces"]
    assert beside == [(every[-limit:], len(every)) for limit in (1, 2, 9)]
    assert beside == [index.newest_streams(wanted, limit=limit) for limit in (1, 2, 9)]
    assert index.newest_streams(wanted, kind="runs", limit=9)[1] == (wanted != Filter(run="01RUN"))


async def test_streams_that_change_files_are_counted_so_that_others_need_not_be_read(
    state_dir: Path, index: TraceIndex
) -> None:
    change = FileChange(path="a.py", before=None, after="sha256:00")
    result = ToolResultEvent(call_id="c", tool="t", outcome="success", files=(change,))
    bare = ToolResultEvent(call_id="c", tool="t", outcome="success", raw={"files": ["a.py"]})
    await write(state_dir, "traces/A", [AgentStartEvent(format=1), result, bare, result])
    await write(state_dir, "traces/B", [AgentStartEvent(format=1), bare])
    assert [stream.changes for stream in index.find_streams_by()] == [2, 0]


async def test_an_index_that_another_made_anew_meanwhile_hides_nothing(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ABC":
        await make_stream(3, stream_id=f"traces/{name}")
    expected = shown(index)
    caught_up = index._updater.catch_up

    def then_another(*args: Any) -> Any:
        done = caught_up(*args)
        with closing(sqlite3.connect(state_dir / "index.db")) as db:
            db.execute("DELETE FROM events WHERE id >> 32 = 2")
            db.execute("DELETE FROM streams WHERE id = 2")
            db.commit()
        return done

    monkeypatch.setattr(index._updater, "catch_up", then_another)
    assert shown(index) == expected
    assert len(index.find_streams_by()) == 3


async def test_a_growing_stream_is_found_in_both_its_parts(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    path = await make_stream(6, sealed=True)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:3]))
    index.catch_up()
    with somebody_is_indexing(state_dir):
        with path.open("ab") as file:
            file.write(b"".join(whole[3:]))
        assert len(index.find_events()) == 6
        assert len(index.search("result")) == 4
        assert [(stream.events, stream.sealed) for stream in index.find_streams_by(Filter(tool="read_file"))] == [
            (6, True)
        ]


async def test_a_rebuild_is_refused_while_another_process_indexes(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    await make_stream()
    with somebody_is_indexing(state_dir), pytest.raises(TraceLocked):
        index.rebuild()


async def test_an_index_that_claims_an_event_too_many_does_not_show_it(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    await make_stream(4)
    index.catch_up()
    file = IndexFile(state_dir)
    with file.lock(), file.writing(text=True) as db:  # as a mistake of ours would leave it: well stamped
        db.execute(
            "INSERT INTO events SELECT id + 100, owner, turn, offset, length, ts, type, 'rm', outcome FROM events"
        )
        db.execute("UPDATE events SET tool = 'rm' WHERE id & 4294967295 = 2")
    assert shown(index, Filter(tool="rm")) == []
    assert shown(index) == [("traces/01TEST", seq) for seq in range(4)]
    assert everything(state_dir) == fresh(state_dir)
    assert any("read again" in notice for notice in index.notices)


async def test_a_stream_changed_behind_our_back_is_shown_as_it_is(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    path = await make_stream(4)
    index.catch_up()
    before = path.stat()
    with path.open("r+b") as file:  # same file, size and time
        data = file.read()
        file.seek(0)
        file.write(data.replace(b"result 1", b"secret 1"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert index.search("result 1") == []
    assert all("result 1" not in str(found.event) for found in index.find_events())


async def test_filters_narrow_by_each_of_their_fields(state_dir: Path, index: TraceIndex) -> None:
    start = AgentStartEvent(format=1, **WHO)
    call = ToolCallEvent(call_id="1", tool="run", turn=1, **WHO)
    good = ToolResultEvent(call_id="1", tool="run", outcome="success", turn=1, **WHO)
    bad = ToolResultEvent(call_id="2", tool="fix", outcome="error", turn=2, **WHO)
    await write(state_dir, "traces/A", [start, call, good, bad, AgentEndEvent(outcome="error", turn=2, **WHO)])
    await write(state_dir, "traces/B", [AgentStartEvent(run_id="other", operation="test", node_id="n")])
    scheduled = AgentScheduledEvent(agent_id="A", **WHO)
    await write(state_dir, "runs/01RUN", [RunStartEvent(run_id="01RUN"), scheduled])

    def seqs(**wanted: Any) -> list[int]:
        return [seq for stream, seq in shown(index, Filter(**wanted)) if stream == "traces/A"]

    assert seqs(tool="run") == [1, 2]
    assert seqs(outcome="error") == [3, 4]
    assert seqs(type="tool_result", outcome="success") == [2]
    assert seqs(turn=1) == [1, 2]
    assert seqs(run="01RUN", operation="lint", node="src/a.py:load") == [0, 1, 2, 3, 4]
    assert seqs(run="other") == seqs(operation="test") == seqs(node="n") == []
    assert ("runs/01RUN", 1) in shown(index, Filter(node="src/a.py:load"))
    streams = [stream.stream_id for stream in index.find_streams_by(Filter(run="01RUN"))]
    assert streams == ["runs/01RUN", "traces/A"]
    assert [each.stream_id for each in index.find_streams_by(Filter(outcome="error"))] == ["traces/A"]
    assert [each.stream_id for each in index.find_streams_by(Filter(tool="fix"))] == ["traces/A"]


async def test_times_are_moments_whatever_zone_they_are_written_in(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    await make_stream(4)
    moments = [found.event.ts for found in index.find_events()]
    late = [each.event.ts for each in index.find_events(Filter(since=moments[2]))]
    assert late == moments[2:]
    assert [each.event.ts for each in index.find_events(Filter(until=moments[2]))] == moments[:2]
    assert len(index.find_events(Filter(since="2026-11-15T19:20:45+01:00"))) == 4
    assert len(index.find_events(Filter(since=datetime(2026, 11, 15), until="2026-11-16"))) == 4
    assert index.find_events(Filter(since="2026-11-16")) == []


@pytest.mark.parametrize("wanted", [{"since": "yesterday"}, {"until": "2026-13-01"}, {"turn": -1}, {"turn": 2**70}])
def test_a_filter_that_makes_no_sense_is_a_config_error(index: TraceIndex, wanted: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        index.find_events(Filter(**wanted))


HOSTILE = [
    "' OR 1=1 --", "'; DROP TABLE events; --", '" OR "a"="a', "%", "_", "*", "\0", "\ud800", "a\nb", "NULL",
    "x' UNION SELECT 1",
]  # fmt: skip


@pytest.mark.parametrize("name", ["run", "node", "operation", "tool", "outcome", "type"])
async def test_no_filter_can_say_more_than_its_value(index: TraceIndex, make_stream: MakeStream, name: str) -> None:
    await make_stream(3)
    for text in HOSTILE:
        assert index.find_events(Filter(**{name: text})) == []
        assert index.find_streams_by(Filter(**{name: text})) == []
        assert index.search("result", Filter(**{name: text})) == []
    assert len(index.find_events()) == 3


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=5))
async def test_any_text_is_found_by_a_filter_of_that_text_alone(names: list[tuple[str, str, str]]) -> None:
    drafts: list[Event] = [
        ToolResultEvent(call_id="c", tool=tool, outcome="success", operation=operation, node_id=node)
        for tool, operation, node in names
    ]
    with tempfile.TemporaryDirectory() as folder, TraceIndex(Path(folder)) as index:
        await write(Path(folder), "traces/A", drafts)
        for place, name in enumerate(("tool", "operation", "node")):
            for value in {each[place] for each in names}:
                wanted = [seq for seq, each in enumerate(names) if each[place] == value]
                assert [found.event.seq for found in index.find_events(Filter(**{name: value}))] == wanted


@pytest.mark.parametrize("text", ["", "   ", '"', "***", "\0", "\ud800", "( )", "-"])
def test_a_search_without_a_word_is_a_config_error(index: TraceIndex, text: str) -> None:
    with pytest.raises(ConfigError, match="Nothing to search for"):
        index.search(text)


@pytest.mark.parametrize(
    "text",
    ['"', "result OR nothing", "result NOT done", "body:result", "result*", "NEAR(result 1)", "^result",
     "{body}:result", "-result", "result + 1", "rowid:1", "(result", 'result"', "AND", "result AND", "a" * 5000],
)  # fmt: skip
async def test_no_search_syntax_has_a_meaning(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream, text: str
) -> None:
    await make_stream(4)
    words = {word for word in text.replace('"', " ").split() if any(letter.isalnum() for letter in word)}
    if not words:
        return
    found = {hit.event.seq for hit in index.search(text)}
    plain = {"result", "1", "0", "2", "done"}
    parts = {part for word in words for part in "".join(c if c.isalnum() else " " for c in word).lower().split()}
    assert bool(found) == (parts <= plain and len(parts & {"0", "1", "2"}) < 2 and "done" not in parts)


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=30))
def test_no_text_breaks_a_search(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder, TraceIndex(Path(folder)) as index:
        try:
            assert index.search(text) == []
        except ConfigError:
            assert not any(letter.isalnum() for letter in text)


async def test_words_are_found_where_people_wrote_them(state_dir: Path, index: TraceIndex) -> None:
    reference = BlobRef(blob=await FileBlobs(state_dir).put(b"nightingale " * 400), size=4800, encoding="utf-8")
    drafts: list[Event] = [
        AgentStartEvent(format=1, goal="find the albatross", **WHO),
        ToolResultEvent(call_id="1", tool="t", outcome="success", raw={"list": ["bullfinch"]}, turn=1, **WHO),
        ToolResultEvent(call_id="2", tool="t", outcome="success", raw="x " * 2000 + "cormorant", turn=1, **WHO),
        ToolResultEvent(call_id="3", tool="t", outcome="success", raw="x " * 4000 + "dunnock", turn=1, **WHO),
        ToolResultEvent(
            call_id="4", tool="t", outcome="error", turn=2, **WHO,
            delta=PacketDelta(
                action=ActionDelta(tool="t", summary="egret", outcome="error"), error=ErrorDelta(set="finch")
            ),
        ),
        NoticeEvent(message="goshawk", turn=2, **WHO),
        AgentErrorEvent(message="heron", turn=2, **WHO),
        SubmitResultEvent(result={"summary": "ibis"}, turn=2, **WHO),
        ToolResultEvent(call_id="5", tool="t", outcome="success", raw_ref=reference, turn=3, **WHO),
    ]  # fmt: skip
    await write(state_dir, "traces/A", drafts)
    birds = [
        "albatross",
        "bullfinch",
        "cormorant",
        "dunnock",
        "egret",
        "finch",
        "goshawk",
        "heron",
        "ibis",
        "nightingale",
    ]
    found = {bird: [hit.event.seq for hit in index.search(bird)] for bird in birds}
    assert list(found.values()) == [[0], [1], [2], [], [4], [4], [5], [6], [7], [8]]
    hit = index.search("EGRET")[0]
    assert hit.key == "trace:01RUN:lint:src/a.py%3Aload:2"
    assert "egret" in hit.excerpt
    assert [hit.event.seq for hit in index.search("goshawk heron")] == []
    assert [each.event.seq for each in index.search("egret", Filter(outcome="error"))] == [4]
    assert index.search("egret", Filter(outcome="success")) == []


async def test_the_newest_hits_come_first_and_no_more_than_asked_for(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    await make_stream(6)
    assert [hit.event.seq for hit in index.search("result", limit=3)] == [5, 4, 3]
    assert len(index.find_events(limit=2)) == 2


async def test_an_excerpt_is_one_harmless_line(state_dir: Path, index: TraceIndex) -> None:
    raw = "a\x1b[31m\n" * 100 + "needle\u202e in\nhay" + "b" * 500
    await write(state_dir, "traces/A", [ToolResultEvent(call_id="1", tool="t", outcome="success", raw=raw)])
    excerpt = index.search("needle")[0].excerpt
    assert "needle" in excerpt
    assert excerpt.isprintable()
    assert len(excerpt) < 200


async def test_an_index_without_texts_finds_events_and_refuses_words(state_dir: Path, make_stream: MakeStream) -> None:
    await make_stream(3)
    with TraceIndex(state_dir, text=False) as index:
        assert len(index.find_events()) == 3
        with pytest.raises(ConfigError, match="without texts"):
            index.search("result")
    with TraceIndex(state_dir) as index:
        assert len(index.search("result")) == 2
        assert "has no texts" in index.notices[0]
    with TraceIndex(state_dir, text=False) as index:  # does not take the texts away from others
        await make_stream(3, stream_id="traces/B")
        assert len(index.find_events()) == 6
    with TraceIndex(state_dir) as index:
        assert len(index.search("result")) == 4
        assert index.notices == []


async def test_a_damaged_stream_is_indexed_up_to_its_damage(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    path = await make_stream(5)
    path.write_bytes(path.read_bytes().replace(b"result 2", b"result X"))
    assert shown(index) == [("traces/01TEST", seq) for seq in range(3)]
    assert "next line's `prev`" in index.find_streams_by()[0].problem


async def test_an_event_of_an_unknown_type_is_found_verbatim(state_dir: Path, index: TraceIndex) -> None:
    data = {"tool": "warp", "odd": [1, None]}
    await write(state_dir, "traces/A", [UnknownEvent(type="from_the_future", data=data)])
    found = index.find_events(Filter(type="from_the_future", tool="warp"))
    assert [each.event.body() for each in found] == [data]


async def test_foreign_types_in_an_envelope_break_nothing(state_dir: Path, index: TraceIndex) -> None:
    (state_dir / "traces").mkdir(parents=True)
    line = b'{"v":1,"seq":0,"ts":7,"type":"notice","run_id":[],"turn":18446744073709551615,"data":[1],"prev":null}\n'
    (state_dir / "traces" / "A.jsonl").write_bytes(line)
    assert index.find_events() == []
    assert [stream.events for stream in index.find_streams_by()] == [1]
    assert index.notices == []


async def test_turns_are_listed_once_and_their_events_found(state_dir: Path, index: TraceIndex) -> None:
    drafts: list[Event] = [AgentStartEvent(format=1, **WHO)]
    for turn in (1, 2, 3):
        drafts.append(ToolCallEvent(call_id=f"{turn}", tool="t", turn=turn, **WHO))
        drafts.append(ToolResultEvent(call_id=f"{turn}", tool="t", outcome="success", turn=turn, **WHO))
    await write(state_dir, "traces/A", drafts)
    keys = [TraceKey("01RUN", "lint", "src/a.py:load", turn) for turn in (1, 2, 3)]
    assert index.turns(Filter(run="01RUN")) == keys
    assert [found.event.seq for found in index.turn(keys[1])] == [3, 4]
    assert index.turn(keys[1]._replace(turn=9)) == []
    assert index.turn(keys[1]._replace(run_id="other")) == []


async def test_the_short_way_to_a_turn_sees_every_change(state_dir: Path, index: TraceIndex) -> None:
    key = TraceKey("01RUN", "lint", "src/a.py:load", 1)
    path = await write(state_dir, "traces/A", [ToolCallEvent(call_id="1", tool="t", turn=1, **WHO)])
    long_ago = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
    os.utime(path.parent, (long_ago, long_ago))
    assert len(index.turn(key)) == 1
    assert IndexFile(state_dir).is_settled()
    trace = MemoryTrace(Clock())
    await trace.append("traces/A", [ToolCallEvent(call_id=call, tool="t", turn=1, **WHO) for call in ("1", "2")])
    path.write_bytes(b"".join(line + b"\n" for line in trace.lines("traces/A")))
    assert len(index.turn(key)) == 2
    await write(state_dir, "traces/B", [ToolCallEvent(call_id="3", tool="t", turn=1, **WHO)])
    assert len(index.turn(key)) == 3
    assert not IndexFile(state_dir).is_settled()
    (state_dir / "traces" / "B.jsonl").unlink()
    assert len(index.turn(key)) == 2


async def test_a_folder_that_has_just_changed_is_not_called_settled(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    await make_stream()
    index.catch_up()
    assert not IndexFile(state_dir).is_settled()


def test_where_nothing_is_recorded_nothing_is_found_and_nothing_made(state_dir: Path, index: TraceIndex) -> None:
    assert index.find_events() == index.find_streams_by() == index.search("x") == index.turns() == []
    assert not state_dir.exists()


async def test_where_nothing_can_be_written_everything_is_found(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_stream(4)
    monkeypatch.setattr(IndexFile, "_try_lock", lambda self: None)
    assert len(index.find_events()) == 4
    assert len(index.search("result")) == 3
    assert not (state_dir / "index.db").exists()


async def test_names_that_are_no_stream_ids_are_left_alone(
    state_dir: Path, index: TraceIndex, make_stream: MakeStream
) -> None:
    path = await make_stream(2)
    for name in ("a b.jsonl", "..x.jsonl", "ü.jsonl", "01TEST.torn", f"{'x' * 100}.jsonl"):
        path.with_name(name).write_bytes(path.read_bytes())
    (path.parent / "folder.jsonl").mkdir()
    os.mkfifo(path.parent / "pipe.jsonl")
    assert len(index.find_events()) == 2


async def test_the_index_is_for_its_owner_only(state_dir: Path, index: TraceIndex, make_stream: MakeStream) -> None:
    await make_stream()
    index.find_events()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in state_dir.glob("index.*")}
    assert set(modes) >= {"index.db", "index.lock"}
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("name", ["index.db", "index.db-wal", "index.db-shm", "index.lock"])
async def test_a_planted_link_leads_no_write_elsewhere(
    state_dir: Path, tmp_path: Path, make_stream: MakeStream, name: str
) -> None:
    await make_stream(3)
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    (state_dir / name).symlink_to(target)
    with TraceIndex(state_dir) as index:
        assert len(index.find_events()) == 3
    assert target.read_bytes() == b"precious"


async def test_a_planted_link_to_another_index_leads_no_write_there(
    state_dir: Path, tmp_path: Path, make_stream: MakeStream
) -> None:
    await make_stream(3)
    with TraceIndex(state_dir) as index:
        index.catch_up()
    other = tmp_path / "other.db"
    (state_dir / "index.db").rename(other)
    before = other.read_bytes()
    (state_dir / "index.db").symlink_to(other)
    (state_dir / "index.lock").write_bytes(b'{"writing":true}')
    await make_stream(3, stream_id="traces/B")
    with TraceIndex(state_dir) as index:
        assert len(index.find_events()) == 6
    assert other.read_bytes() == before


async def test_the_schema_number_is_in_the_file(state_dir: Path, index: TraceIndex, make_stream: MakeStream) -> None:
    await make_stream()
    index.catch_up()
    with closing(sqlite3.connect(state_dir / "index.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_a_reader_goes_on_after_the_index_was_made_anew_under_it(
    state_dir: Path, make_stream: MakeStream
) -> None:
    await make_stream(3)
    with TraceIndex(state_dir) as reader, TraceIndex(state_dir) as writer:
        assert len(reader.find_events()) == 3
        writer.rebuild()
        await make_stream(3, stream_id="traces/B")
        writer.catch_up()
        assert len(reader.find_events()) == 6
        reader.close()
        assert len(writer.find_events()) == 6


async def test_progress_is_told_in_bytes(state_dir: Path, index: TraceIndex, make_stream: MakeStream) -> None:
    paths = [await make_stream(3, stream_id=f"traces/{name}") for name in "AB"]
    told: list[tuple[int, int]] = []
    index.catch_up(lambda done, total: told.append((done, total)))
    sizes = [path.stat().st_size for path in paths]
    assert told == [(sizes[0], sum(sizes)), (sum(sizes), sum(sizes))]


READER = """
import sys
from pathlib import Path
from remora.trace import Filter, TraceIndex

seen = 0
with TraceIndex(Path(sys.argv[1])) as index:
    while True:
        found = [each.event.seq for each in index.find_events(Filter(node="n"))]
        assert found == list(range(len(found))), found
        assert len(found) >= seen, (len(found), seen)
        words = {hit.event.seq for hit in index.search("result", limit=100000)}
        assert words <= set(range(1, 100000)) and len(words) >= seen - 2, (len(words), seen)
        seen = len(found)
        if any(stream.sealed for stream in index.find_streams_by()):
            break
    found = index.find_events(Filter(node="n"))
print(len(found), found[-1].event.type)
"""

WRITER = """
import asyncio, sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from remora.errors import TraceLocked
from remora.events import AgentEndEvent, AgentStartEvent, ToolResultEvent
from remora.trace import FileTrace, TraceIndex

class Clock:
    def now(self): return datetime.now(UTC)
    def monotonic(self): return 0.0

async def main():
    state_dir, count = Path(sys.argv[1]), int(sys.argv[2])
    async with FileTrace(state_dir, clock=Clock(), sync="off") as trace:
        await trace.append("traces/A", [AgentStartEvent(format=1, node_id="n")])
        with TraceIndex(state_dir) as index:
            for number in range(count):
                draft = ToolResultEvent(call_id="c", tool="t", outcome="success", raw=f"result {number}", node_id="n")
                await trace.append("traces/A", [draft])
                with suppress(TraceLocked):  # a reader may just be indexing
                    if number % 50 == 25:
                        index.rebuild() if number % 100 == 25 else index.catch_up()
        await trace.append("traces/A", [AgentEndEvent(node_id="n")])

asyncio.run(main())
"""


def test_two_processes_read_while_one_writes(state_dir: Path) -> None:
    state_dir.mkdir()
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, str(state_dir)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    subprocess.run([sys.executable, "-c", WRITER, str(state_dir), "600"], check=True, timeout=120)
    for reader in readers:
        out, _ = reader.communicate(timeout=120)
        assert (reader.returncode, out.split()) == (0, ["602", "agent_end"])
    assert everything(state_dir) == fresh(state_dir)


async def test_any_character_goes_through_the_index_and_back(state_dir: Path, index: TraceIndex) -> None:
    odd = "".join(map(chr, range(0x20))) + "\u2028\ufeff\x7f\x85\U0001f41f"
    draft = ToolResultEvent(call_id="c", tool=odd, outcome="success", raw=odd + " needle", node_id=odd)
    path = await write(state_dir, "traces/A", [draft])
    hits = index.search("needle", Filter(tool=odd, node=odd))
    assert [hit.event for hit in hits] == [decode(path.read_bytes()[:-1])]
    assert index.notices == []  # else the row had differed from what the line gives
