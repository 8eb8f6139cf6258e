"""Rows 6 and 13, the long ones: every bit flipped, and every kind of text and byte there and back."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from remora.errors import TraceDamaged
from remora.events import Inline, ToolResultEvent, pack, unpack
from remora.trace import Disk, FileBlobs, FileTrace, read_events, verify

STREAM = "traces/01TEST"
CASES = 10_000
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


async def test_every_byte_and_every_strange_character_comes_back_identical(
    state_dir: Path, clock: Any, record_property: Callable[[str, object], None]
) -> None:
    dice = random.Random(13)
    values = [strange_value(dice, number) for number in range(CASES)]
    blobs = FileBlobs(state_dir, disk=FastDisk())
    changed = packed_ones = 0
    drafts = []
    for value in values:
        packed = pack(value)
        raw = packed.value if isinstance(packed, Inline) else None
        if not isinstance(packed, Inline):
            packed_ones += 1
            changed += unpack(await blobs.get(await blobs.put(packed.data)), packed.encoding) != value
        drafts.append(ToolResultEvent(call_id="c", tool="t", outcome="success", raw=raw))
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        for start in range(0, CASES, 500):
            await trace.append(STREAM, drafts[start : start + 500])
    for value, event in zip(values, read_events(trace.path(STREAM)), strict=True):
        assert isinstance(event, ToolResultEvent)
        changed += event.raw is not None and event.raw != value
    record_property("row 13", f"{CASES} values, {packed_ones} of them as blobs: {changed} changed")
    assert changed == 0
    assert 256 < packed_ones < CASES // 2


@pytest.mark.faults
async def test_each_single_flipped_bit_is_detected_by_verify_and_by_reading(
    make_stream: Callable[..., Awaitable[Path]], record_property: Callable[[str, object], None]
) -> None:
    path = await make_stream(10, sealed=True)
    whole = path.read_bytes()
    head = verify(path).head
    last = whole.rindex(b"\n", 0, -1)
    missed = misnamed = read_on = 0
    for place in range(len(whole)):
        seq = whole.count(b"\n", 0, place)
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            report = verify(path, head=head)
            missed += report.status != "damaged"
            misnamed += report.seq != seq
            # No head is known while reading, so nothing vouches for the content of the very last line.
            read_on += place <= last and not _stops(path)
    record_property("row 6 (every bit)", f"{len(whole) * 8} flips: {missed} missed, {misnamed} misnamed")
    assert (missed, misnamed, read_on) == (0, 0, 0)


def _stops(path: Path) -> bool:
    try:
        for _ in read_events(path):
            pass
    except TraceDamaged:
        return True
    return False
