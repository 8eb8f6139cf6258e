"""Reliability row 11: whatever happens to the index, it then equals a fresh rebuild."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from damage import emptied, garbage, truncated
from remora.trace import Filter, TraceIndex
from remora.trace.index.database import SCHEMA

MakeStream = Callable[..., Awaitable[Path]]
Damage = Callable[[Path, random.Random], None]


def answers(index: TraceIndex) -> tuple[Any, ...]:
    """Everything that can be asked."""
    return (
        index.find_events(),
        index.find_streams_by(),
        index.find_events(Filter(tool="read_file", outcome="success")),
        index.search("result", limit=1000),
        index.turns(),
    )


def deleted(db: Path, rnd: random.Random) -> None:
    db.unlink()


def zeroed(db: Path, rnd: random.Random) -> None:
    db.write_bytes(bytes(db.stat().st_size))


def a_page_overwritten(db: Path, rnd: random.Random) -> None:
    with db.open("r+b") as file:
        file.seek(4096 * rnd.randrange(db.stat().st_size // 4096))
        file.write(rnd.randbytes(4096))


def a_byte_changed(db: Path, rnd: random.Random) -> None:
    with db.open("r+b") as file:
        place = rnd.randrange(db.stat().st_size)
        file.seek(place)
        old = file.read(1)[0]
        file.seek(place)
        file.write(bytes([old ^ rnd.randrange(1, 256)]))


def of_an_old_schema(db: Path, rnd: random.Random) -> None:
    execute(db, f"PRAGMA user_version={rnd.choice([0, SCHEMA + 1, 999])}")


def not_ours(db: Path, rnd: random.Random) -> None:
    db.unlink()
    execute(db, "CREATE TABLE events (surprise)", f"PRAGMA user_version={SCHEMA}", "PRAGMA journal_mode=WAL")


def without_a_table(db: Path, rnd: random.Random) -> None:
    execute(db, f"DROP TABLE {rnd.choice(['streams', 'owners', 'events', 'texts'])}")


def with_rows_gone(db: Path, rnd: random.Random) -> None:
    execute(db, f"DELETE FROM {rnd.choice(['events', 'owners', 'texts'])} WHERE rowid % 2")  # noqa: S608


def with_rows_changed(db: Path, rnd: random.Random) -> None:
    execute(db, "UPDATE events SET tool = 'other', ts = '2000'")


def ahead(db: Path, rnd: random.Random) -> None:
    """The streams were put back to an earlier state, or one is gone."""
    for path in sorted((db.parent / "traces").glob("*.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: rnd.randint(1, len(lines))]))
    path.unlink()


def behind(db: Path, rnd: random.Random) -> None:
    """The index was put back to an earlier state."""
    old = db.parent / "old.db"
    with closing(sqlite3.connect(db)) as source, closing(sqlite3.connect(old)) as target:
        source.backup(target)
    with closing(sqlite3.connect(old)) as target:
        target.execute("DELETE FROM streams WHERE id > 1")
        target.execute("UPDATE streams SET bytes = last_offset")
        target.commit()
    old.replace(db)


def its_wal_is_garbage(db: Path, rnd: random.Random) -> None:
    db.with_name("index.db-wal").write_bytes(rnd.randbytes(5000))


def its_stamp_is_garbage(db: Path, rnd: random.Random) -> None:
    db.with_name("index.lock").write_bytes(rnd.randbytes(rnd.choice([0, 10, 5000])))


def execute(db: Path, *statements: str) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


DAMAGES: list[Damage] = [
    deleted, zeroed, emptied, garbage, truncated, a_page_overwritten, a_byte_changed, of_an_old_schema, not_ours,
    without_a_table, with_rows_gone, with_rows_changed, ahead, behind, its_wal_is_garbage, its_stamp_is_garbage,
]  # fmt: skip
USUAL: list[Damage] = [deleted, zeroed, garbage, a_page_overwritten, of_an_old_schema, with_rows_gone, ahead, behind]


async def check(state_dir: Path, make_stream: MakeStream, damage: Damage, seed: int) -> None:
    rnd = random.Random(seed)
    for number in range(4):
        await make_stream(rnd.randint(3, 30), sealed=bool(number % 2), stream_id=f"traces/S{number}")
    db = state_dir / "index.db"
    reader = TraceIndex(state_dir)
    with suppress(Exception) if seed % 2 else closing(reader):  # in half of the cases somebody still has it open
        answers(reader)
    damage(db, rnd)
    with TraceIndex(state_dir) as index:
        after = answers(index)
    again = answers(reader)
    reader.close()
    for file in state_dir.glob("index.*"):
        file.unlink()
    with TraceIndex(state_dir) as index:
        assert after == answers(index)
        assert after == again


@pytest.mark.parametrize("damage", USUAL, ids=lambda damage: damage.__name__)
async def test_a_damaged_index_answers_as_a_fresh_one(state_dir: Path, make_stream: MakeStream, damage: Damage) -> None:
    await check(state_dir, make_stream, damage, seed=0)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(112))
async def test_one_of_112_damages_leaves_no_trace(state_dir: Path, make_stream: MakeStream, seed: int) -> None:
    await check(state_dir, make_stream, DAMAGES[seed % len(DAMAGES)], seed=seed // len(DAMAGES))


async def test_what_was_thrown_away_is_said(state_dir: Path, make_stream: MakeStream) -> None:
    await make_stream()
    with TraceIndex(state_dir) as index:
        index.catch_up()
    zeroed(state_dir / "index.db", random.Random(0))
    with TraceIndex(state_dir) as index:
        done = index.catch_up()
        assert "rebuilt" in done.notices[0]
        assert index.notices == list(done.notices)
        assert index.catch_up().notices == ()


async def test_a_folder_in_the_way_hides_nothing(state_dir: Path, make_stream: MakeStream) -> None:
    await make_stream(5)
    (state_dir / "index.db").mkdir()
    with TraceIndex(state_dir) as index:
        assert len(index.find_events()) == 5


KILLED = """
import os, signal, sys
from pathlib import Path
from remora.trace import TraceIndex

left = int(sys.argv[2])

def progress(done: int, total: int) -> None:
    global left
    left -= 1
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

with TraceIndex(Path(sys.argv[1])) as index:
    index.catch_up(progress)
"""


@pytest.mark.parametrize("after", [1, 3])
async def test_an_indexer_killed_halfway_leaves_an_index_that_the_next_one_completes(
    state_dir: Path, make_stream: MakeStream, after: int
) -> None:
    for number in range(4):
        await make_stream(10, stream_id=f"traces/S{number}")
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(state_dir), str(after))
    assert await child.wait() == -9
    with TraceIndex(state_dir) as index:
        after_kill = answers(index)
        index.rebuild()
        assert after_kill == answers(index)
        assert len(after_kill[0]) == 40
