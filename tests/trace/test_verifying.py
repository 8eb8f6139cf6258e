"""`Library.verify`: every blob is read, and every stream is held against the heads noted outside of it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flips import closed_streams, flip_bits_of
from remora.errors import TraceError
from remora.events import AgentEndEvent, BlobRef, Event, FileChange, NoticeEvent, ToolResultEvent, digest
from remora.ports import Clock
from remora.trace import Disk, FileBlobs, FileTrace, Library, Retention, StreamReport
from remora.trace.files.heads import Note, _line, read_heads
from remora.trace.index.fill import read_at

STREAM = "traces/01TEST"


def report_of(state_dir: Path, path: Path) -> StreamReport:
    (found,) = [report for report in Library(state_dir).verify() if report.file == path]
    return found


async def stream_with_blobs(state_dir: Path, clock: Clock, count: int) -> list[Path]:
    """A closed stream that names `count` blobs of each kind; gives their files."""
    blobs = FileBlobs(state_dir)
    drafts, files = [], []
    for number in range(count):
        raw = b"the raw result %d, " % number * (1 if number % 2 else 2000)
        before, after = b"x = %d\n" % number, b"y = %d\n" % number * 500
        names = [await blobs.put(data) for data in (raw, before, after)]
        files += [blobs.path(name) for name in names]
        reference = BlobRef(blob=names[0], size=len(raw), encoding="utf-8")
        change = FileChange(path="a.py", before=names[1], after=names[2])
        drafts.append(ToolResultEvent(call_id="c", tool="t", outcome="success", raw_ref=reference, files=(change,)))
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        await trace.append(STREAM, drafts)
    return [file for file in files if file is not None]


async def test_every_altered_blob_is_found_and_named_with_its_stream_and_seq(
    state_dir: Path, clock: Clock, record_property: Callable[[str, object], None]
) -> None:
    files = await stream_with_blobs(state_dir, clock, 25)
    assert report_of(state_dir, state_dir / f"{STREAM}.jsonl").status == "unsealed"
    found = 0
    for number, file in enumerate(files):
        good = file.read_bytes()
        middle = len(good) // 2
        file.write_bytes(good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :])
        report = report_of(state_dir, state_dir / f"{STREAM}.jsonl")
        name = f"sha256:{file.parent.name}{file.name.split('.')[0]}"
        found += report.status == "damaged" and report.seq == number // 3 and name in (report.problem or "")
        file.write_bytes(good)
    record_property("row 6 (blobs)", f"{len(files)} altered blobs: {found} found")
    assert found == len(files) == 75


async def test_a_flipped_bit_in_any_kind_of_closed_stream_is_found_and_its_seq_named(
    state_dir: Path, clock: Clock, record_property: Callable[[str, object], None]
) -> None:
    for kind, path in (await closed_streams(state_dir, clock)).items():
        flips = flip_bits_of(Library(state_dir), path, (0, 5), step=31)
        record_property(f"row 6 ({kind})", f"{flips.tried} flips: {flips.missed} missed, {flips.misnamed} misnamed")
        assert (flips.missed, flips.misnamed) == (0, 0), kind


@pytest.mark.parametrize("kind", ["agent", "run", "own loop", "closed without an end"])
async def test_a_closed_stream_that_was_cut_at_a_line_is_damaged(state_dir: Path, clock: Clock, kind: str) -> None:
    path = (await closed_streams(state_dir, clock))[kind]
    lines = path.read_bytes().splitlines(keepends=True)
    for left in range(1, len(lines)):
        path.write_bytes(b"".join(lines[:left]))
        assert report_of(state_dir, path).status == "damaged"


@pytest.mark.parametrize("kind", ["agent", "run", "own loop", "closed without an end"])
async def test_a_deleted_stream_is_called_gone(state_dir: Path, clock: Clock, kind: str) -> None:
    path = (await closed_streams(state_dir, clock))[kind]
    path.unlink()
    report = report_of(state_dir, path)
    assert report.status == "damaged"
    assert "gone" in (report.problem or "")


async def test_a_whole_run_deleted_with_its_agents_is_called_gone(state_dir: Path, clock: Clock) -> None:
    streams = await closed_streams(state_dir, clock)
    for kind in ("agent", "run"):
        streams[kind].unlink()
    gone = [report.file for report in Library(state_dir).verify() if report.status == "damaged"]
    assert sorted(gone) == sorted([streams["agent"], streams["run"]])


async def test_what_is_appended_to_an_altered_stream_does_not_hide_the_alteration(
    state_dir: Path, clock: Clock
) -> None:
    path = (await closed_streams(state_dir, clock))["run"]
    *lines, last = path.read_bytes().splitlines(keepends=True)
    altered = last.replace(b"rejected.py", b"accepted.py")
    assert altered != last
    path.write_bytes(b"".join([*lines, altered]))
    async with FileTrace(state_dir, clock=clock) as trace:
        await trace.append(f"runs/{path.stem}", [ToolResultEvent(call_id="c", tool="t", outcome="success")])
    report = report_of(state_dir, path)
    assert (report.status, report.seq) == ("damaged", len(lines))


def sentences(state_dir: Path, **options: bool) -> str:
    return " ".join(Library(state_dir).verify(**options).not_checked)


async def test_a_blob_is_looked_for_wherever_in_a_stream_it_is_named(state_dir: Path, clock: Clock) -> None:
    """Few lines are parsed: the first, the last, a long one and one in a foreign spelling must not be passed over."""
    blobs, names = FileBlobs(state_dir), []
    drafts: list[Event] = []
    for number in range(5):
        names.append(await blobs.put(b"content %d" % number))
        change = FileChange(path="a.py", after=names[-1])
        raw = {"after": names[0], "text": "x" * 100_000 * (number == 2)}
        drafts.append(ToolResultEvent(call_id="c", tool="t", outcome="success", raw=raw, files=(change,)))
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        await trace.append(STREAM, drafts)
    path = state_dir / f"{STREAM}.jsonl"
    spaced = b""
    for line in path.read_bytes().splitlines():
        record = json.loads(line) | {"prev": digest(spaced.splitlines()[-1]) if spaced else None}
        spaced += json.dumps(record).encode() + b"\n"
    for content in (path.read_bytes(), spaced):
        path.write_bytes(content)
        (state_dir / "heads.log").unlink(missing_ok=True)
        for seq, name in enumerate(names):
            file = blobs.path(name)
            assert file is not None
            file.rename(file.with_suffix(".away"))
            report = report_of(state_dir, path)
            assert (report.seq, name in str(report.problem), report.blobs) == (seq, True, 5)
            file.with_suffix(".away").rename(file)


async def test_the_quick_way_reads_no_blob_and_says_so(state_dir: Path, clock: Clock) -> None:
    files = await stream_with_blobs(state_dir, clock, 2)
    files[0].write_bytes(b"other")
    quick = Library(state_dir).verify(quick=True)
    assert not quick.damaged
    assert (quick.blobs.named, quick.blobs.read, quick.blobs.not_read) == (6, 0, 6)
    assert "only looked up, not read" in " ".join(quick.not_checked)
    files[1].unlink()
    assert Library(state_dir).verify(quick=True).damaged


async def test_the_counts_say_what_was_read_and_a_pruned_blob_is_no_damage(state_dir: Path, clock: Clock) -> None:
    files = await stream_with_blobs(state_dir, clock, 3)
    sizes = sum(
        len(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()) for file in files
    )
    found = Library(state_dir).verify()
    assert (found.blobs.named, found.blobs.read, found.blobs.bytes) == (9, 9, sizes)
    files[0].rename(files[0].with_suffix(".gone"))
    pruned = Library(state_dir).verify()
    assert (pruned.damaged, pruned.blobs.pruned, pruned.blobs.read) == (False, 1, 8)


async def test_a_blob_that_many_streams_name_is_read_once(
    state_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = await FileBlobs(state_dir).put(b"shared")
    change = FileChange(path="a.py", after=name)
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        for number in range(20):
            result = ToolResultEvent(call_id="c", tool="t", outcome="success", files=(change,))
            await trace.append(f"traces/{number:02}", [result, result])
    read: list[str] = []
    prove = FileBlobs.prove
    monkeypatch.setattr(
        FileBlobs, "prove", lambda self, digest, limit: read.append(digest) or prove(self, digest, limit)
    )
    assert not Library(state_dir).verify().damaged
    assert read == [name]


async def test_a_blob_that_unpacks_beyond_what_its_event_says_is_damage_and_is_not_unpacked_further(
    state_dir: Path, clock: Clock
) -> None:
    await stream_with_blobs(state_dir, clock, 1)
    raw = max((path for path in state_dir.rglob("*.gz")), key=lambda path: len(gzip.decompress(path.read_bytes())))
    raw.write_bytes(gzip.compress(bytes(100_000_000), 1))
    found = Library(state_dir).verify()
    (report,) = found
    assert (report.status, report.seq) == ("damaged", 0)
    assert "unpacks to more than" in (report.problem or "")
    assert found.blobs.damaged == 1


async def test_records_after_the_noted_head_are_said_to_be_uncovered(state_dir: Path, clock: Clock) -> None:
    path = (await closed_streams(state_dir, clock))["closed without an end"]
    assert "not confirmed by anything" not in sentences(state_dir)
    trace = FileTrace(state_dir, clock=clock, sync="off")
    await trace.append("traces/01OPEN", [NoticeEvent(message="one more")])
    report = report_of(state_dir, path)
    assert (report.status, report.covered, report.events) == ("unsealed", 2, 3)
    assert "The last line of 1 stream is not confirmed by anything" in sentences(state_dir)
    await trace.aclose()
    assert report_of(state_dir, path).covered == 3
    assert "not confirmed by anything" not in sentences(state_dir)


async def test_a_state_without_a_ledger_verifies_and_says_what_nothing_vouches_for(
    state_dir: Path, clock: Clock
) -> None:
    await closed_streams(state_dir, clock)
    (state_dir / "heads.log").unlink()
    found = Library(state_dir).verify()
    assert not found.damaged
    assert not found.heads.there
    assert "the last line of a run's stream is not confirmed by anything" in " ".join(found.not_checked)


@pytest.mark.parametrize(
    ("line", "damaged", "torn"),
    [
        (b'{"v":1,"stream":"runs/01RUN","records":9,"head":"sha256:00","check":"0000000000000000"}\n', 1, 0),
        (_line(Note("../x", 1, "sha256:00")), 1, 0),
        (_line(Note("runs/01RUN", 0, "sha256:00")), 1, 0),
        (b'{"v":1,"stream":"runs/01RUN","rec', 0, 1),
        (b"\n", 0, 0),
        (b"\0" * 5000, 0, 5),
    ],
)
async def test_a_line_of_the_ledger_that_cannot_be_read_is_told_and_blames_no_stream(
    state_dir: Path, clock: Clock, line: bytes, damaged: int, torn: int
) -> None:
    await closed_streams(state_dir, clock)
    with (state_dir / "heads.log").open("ab") as ledger:
        ledger.write(line)
    found = Library(state_dir).verify()
    assert (len(found.heads.damaged_lines), len(found.heads.torn_lines)) == (damaged, torn)
    assert found.damaged == bool(damaged)
    assert not [report for report in found if report.status == "damaged"]


async def test_a_writer_goes_on_behind_a_torn_line_of_the_ledger(state_dir: Path, clock: Clock) -> None:
    await closed_streams(state_dir, clock)
    ledger = state_dir / "heads.log"
    ledger.write_bytes(ledger.read_bytes()[:-20])
    async with FileTrace(state_dir, clock=clock) as trace:
        await trace.append("traces/01NEW", [NoticeEvent()])
    found = Library(state_dir).verify()
    assert len(found.heads.torn_lines) == 1
    assert report_of(state_dir, state_dir / "traces" / "01NEW.jsonl").covered == 1


NOTING = """
import sys
import tracemalloc
from pathlib import Path
from remora.trace import Disk
from remora.trace.files.heads import Ledger, Note

for number in range(500):
    note = Note(f"traces/{sys.argv[2]}x{number}", number + 1, "sha256:" + "0" * 64)
    Ledger(Path(sys.argv[1]), disk=Disk()).note(note)
"""


def test_many_processes_note_heads_without_mixing_lines(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", NOTING, str(tmp_path)]
    workers = [subprocess.Popen([*argv, str(number)]) for number in range(3)]
    assert [worker.wait(timeout=120) for worker in workers] == [0] * 3
    found = read_heads(tmp_path)
    assert (len(found.noted), found.damaged, found.torn) == (1500, (), ())


async def test_what_was_pruned_is_not_called_gone(state_dir: Path, clock: Clock) -> None:
    await closed_streams(state_dir, clock)
    library = Library(state_dir)
    result = library.prune(library.plan_prune(Retention(keep_last=0), datetime.now(UTC)))
    assert "runs/01RUN" in result.streams
    assert not Library(state_dir).verify().damaged


async def test_a_ledger_that_cannot_be_written_loses_no_event(state_dir: Path, clock: Clock) -> None:
    (state_dir / "heads.log").mkdir(parents=True)
    (state_dir / "heads.log" / "mine").touch()
    async with FileTrace(state_dir, clock=clock) as trace:
        await trace.append("traces/01NEW", [NoticeEvent(), AgentEndEvent()])
    found = Library(state_dir).verify()
    assert [report.status for report in found] == ["sealed"]
    assert "cannot be read" in found.heads.problem


async def test_a_link_in_place_of_the_ledger_is_not_written_through(
    state_dir: Path, clock: Clock, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    state_dir.mkdir()
    (state_dir / "heads.log").symlink_to(mine)
    async with FileTrace(state_dir, clock=clock) as trace:
        await trace.append("traces/01NEW", [NoticeEvent(), AgentEndEvent()])
    assert mine.read_text() == "mine"
    assert Library(state_dir).verify().heads.problem


async def test_no_note_is_synced_and_none_is_written_before_its_stream_is(state_dir: Path, clock: Clock) -> None:
    calls: list[tuple[str, str]] = []
    names: dict[int, str] = {}

    class Watching(Disk):
        def open_append(self, path: Path) -> int:
            handle = super().open_append(path)
            names[handle] = path.name
            return handle

        def write(self, handle: int, data: bytes) -> None:
            calls.append(("write", names[handle]))
            super().write(handle, data)

        def sync(self, handle: int) -> None:
            calls.append(("sync", names[handle]))
            super().sync(handle)

    async with FileTrace(state_dir, clock=clock, disk=Watching()) as trace:
        await trace.append("traces/A", [NoticeEvent()])
        await trace.append("traces/A", [NoticeEvent()])
        await trace.append("traces/A", [AgentEndEvent()])
    stream = [("write", "A.jsonl"), ("sync", "A.jsonl")]
    assert [call for call in calls if call[1] != ".gitignore"] == [*stream * 3, ("write", "heads.log")]


async def test_no_reader_of_a_state_folder_is_filled_by_a_line_without_end(state_dir: Path) -> None:
    for name in ("traces/01LONG.jsonl", "traces/01LONG.torn", "runs/01LONG.jsonl"):
        (state_dir / name).parent.mkdir(parents=True, exist_ok=True)
        with (state_dir / name).open("wb") as out:
            out.truncate(160 * 1024 * 1024)
    with (state_dir / "heads.log").open("wb") as out:
        out.truncate(2 * 1024 * 1024)
    library = Library(state_dir)
    tracemalloc.start()
    assert library.verify().damaged
    assert list(library.run_events()) == []
    assert [row.events for row in library.agents()] == [0]
    assert library.plan_prune(Retention(keep_last=0), datetime.now(UTC)).streams == ()
    for stream in library.runs():
        with pytest.raises(TraceError):
            [event async for event in library.tail(str(stream.stem)) if event.seq < 0]
    # Three streams may be read at once, each with its longest line and a copy of it; the files have 480 MiB.
    assert tracemalloc.get_traced_memory()[1] < 192 * 1024 * 1024
    tracemalloc.stop()


async def test_a_row_of_the_index_that_names_a_line_without_end_reads_nothing(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"{}\n")
    for length in (1 << 40, -5):
        with pytest.raises(TraceError, match="can have no line"):
            read_at(file, 0, length)
