from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from remora.errors import KVBusy, KVConflict, KVDamaged, KVError, KVRecordInvalid
from remora.kv import ABSENT, KVManager, TypedKVRepository
from remora.kv._file import KVFile


class NodeState(BaseModel):
    name: str
    calls: tuple[str, ...] = ()
    weight: float = 0.0


class Other(BaseModel):
    size: int


@pytest.fixture
async def kv(tmp_path: Path) -> AsyncIterator[KVManager]:
    async with KVManager(tmp_path / "some.kv", durable=False) as manager:
        yield manager


# Keys and values


async def test_reading_makes_no_file_and_finds_nothing(kv: KVManager, tmp_path: Path) -> None:
    assert await kv.get("a") is None
    assert await kv.scan() == []
    await kv.check()
    async with kv.transaction() as nothing:
        assert await nothing.get("a") is None
    assert list(tmp_path.iterdir()) == []


async def test_what_was_set_is_read_by_another_manager_and_only_the_owner_may_open_it(
    kv: KVManager, tmp_path: Path
) -> None:
    await kv.set("a", {"x": [1, None, "ü"]})
    async with KVManager(tmp_path / "some.kv") as other:
        assert await other.get("a") == {"x": [1, None, "ü"]}
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o600"}


async def test_a_prefix_gives_its_keys_in_order_and_no_others(kv: KVManager) -> None:
    for key in ("node:b", "node:", "node", "nodf", "node:\udcff", "node:a\0", "index:node:"):
        await kv.set(key, key.encode("utf-8", "replace").decode())
    assert [each.key for each in await kv.scan("node:")] == ["node:", "node:a\0", "node:b", "node:\udcff"]
    assert len(await kv.scan()) == 7


@pytest.mark.parametrize(
    "value", [float("nan"), "\ud800", {1, 2}, object(), b"x"], ids=lambda value: type(value).__name__
)
async def test_what_json_cannot_hold_exactly_is_refused(kv: KVManager, value: Any) -> None:
    with pytest.raises(KVError, match="expected a JSON value"):
        await kv.set("a", value)
    assert await kv.scan() == []


_keys = st.text("ab:%\0\udcff", max_size=3)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
).filter(lambda value: not any(0xD800 <= ord(letter) < 0xE000 for letter in repr(value)))
_step = st.tuples(_keys, st.none() | _values.map(lambda value: [value]))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.lists(_step, max_size=4)), max_size=6))
def test_a_store_is_a_dictionary_whose_transactions_happen_or_do_not(
    batches: list[tuple[bool, list[tuple[str, Any]]]],
) -> None:
    async def play(path: Path) -> None:
        model: dict[str, Any] = {}
        async with KVManager(path, durable=False) as kv:
            for fails, steps in batches:
                ahead = dict(model)
                try:
                    async with kv.transaction() as change:
                        for key, value in steps:
                            if value is None:
                                assert await change.delete(key) == (ahead.pop(key, None) is not None)
                            else:
                                await change.set(key, value)
                                ahead[key] = value
                        assert {each.key: each.value for each in await change.scan()} == ahead
                        if fails:
                            raise RuntimeError("given up")
                    model = ahead
                except RuntimeError:
                    pass
                assert {each.key: each.value for each in await kv.scan()} == model
                for prefix in ("a", ":", "b%"):
                    wanted = {key: value for key, value in model.items() if key.startswith(prefix)}
                    assert {each.key: each.value for each in await kv.scan(prefix)} == wanted

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder) / "some.kv"))


# Typed records


async def test_the_calls_of_the_specification_work_as_written(kv: KVManager) -> None:
    repo = TypedKVRepository[NodeState](kv, prefix="node:")
    state = NodeState(name="bar", calls=("a", "b"), weight=0.1)
    await repo.save("foo.py:bar", state)
    assert await repo.load("foo.py:bar", NodeState) == state
    assert await repo.list_all(NodeState) == [state]
    assert await repo.load("foo.py:bar") == await TypedKVRepository(kv, "node:", NodeState).load("foo.py:bar") == state
    assert [each.key for each in await kv.scan()] == ["node:foo.py:bar"]


async def test_records_are_loaded_listed_and_deleted_by_prefix(kv: KVManager) -> None:
    repo, others = TypedKVRepository[NodeState](kv, prefix="node:"), TypedKVRepository[Other](kv, prefix="other:")
    await repo.save_many({id_: NodeState(name=id_) for id_ in "cab"})
    await others.save("a", Other(size=1))
    assert await repo.list_ids() == ["a", "b", "c"]
    assert list(await repo.load_many(["c", "x", "a"])) == ["c", "a"]
    assert await repo.load("x") is None
    assert (await repo.delete("a"), await repo.delete("a")) == (True, False)
    assert await others.list_all() == [Other(size=1)]
    many = {f"{number:04}": NodeState(name="n") for number in range(1200)}
    await repo.save_many(many)
    assert await repo.load_many(many) == many


async def test_a_record_of_another_model_is_an_error_that_names_key_and_field(kv: KVManager) -> None:
    await TypedKVRepository[Other](kv, prefix="node:").save("a", Other(size=1))
    with pytest.raises(KVRecordInvalid, match=r"'node:a' is not a `NodeState`: `name`: Field required"):
        await TypedKVRepository[NodeState](kv, prefix="node:").load("a")
    with pytest.raises(KVError, match="expected `TypedKVRepository"):
        await TypedKVRepository(kv).load("node:a")


# Versions and transactions


async def test_a_record_that_somebody_changed_is_not_overwritten(kv: KVManager) -> None:
    repo = TypedKVRepository[NodeState](kv, prefix="node:")
    first = await repo.save("a", NodeState(name="1"), expected=ABSENT)
    found = await repo.load_versioned("a")
    assert found is not None
    assert found.version == first
    second = await repo.save("a", NodeState(name="2"), expected=found.version)
    for attempt in (repo.save("a", NodeState(name="3"), expected=first), repo.delete("a", expected=first)):
        with pytest.raises(KVConflict) as conflict:
            await attempt
        assert (conflict.value.expected, conflict.value.found) == (first, second)
    with pytest.raises(KVConflict):
        await repo.save("a", NodeState(name="3"), expected=ABSENT)
    assert await repo.load("a") == NodeState(name="2")


async def test_a_version_from_before_a_delete_never_fits_again(kv: KVManager) -> None:
    old = await kv.set("a", 1)
    await kv.delete("a")
    await kv.set("a", 1)
    with pytest.raises(KVConflict):
        await kv.set("a", 2, expected=old)


async def test_a_transaction_sees_one_moment_and_fails_whole_if_what_it_read_has_changed(kv: KVManager) -> None:
    await kv.set("a", 1)
    with pytest.raises(KVConflict, match="'a' has version"):
        async with kv.transaction() as change:
            assert await change.get("a") == 1
            await kv.set("a", 2)
            await kv.set("b", 2)
            assert (await change.get("a"), await change.get("b")) == (1, None)
            await change.set("c", await change.get("a"))
    assert [each.key for each in await kv.scan()] == ["a", "b"]


async def test_a_repository_works_inside_a_transaction(kv: KVManager) -> None:
    async with kv.transaction() as change:
        repo = TypedKVRepository[NodeState](change, prefix="node:")
        await repo.save_many({"a": NodeState(name="a"), "b": NodeState(name="b")})
        assert await repo.delete("a")
        assert await repo.list_ids() == ["b"]
        assert await kv.scan() == []
    assert [(each.key, each.version) for each in await kv.scan()] == [("node:b", change.version)]


# Several processes


def run(code: str, path: Path, *args: object, out: int = subprocess.PIPE) -> subprocess.Popen[str]:
    prelude = (
        "import asyncio, os, signal, sys\nfrom pathlib import Path\n"
        "from remora.errors import *\nfrom remora.kv import *\nfrom remora.kv._file import KVFile\n"
        "path, args = Path(sys.argv[1]), sys.argv[2:]\n"
    )
    return subprocess.Popen([sys.executable, "-c", prelude + code, str(path), *map(str, args)], stdout=out, text=True)


def end_of(process: subprocess.Popen[str]) -> int:
    try:
        process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode


_WRITE_PAIRS = """
async def main():
    async with KVManager(path, durable=False) as kv:
        number = 0
        while True:
            async with kv.transaction() as change:
                for place in range(20):
                    await change.set(f"k{place}", number)
            print(number, flush=True)
            number += 1
asyncio.run(main())
"""
_READ_PAIRS = """
async def main():
    last, seen = -1, set()
    async with KVManager(path) as kv:
        while len(seen) < int(args[0]):
            found = {each.value for each in await kv.scan("k")}
            assert len(found) <= 1, found
            if found:
                assert last <= min(found), (last, found)
                last = min(found)
                seen |= found
asyncio.run(main())
"""
_COUNT = """
async def main():
    async with KVManager(path, durable=False) as kv:
        done = 0
        while done < int(args[0]):
            try:
                async with kv.transaction() as change:
                    await change.set("n", (await change.get("n") or 0) + 1)
                done += 1
            except (KVConflict, KVBusy):
                pass
asyncio.run(main())
"""


def test_processes_that_read_while_one_writes_see_whole_transactions_in_order(tmp_path: Path) -> None:
    path = tmp_path / "some.kv"
    # A pipe that nobody reads would stop the writer once it is full.
    writer = run(_WRITE_PAIRS, path, out=subprocess.DEVNULL)
    try:
        readers = [run(_READ_PAIRS, path, 20) for _ in range(2)]
        assert [end_of(reader) for reader in readers] == [0, 0]
    finally:
        writer.kill()
        writer.communicate()


def test_no_increment_of_several_processes_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "some.kv"
    assert [end_of(each) for each in [run(_COUNT, path, 30) for _ in range(3)]] == [0, 0, 0]
    assert asyncio.run(KVManager(path).get("n")) == 90


async def check_after_kill(path: Path, acknowledged: int) -> None:
    async with KVManager(path) as kv:
        await kv.check()
        found = [each.value for each in await kv.scan("k")]
        assert len(found) in (0, 20)
        assert len(set(found)) <= 1
        assert max(found, default=-1) >= acknowledged
        await kv.set("k", "goes on")


def kill_while_writing(path: Path, after: int) -> int:
    """The last number that was acknowledged before the kill."""
    writer = run(_WRITE_PAIRS, path)
    assert writer.stdout is not None
    for _ in range(after):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    rest = writer.communicate()[0].split()
    return int(rest[-1]) if rest else after - 1


async def test_a_killed_writer_leaves_whole_transactions_and_all_acknowledged(tmp_path: Path) -> None:
    for after in (0, 3):
        path = tmp_path / f"{after}.kv"
        await check_after_kill(path, kill_while_writing(path, after))


@pytest.mark.faults
async def test_a_writer_killed_20_times_leaves_whole_transactions(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    for after in range(20):
        path = tmp_path / f"{after}.kv"
        await check_after_kill(path, kill_while_writing(path, after))
    record_property("key-value kills", "20 kills: 0 torn transactions, 0 acknowledged ones lost")


async def test_a_kill_in_the_middle_of_a_commit_leaves_nothing_of_it(tmp_path: Path) -> None:
    code = """
change = KVFile._change
def die(self, *given):
    result = change(self, *given)
    if given[1].get("k1") == b"2":
        os.kill(os.getpid(), signal.SIGKILL)
    return result
KVFile._change = die
async def main():
    kv = KVManager(path)
    for number in (1, 2):
        async with kv.transaction() as t:
            for place in range(200):
                await t.set(f"k{place}", number)
asyncio.run(main())
"""
    assert end_of(run(code, tmp_path / "some.kv")) == -signal.SIGKILL
    async with KVManager(tmp_path / "some.kv") as kv:
        assert {each.value for each in await kv.scan("k")} == {1}
        await kv.set("k0", 3)


# Damage


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(20_000))


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def of_somebody_else(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA application_id = 7; CREATE TABLE records (key)")


def of_another_schema(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA user_version = 99")


def with_another_value(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE records SET value = ? WHERE key = ?", (b'"other"', b"k7"))
        db.commit()


async def filled(path: Path) -> list[Any]:
    async with KVManager(path, durable=False) as kv:
        async with kv.transaction() as change:
            for number in range(100):
                await change.set(f"k{number}", f"value {number} " + "x" * number)
        return await kv.scan()


@pytest.mark.parametrize(
    "damage", [garbage, zeroed, truncated, of_somebody_else, of_another_schema, with_another_value]
)
async def test_a_damaged_file_is_an_error_that_names_it_and_can_be_set_aside(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "some.kv"
    await filled(path)
    damage(path)
    async with KVManager(path) as kv:
        with pytest.raises(KVDamaged, match=r"some\.kv"):
            await kv.check()
            await kv.scan()
        assert (await kv.set_aside()) == path.with_name("some.kv.damaged")
        assert await kv.scan() == []
        await kv.set("a", 1)
        assert await kv.get("a") == 1
    assert (tmp_path / "some.kv.damaged").exists()


async def test_a_changed_byte_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    path, chance = tmp_path / "some.kv", random.Random(7)
    whole = await filled(path)
    intact = path.read_bytes()
    noticed = 0
    for _ in range(80):
        place = chance.randrange(len(intact))
        path.write_bytes(intact[:place] + bytes([intact[place] ^ chance.randrange(1, 256)]) + intact[place + 1 :])
        async with KVManager(path) as kv:
            try:
                await kv.check()
                assert await kv.scan() == whole
            except KVError:
                noticed += 1
    assert noticed > 20  # the rest lay in unused space


async def test_a_file_that_somebody_writes_is_not_set_aside(kv: KVManager, tmp_path: Path) -> None:
    await kv.set("a", 1)
    async with KVManager(tmp_path / "some.kv") as other:
        assert await other.get("a") == 1
        with pytest.raises(KVBusy):
            await other.set_aside()
    assert await kv.get("a") == 1


async def test_a_file_that_another_has_replaced_is_not_set_aside_but_read(tmp_path: Path) -> None:
    path = tmp_path / "some.kv"
    await filled(path)
    async with KVManager(path) as late, KVManager(path) as first:
        assert len(await late.scan()) == len(await first.scan()) == 100
        await first.set_aside()
        await first.set("new", 1)
        await first.aclose()
        await late.set_aside()
        assert [each.key for each in await late.scan()] == ["new"]


async def test_a_link_in_place_of_the_file_is_refused(kv: KVManager, tmp_path: Path) -> None:
    (tmp_path / "some.kv").symlink_to(tmp_path / "elsewhere")
    for attempt in (kv.set("a", 1), kv.get("a")):
        with pytest.raises(KVError, match="is a symbolic link"):
            await attempt
    assert not (tmp_path / "elsewhere").exists()


async def test_a_store_in_a_folder_that_is_not_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    async with KVManager(tmp_path / "no" / "some.kv") as kv:
        assert await kv.get("a") is None
        with pytest.raises(KVError, match="No such file"):
            await kv.set("a", 1)


def test_a_second_commit_waits_for_the_first(tmp_path: Path) -> None:
    file = KVFile(tmp_path / "some.kv", durable=False)
    file.commit({"a": b"1"}, {})
    with closing(sqlite3.connect(file.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        writer = run(_COUNT, file.path, 1)
        assert file.read(lambda db: file.rows_of(db, ["a"])[0].data, b"") == b"1"
        other.execute("ROLLBACK")
    assert end_of(writer) == 0
    file.close()
