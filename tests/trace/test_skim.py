"""Skimming only saves time: whatever is done to a stream, reading on from there tells the same as reading all of it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

from remora.errors import TraceDamaged
from remora.trace import Position, Record, read_records
from remora.trace.files.reader import after
from remora.trace.files.skim import skim

MakeStream = Callable[..., Awaitable[Path]]


def told(path: Path, start: Position) -> tuple[Position, str, str]:
    """How far the stream is intact, the type of the last line that is read, and the damage, if any."""
    here, last, problem = start, None, ""
    try:
        for last in read_records(path, start=start, quick=True):
            here = after(last)
    except TraceDamaged as damage:
        problem = damage.message
    return here, _type(last), problem


def _type(last: Record | None) -> str:
    return last.type if last else ""


def mistakes(whole: bytes, dice: random.Random) -> list[bytes]:
    lines = whole.splitlines(keepends=True)
    one, other = sorted(dice.sample(range(len(lines)), 2))
    place = dice.randrange(len(whole))
    return [
        whole[:place],
        whole[:place] + bytes([whole[place] ^ 1 << dice.randrange(8)]) + whole[place + 1 :],
        whole[:place] + b"\n" + whole[place:],
        b"".join(lines[:one] + lines[other:]),
        b"".join([*lines[:one], lines[other], *lines[one + 1 : other], lines[one], *lines[other + 1 :]]),
        b"".join([*lines, lines[one]]),
        b"".join([*lines, lines[-1]]),
        b"".join([*lines[:one], b" " + lines[one], *lines[one + 1 :]]),
        whole + b"x" * 300_000,
        b"\n" * one + whole,
    ]


async def test_skimming_a_damaged_stream_hides_no_damage_and_makes_none_up(make_stream: MakeStream) -> None:
    dice = random.Random(6)
    # More than one piece of what is read at once.
    path = await make_stream(600, sealed=True, goal="g" * 1000)
    whole = path.read_bytes()
    assert len(whole) > 2 * 64 * 1024
    seen = 0
    for _ in range(60):
        for changed in mistakes(whole, dice):
            path.write_bytes(changed)
            here, last, problem = told(path, skim(path))
            everything = told(path, Position())
            assert (here, problem) == (everything[0], everything[2])
            assert last in ("", everything[1])
            seen += bool(problem)
    assert seen > 300


async def test_a_whole_stream_is_skimmed_up_to_its_last_line(make_stream: MakeStream) -> None:
    path = await make_stream(50)
    lines = path.read_bytes().splitlines(keepends=True)
    assert skim(path) == Position(49, len(b"".join(lines[:-1])), skim(path).prev)
    assert [record.seq for record in read_records(path, start=skim(path))] == [49]


async def test_what_is_no_stream_is_not_skimmed(make_stream: MakeStream, tmp_path: Path) -> None:
    path = await make_stream(5)
    whole = path.read_bytes()
    for strange in (b"", b"\n", b"{}\n" * 3, whole.replace(b'"v":1', b'"v":2'), whole[:30] + whole):
        path.write_bytes(strange)
        assert skim(path) == Position()
    assert skim(tmp_path / "missing") == Position()
