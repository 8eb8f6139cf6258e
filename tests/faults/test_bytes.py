"""Rows 6 and 13, the long ones: every bit flipped, and every kind of text and byte there and back."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from flips import closed_streams, flip_bits, flip_bits_of
from remora.events import BlobRef, Event, Inline, ToolResultEvent, encode, pack, unpack
from remora.ports import Clock
from remora.trace import (
    Disk,
    FileBlobs,
    FileTrace,
    Library,
    MemoryTrace,
    TraceIndex,
    TraceStore,
    read_events,
    trace_key,
)

STREAM = "traces/01TEST"
STRANGE = [
    "\0",
    "\n",
    "\r",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\x1b[31m",
    '"',
    "\\",
    "\ud800",
    "\udfff",
    "\U0010ffff",
    "é",
    "€",
]


class FastDisk(Disk):
    """No syncs: nothing here is about durability."""

    def sync(self, handle: int) -> None:
        pass

    def sync_dir(self, path: Path) -> None:
        pass


def strange_value(dice: random.Random, number: int) -> str | bytes:
    if number < 256:
        return bytes([number])
    if number < 512:
        return chr(number - 256)
    if number % 20 == 0:
        return dice.randbytes(dice.randrange(3000))
    letters = [dice.choice(STRANGE) if dice.random() < 0.3 else chr(dice.randrange(0x3000)) for _ in range(8)]
    return "".join(letters) * (500 if number % 100 == 1 else 1)


async def keep(state_dir: Path, clock: Any, values: list[str | bytes], blobs: FileBlobs) -> list[ToolResultEvent]:
    """One result for each value, a hundred a turn, about a node that is named like one of them."""
    drafts = []
    for number, value in enumerate(values):
        packed = pack(value)
        held: dict[str, Any] = {}
        if isinstance(packed, Inline):
            held["raw"] = packed.value
        else:
            size = len(packed.data)
            held["raw_ref"] = BlobRef(blob=await blobs.put(packed.data), size=size, encoding=packed.encoding)
        owner = {"run_id": "01RUN", "operation": "lint", "node_id": node_of(values, number // 100)}
        drafts.append(
            ToolResultEvent(call_id=f"c{number}", tool="t", outcome="success", turn=number // 100, **owner, **held)
        )
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        for start in range(0, len(drafts), 500):
            await trace.append(STREAM, drafts[start : start + 500])
    return drafts


def node_of(values: list[str | bytes], turn: int) -> str:
    return str(values[1001 + turn * 3])[:40].encode(errors="replace").decode()


async def raw_of(event: Event, blobs: FileBlobs) -> Any:
    assert isinstance(event, ToolResultEvent)
    if event.raw_ref is None:
        return event.raw
    return unpack(await blobs.get(event.raw_ref.blob), event.raw_ref.encoding)


@pytest.mark.parametrize("cases", [2_000, pytest.param(10_000, marks=pytest.mark.faults)])
async def test_every_byte_and_every_strange_character_comes_back_identical(
    cases: int, state_dir: Path, clock: Any, record_property: Callable[[str, object], None]
) -> None:
    dice = random.Random(13)
    values = [strange_value(dice, number) for number in range(cases)]
    blobs = FileBlobs(state_dir, disk=FastDisk())
    drafts = await keep(state_dir, clock, values, blobs)
    packed = sum(draft.raw_ref is not None for draft in drafts)
    path = state_dir / f"{STREAM}.jsonl"
    changed = {"stream": 0, "index": 0, "store": 0}
    for value, event in zip(values, read_events(path), strict=True):
        changed["stream"] += await raw_of(event, blobs) != value
    with TraceIndex(state_dir) as index:
        lines = path.read_bytes().splitlines()
        for line, found in zip(lines, index.find_events(), strict=True):
            changed["index"] += encode(found.event) != line
        store = TraceStore(MemoryTrace(clock), blobs, index)
        for turn in range(cases // 100):
            entries = await store.get(trace_key("01RUN", "lint", node_of(values, turn), turn))
            kept = values[turn * 100 : turn * 100 + 100]
            changed["store"] += sum(entry.raw_output != value for entry, value in zip(entries, kept, strict=True))
    record_property("row 13", f"{cases} values, {packed} of them as blobs, changed in {changed}")
    assert set(changed.values()) == {0}
    assert 256 < packed < cases // 2


@pytest.mark.faults
async def test_each_single_flipped_bit_is_detected_by_verify_and_by_reading(
    strange_stream: Callable[[int], Awaitable[Path]], record_property: Callable[[str, object], None]
) -> None:
    path = await strange_stream(10)
    flips = flip_bits(path, range(8), reading=True)
    record_property("row 6 (every bit)", f"{flips.tried} flips: {flips.missed} missed, {flips.misnamed} misnamed")
    assert (flips.missed, flips.misnamed, flips.read_on) == (0, 0, 0)


@pytest.mark.faults
async def test_each_single_flipped_bit_of_every_kind_of_closed_stream_is_detected(
    state_dir: Path, clock: Clock, record_property: Callable[[str, object], None]
) -> None:
    for kind, path in (await closed_streams(state_dir, clock)).items():
        flips = flip_bits_of(Library(state_dir), path, range(8))
        told = f"{flips.tried} flips: {flips.missed} missed, {flips.misnamed} misnamed"
        record_property(f"row 6 (every bit, {kind})", told)
        assert (flips.missed, flips.misnamed) == (0, 0), kind


@pytest.mark.faults
async def test_each_single_flipped_bit_of_the_ledger_is_detected_and_blames_no_stream(
    state_dir: Path, clock: Clock, record_property: Callable[[str, object], None]
) -> None:
    await closed_streams(state_dir, clock)
    ledger, tried, missed, blamed = state_dir / "heads.log", 0, 0, 0
    whole = ledger.read_bytes()
    for place, byte in enumerate(whole):
        for bit in range(8):
            ledger.write_bytes(whole[:place] + bytes([byte ^ 1 << bit]) + whole[place + 1 :])
            found = Library(state_dir).verify(quick=True)
            tried += 1
            missed += not (found.heads.damaged_lines or found.heads.torn_lines)
            blamed += any(report.status == "damaged" for report in found)
    record_property("row 6 (every bit, ledger)", f"{tried} flips: {missed} missed, {blamed} blamed on a stream")
    assert (missed, blamed) == (0, 0)
