"""What a copy into a store says about streams that it cannot copy, and an index that is built again."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cutting_proxy import CuttingProxy
from postgres import Server
from remora.app import copy_store, make_store, reindex_store
from remora.errors import ConfigError, StoreUnreachable
from remora.events import NoticeEvent
from remora.trace import FileTrace, Library, PostgresStore, PostgresTrace, parse_address

HELD, FREE = "traces/01HELD", "traces/01OTHER"


def nothing(_done: int, _total: int) -> None:
    pass


def note(text: str) -> NoticeEvent:
    return NoticeEvent(code="test", message=text)


async def write_streams(state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        for name in (HELD, FREE):
            await trace.append(name, [note("a needle")])


def copied_streams(postgres: Server, state_dir: Path, cache: Path, clock: Any) -> tuple[str, Library]:
    """The streams in a new store: its URL, and the library that reads them."""
    asyncio.run(write_streams(state_dir, clock))
    url = postgres.new_url()
    copy_store(str(state_dir), url, nothing)
    return url, PostgresStore(parse_address(url), cache).library()


async def test_a_stream_that_somebody_writes_is_named_and_the_others_are_copied(
    postgres: Server, state_dir: Path, clock: Any
) -> None:
    await write_streams(state_dir, clock)
    url = postgres.new_url()
    async with PostgresTrace(url, clock=clock) as other:
        await other.append(HELD, [note("mine")])
        done = await asyncio.to_thread(copy_store, str(state_dir), url, nothing)
    assert done.streams == [FREE]
    assert list(done.refused) == [HELD]
    assert done.refused[HELD].startswith("another writer has the stream: "), "the store is not to blame"


@pytest.mark.parametrize("out", [False, True])
async def test_a_copy_ends_when_the_server_is_gone_instead_of_trying_every_stream(
    postgres: Server, state_dir: Path, tmp_path: Path, clock: Any, out: bool
) -> None:
    await write_streams(state_dir, clock)
    url, proxy = postgres.new_url(), CuttingProxy(postgres.port)
    copy_store(str(state_dir), url, nothing)
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        for name in (HELD, FREE):
            await trace.append(name, [note("more")])
    through = url.replace(f":{postgres.port}/", f":{proxy.port}/") + "&sslmode=disable&gssencmode=disable"
    seen: list[int] = []

    def vanish(done: int, _total: int) -> None:
        seen.append(done)
        proxy.close()

    source, target = (through, str(tmp_path / "out" / ".agentfs")) if out else (str(state_dir), through)
    with pytest.raises(StoreUnreachable):
        copy_store(source, target, vanish)
    assert seen == [0]


def test_the_owner_builds_the_index_again_and_nobody_else(
    postgres: Server, state_dir: Path, tmp_path: Path, clock: Any
) -> None:
    url, library = copied_streams(postgres, state_dir, tmp_path / "cache", clock)
    before = library.search("needle")
    assert reindex_store(url, nothing) == 2
    assert library.search("needle") == before and len(before) == 2
    with postgres.connect() as connection:
        connection.execute("CREATE ROLE never_rebuilds LOGIN")
    make_store(url, readers=["never_rebuilds"])
    with pytest.raises(ConfigError) as refused:
        reindex_store(url.replace("owner@", "never_rebuilds@"), nothing)
    assert "connect as that role" in (refused.value.hint or "")


def test_an_index_that_is_built_again_while_a_reader_fills_it_is_whole(
    postgres: Server, state_dir: Path, tmp_path: Path, clock: Any
) -> None:
    url, library = copied_streams(postgres, state_dir, tmp_path / "cache", clock)
    assert len(library.search("needle")) == 2
    asyncio.run(write_streams(state_dir, clock))
    copy_store(str(state_dir), url, nothing)
    schema = parse_address(url).schema
    with postgres.connect() as reader, ThreadPoolExecutor(1) as thread:
        with reader.transaction():
            reader.execute(f"SELECT {schema}.update_index(100)")
            rebuilt = thread.submit(reindex_store, url, nothing)
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            with postgres.connect() as other:
                while not other.execute(waiting).fetchone()[0]:  # type: ignore[index]
                    assert not rebuilt.done(), "it was not held up: nothing is tested"
        rebuilt.result()
    assert len(library.search("needle")) == 4
