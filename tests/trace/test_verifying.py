"""`Library.verify`: every blob is read, and every stream is held against the heads noted outside of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from flips import closed_streams, flip_bits_of
from remora.events import BlobRef, FileChange, ToolResultEvent
from remora.trace import FileBlobs, FileTrace, Library, StreamReport

MakeStream = Callable[..., Awaitable[Path]]
STREAM = "traces/01TEST"


def report_of(state_dir: Path, path: Path) -> StreamReport:
    (found,) = [report for report in Library(state_dir).verify() if report.file == path]
    return found


async def stream_with_blobs(state_dir: Path, clock: object, count: int) -> list[Path]:
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
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:  # type: ignore[arg-type]
        await trace.append(STREAM, drafts)
    return [file for file in files if file is not None]


async def test_every_altered_blob_is_found_and_named_with_its_stream_and_seq(
    state_dir: Path, clock: object, record_property: Callable[[str, object], None]
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
    state_dir: Path, clock: object, record_property: Callable[[str, object], None]
) -> None:
    for kind, path in (await closed_streams(state_dir, clock)).items():
        flips = flip_bits_of(Library(state_dir), path, (0, 5), step=11)
        record_property(f"row 6 ({kind})", f"{flips.tried} flips: {flips.missed} missed, {flips.misnamed} misnamed")
        assert (flips.missed, flips.misnamed) == (0, 0), kind


@pytest.mark.parametrize("kind", ["agent", "run", "own loop", "closed without an end"])
async def test_a_closed_stream_that_was_cut_at_a_line_is_damaged(state_dir: Path, clock: object, kind: str) -> None:
    path = (await closed_streams(state_dir, clock))[kind]
    lines = path.read_bytes().splitlines(keepends=True)
    for left in range(1, len(lines)):
        path.write_bytes(b"".join(lines[:left]))
        assert report_of(state_dir, path).status == "damaged"


@pytest.mark.parametrize("kind", ["agent", "run", "own loop", "closed without an end"])
async def test_a_deleted_stream_is_called_gone(state_dir: Path, clock: object, kind: str) -> None:
    path = (await closed_streams(state_dir, clock))[kind]
    path.unlink()
    report = report_of(state_dir, path)
    assert report.status == "damaged"
    assert "gone" in (report.problem or "")


async def test_a_whole_run_deleted_with_its_agents_is_called_gone(state_dir: Path, clock: object) -> None:
    streams = await closed_streams(state_dir, clock)
    for kind in ("agent", "run"):
        streams[kind].unlink()
    gone = [report.file for report in Library(state_dir).verify() if report.status == "damaged"]
    assert sorted(gone) == sorted([streams["agent"], streams["run"]])


async def test_what_is_appended_to_an_altered_stream_does_not_hide_the_alteration(
    state_dir: Path, clock: object
) -> None:
    path = (await closed_streams(state_dir, clock))["run"]
    *lines, last = path.read_bytes().splitlines(keepends=True)
    altered = last.replace(b"rejected.py", b"accepted.py")
    assert altered != last
    path.write_bytes(b"".join([*lines, altered]))
    async with FileTrace(state_dir, clock=clock) as trace:  # type: ignore[arg-type]
        await trace.append(f"runs/{path.stem}", [ToolResultEvent(call_id="c", tool="t", outcome="success")])
    report = report_of(state_dir, path)
    assert (report.status, report.seq) == ("damaged", len(lines))
