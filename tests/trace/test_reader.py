"""Reading and verifying streams: what is intact comes out, the first damage is named."""

from __future__ import annotations

import json
import tracemalloc
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flips import flip_bits
from remora.errors import TraceDamaged, TraceError, TraceNotFound
from remora.events import AgentStartEvent, NoticeEvent, ToolResultEvent, UnknownEvent, digest
from remora.trace import FileTrace, Position, read_events, read_lines, read_records, verify
from remora.trace.files import lines as line_files
from remora.trace.files import reader
from remora.trace.verification import stream as verifying

MakeStream = Callable[..., Awaitable[Path]]


def chained(*records: dict[str, object] | bytes) -> bytes:
    """A stream file of these records, each with its right `seq` and `prev`; bytes stand for themselves."""
    lines: list[bytes] = []
    for seq, record in enumerate(records):
        prev = digest(lines[-1]) if lines else None
        if isinstance(record, dict):
            full = {"v": 1, "seq": seq, "ts": "", "type": "notice", "turn": 0, "data": {}} | record | {"prev": prev}
            lines.append(json.dumps(full, ensure_ascii=False, separators=(",", ":")).encode())
        else:
            lines.append(record.replace(b"PREV", (prev or "").encode()))
    return b"\n".join(lines) + b"\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stream.jsonl"


def test_a_missing_stream_is_said_so(file: Path) -> None:
    for read in (lambda: list(read_events(file)), lambda: list(read_lines(file)), lambda: verify(file)):
        with pytest.raises(TraceNotFound, match="There is no stream at"):
            read()


def test_a_folder_is_no_stream(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        verify(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n\0\0", b"hello\nworld\n", b'{"a":1}\n', b"[1]\n", b"1\n", b"\n", b'"seq"\n', b"\xff\xfe{\0"],
)
def test_a_foreign_file_is_called_one(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(TraceDamaged, match="not a Remora stream") as error:
        list(read_events(file))
    assert error.value.line == 1
    assert verify(file).status == "damaged"


def test_a_newer_format_is_named_with_what_to_do(file: Path) -> None:
    file.write_bytes(chained({"v": 3, "type": "agent_start"}, {}))
    with pytest.raises(TraceDamaged, match="format 3") as error:
        list(read_events(file))
    assert "Update" in str(error.value.hint)


async def test_events_after_a_seq_are_the_rest(make_stream: MakeStream) -> None:
    path = await make_stream(5)
    assert [event.seq for event in read_events(path)] == [0, 1, 2, 3, 4]
    assert [event.seq for event in read_events(path, after=2)] == [3, 4]


async def test_a_reader_can_go_on_from_a_known_place(make_stream: MakeStream) -> None:
    path = await make_stream(5)
    records = list(read_records(path))
    third = records[2]
    start = Position(third.line, third.offset + len(third.raw) + 1, third.digest)
    assert list(read_records(path, start=start)) == records[3:]
    with pytest.raises(TraceDamaged):
        list(read_records(path, start=start._replace(prev=records[0].digest)))


async def test_a_cut_last_line_is_damage_unless_someone_may_still_write(make_stream: MakeStream) -> None:
    path = await make_stream(3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TraceDamaged, match="cut") as error:
        list(read_events(path))
    assert (error.value.line, error.value.seq) == (3, 2)
    assert [event.seq for event in read_events(path, torn_ok=True)] == [0, 1]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"v":1,"seq":1,"type":"notice","data":{"a":' + b"[" * 100_000, "not JSON"),
        (b'{"v":1,"seq":1,"type":"notice","data":{"a":' + b"[" * 900 + b"]" * 900 + b'},"prev":"PREV"}', None),
        (b'{"v":1,"seq":1,"type":"notice","data":{"a":' + b"9" * 5000 + b'},"prev":"PREV"}', "not JSON"),
        (b'{"v":1,"seq":1,"type":"notice","data":{"a":18446744073709551616},"prev":"PREV"}', "64 bits"),
        (b'{"v":1,"seq":1,"type":"notice","data":{"a":NaN},"prev":"PREV"}', "not JSON"),
        (b'{"v":1,"seq":1,"type":"notice","data":{"a":1,"a":2},"prev":"PREV"}', "same key twice"),
        (b'{"v":1,"seq":1,"seq":1,"type":"notice","data":{},"prev":"PREV"}', "same key twice"),
        (b'{"v":1,"seq":1,"type":"notice","data":{"a":"\xed\xa0\x80"},"prev":"PREV"}', "not JSON"),
        (b'{"v":1,"seq":1.0,"type":"notice","data":{},"prev":"PREV"}', "not a Remora record"),
        (b'{"v":1,"seq":true,"type":"notice","data":{},"prev":"PREV"}', "not a Remora record"),
        (b'{"v":1,"seq":1,"type":["notice"],"data":{},"prev":"PREV"}', "not a Remora record"),
        (b'{"v":null,"seq":1,"type":"notice","data":{},"prev":"PREV"}', "not a Remora record"),
        (b'{"v":1,"seq":2,"type":"notice","data":{},"prev":"PREV"}', "expected 1"),
        (b'{"v":1,"seq":0,"type":"notice","data":{},"prev":"PREV"}', "expected 1"),
        (b'{"v":1,"seq":1,"type":"notice","data":{}}', "prev"),
        (b'{ "type" : "notice", "v" : 1, "prev" : "PREV", "seq" : 1 }', None),
    ],
)
def test_a_strange_line_is_a_typed_error_or_is_read(file: Path, line: bytes, problem: str | None) -> None:
    file.write_bytes(chained({}, line, {}))
    events = read_events(file)
    if problem is None:
        assert [event.seq for event in events] == [0, 1, 2]
        return
    with pytest.raises(TraceDamaged, match=problem):
        list(events)


def test_an_unknown_type_and_a_newer_record_in_the_middle_are_kept_verbatim(file: Path) -> None:
    data = {"x": [1, {"y": None}], "delta": {"v": 9, "future": True}}
    file.write_bytes(chained({"type": "agent_start"}, {"type": "from_tomorrow", "data": data}, {"v": 7, "data": data}))
    start, strange, newer = read_events(file)
    assert isinstance(start, AgentStartEvent)
    assert isinstance(strange, UnknownEvent)
    assert isinstance(newer, UnknownEvent)
    assert (strange.type, strange.data) == ("from_tomorrow", data)
    assert (newer.v, newer.data) == (7, data)
    assert "not known" in strange.problem


def test_a_line_without_end_does_not_fill_the_memory(file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(200 * 1024 * 1024)
    tracemalloc.start()
    with pytest.raises(TraceDamaged):
        list(read_events(file))
    assert verify(file).status == "damaged"
    assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
    tracemalloc.stop()


async def test_memory_does_not_grow_with_the_stream(make_stream: MakeStream) -> None:
    def peak(path: Path) -> int:
        tracemalloc.start()
        deque(read_events(path), maxlen=1)
        verify(path)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    short, long = await make_stream(20), await make_stream(2000, stream_id="traces/LONG")
    peak(short)
    assert peak(long) < 2 * peak(short)


async def test_verify_tells_sealed_from_unsealed(make_stream: MakeStream) -> None:
    open_one = verify(await make_stream(3))
    sealed = verify(await make_stream(3, sealed=True, stream_id="traces/SEALED"))
    assert (open_one.status, open_one.sealed, open_one.events) == ("unsealed", False, 3)
    assert (sealed.status, sealed.sealed, sealed.problem) == ("sealed", True, None)
    content = sealed.file.read_bytes()
    assert (sealed.bytes, sealed.head) == (len(content), digest(content.splitlines()[-1]))


async def test_text_that_looks_like_an_end_does_not_seal(state_dir: Path, clock: Any) -> None:
    strange = [NoticeEvent(message='","type":"agent_end","'), NoticeEvent(type_={"type": "agent_end"}), NoticeEvent()]
    async with FileTrace(state_dir, clock=clock) as trace:
        await trace.append("traces/A", strange)
    report = verify(trace.path("traces/A"))
    assert (report.status, report.events) == ("unsealed", 3)


def test_a_line_in_another_form_is_verified_as_well(file: Path) -> None:
    file.write_bytes(chained({}, b'{ "type" : "notice", "v" : 1, "prev" : "PREV", "seq" : 1 }', {}))
    assert (verify(file).status, verify(file).events) == ("unsealed", 3)


async def test_a_record_after_agent_end_is_damage(make_stream: MakeStream) -> None:
    path = await make_stream(3, sealed=True)
    head = verify(path).head
    with path.open("ab") as out:
        out.write(b'{"v":1,"seq":3,"ts":"","type":"notice","data":{},"prev":"%s"}\n' % head.encode())
    report = verify(path)
    assert (report.status, report.seq) == ("damaged", 3)
    assert "agent_end" in str(report.problem)


@pytest.mark.parametrize("dropped", [1, 2, 3, 4])
async def test_dropped_records_are_seen_by_the_head_and_never_called_sealed(
    make_stream: MakeStream, dropped: int
) -> None:
    path = await make_stream(6, sealed=True)
    head = verify(path).head
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-dropped]))
    assert verify(path).status == "unsealed"
    assert verify(path, head=head).status == "damaged"


async def test_swapped_records_are_detected_wherever_they_are(make_stream: MakeStream) -> None:
    path = await make_stream(6, sealed=True)
    lines = path.read_bytes().splitlines(keepends=True)
    for first in range(len(lines)):
        for second in range(first + 1, len(lines)):
            swapped = list(lines)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            path.write_bytes(b"".join(swapped))
            report = verify(path)
            assert (report.status, report.seq) == ("damaged", first)


async def test_a_tail_of_another_run_is_detected_wherever_it_begins(make_stream: MakeStream) -> None:
    path = await make_stream(6, sealed=True, goal="one")
    other = await make_stream(6, sealed=True, stream_id="traces/OTHER", goal="another")
    lines, strangers = (each.read_bytes().splitlines(keepends=True) for each in (path, other))
    head = verify(path).head
    for start in range(1, 6):
        path.write_bytes(b"".join(lines[:start] + strangers[start:]))
        report = verify(path)
        assert report.status == "damaged"
        assert report.seq in (start - 1, start)
    path.write_bytes(b"".join(strangers))
    assert verify(path).status == "sealed"
    assert verify(path, head=head).status == "damaged"


async def test_a_record_in_the_middle_that_was_rewritten_is_named(make_stream: MakeStream) -> None:
    path = await make_stream(6, sealed=True)
    path.write_bytes(path.read_bytes().replace(b'"raw":"result 1"', b'"raw":"result 9"'))
    report = verify(path)
    assert (report.status, report.events, report.line, report.seq) == ("damaged", 2, 3, 2)
    seen = []
    with pytest.raises(TraceDamaged) as error:
        for event in read_events(path):
            seen.append(event)
    assert [event.seq for event in seen] == [0, 1]
    assert isinstance(seen[1], ToolResultEvent)
    assert (error.value.line, error.value.seq) == (3, 2)


StrangeStream = Callable[[int], Awaitable[Path]]

# One bit that changes a letter's case among them: an escape or an exponent then means the same, in other bytes.
SOME_BITS = (0, 5)


async def test_every_flipped_bit_is_detected_and_the_first_bad_seq_named(
    strange_stream: StrangeStream, record_property: Callable[[str, object], None]
) -> None:
    flips = flip_bits(await strange_stream(4), SOME_BITS, reading=True)
    record_property("row 6", f"{flips.tried} flips: {flips.missed} missed, {flips.misnamed} misnamed")
    assert (flips.missed, flips.misnamed, flips.read_on) == (0, 0, 0)


class Unskimmed(verifying.Skim):
    """Leaves all lines to the reader."""

    def __iter__(self) -> Iterator[list[bytes]]:
        return iter(())


def hash_what_was_parsed(patch: pytest.MonkeyPatch) -> None:
    """The seeded mistake: the chain is over the meaning of a line, not over its bytes."""

    def of_meaning(raw: bytes) -> str:
        try:
            return digest(json.dumps(json.loads(raw), sort_keys=True).encode())
        except ValueError:
            return digest(raw)

    for module in (line_files, reader):
        patch.setattr(module, "digest", of_meaning)
    patch.setattr(verifying, "Skim", Unskimmed)


def skip_the_chain(patch: pytest.MonkeyPatch) -> None:
    """The seeded mistake: numbers are checked, and `prev` is not."""
    patch.setattr(reader, "_blame", lambda *_, **__: None)
    patch.setattr(verifying, "Skim", Unskimmed)


def skim_without_looking(patch: pytest.MonkeyPatch) -> None:
    """The seeded mistake: the quick way over a stream believes the lines it passes."""

    class Believing(Unskimmed):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            lines = path.read_bytes().splitlines(keepends=True)[:-1]
            self.here = Position(len(lines), len(b"".join(lines)), digest(lines[-1][:-1]))

    patch.setattr(verifying, "Skim", Believing)


@pytest.mark.parametrize("mistake", [hash_what_was_parsed, skip_the_chain, skim_without_looking])
async def test_a_reader_with_a_mistake_misses_flipped_bits(
    strange_stream: StrangeStream, monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pytest.MonkeyPatch], None]
) -> None:
    mistake(monkeypatch)
    path = await strange_stream(4)
    assert verify(path).status == "sealed"
    assert flip_bits(path, SOME_BITS).missed
