"""What the functions of a Postgres store refuse, and what roles may do after a migration."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from postgres import Server
from remora.app import make_store
from remora.events import AgentEndEvent, AgentStartEvent, NoticeEvent
from remora.trace import PostgresBlobs, PostgresStore, PostgresTrace, parse_address
from remora.trace.postgres import schema
from remora.trace.postgres.schema import MIGRATIONS, VERSION

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: no test of the Postgres store")

STREAM = "traces/01TEST"


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.new_url()


def ask(url: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    address = parse_address(url)
    with psycopg.connect(address.url, autocommit=True) as connection:
        cursor = connection.execute(sql.replace("@", address.schema), values)
        return cursor.fetchall() if cursor.description else []


async def _one_agent(trace: PostgresTrace) -> None:
    found = NoticeEvent(code="test", message="a needle")
    async with trace:
        await trace.append(STREAM, [AgentStartEvent(format=1, goal="look"), found, AgentEndEvent()])


def test_no_writer_can_place_a_line_without_the_check_of_the_epoch(url: str, clock: Any) -> None:
    ask(url, "CREATE ROLE sly_writer LOGIN")
    make_store(url, writers=["sly_writer"])
    asyncio.run(_one_agent(PostgresTrace(url, clock=clock)))
    as_writer = url.replace("//owner@", "//sly_writer@")
    writer = ask(as_writer, "SELECT @.enter('sly', interval '1 hour')")[0][0]
    own, epoch, *_ = ask(as_writer, "SELECT * FROM @.open_stream('traces/01SLY', %s)", writer)[0]
    ((sealed,),) = ask(url, "SELECT id FROM @.streams WHERE stream_id = %s", STREAM)
    none = "'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'"
    mine = f"'{{{own}}}', '{{{epoch}}}', '{{0}}', '{{NULL}}', '{{1}}', '{{2}}', '{{1}}', '{{f}}'"
    gap = mine.replace("'{1}', '{2}'", "'{2}', '{2}'")
    for checked, streams, places in (
        (none, [sealed], "9"),
        (mine, [sealed], "9"),
        (mine, [own, sealed], "09"),
        (gap, [own], "0"),
    ):
        lines = [streams, places, [epoch] * len(streams), "x" * len(streams)]
        columns = ", ".join(f"'{{{','.join(map(str, column))}}}'" for column in lines)
        with pytest.raises(psycopg.Error, match="belongs to no stream"):
            ask(as_writer, f"SELECT @.append_all({checked}, {columns}, true)")
    assert ask(url, "SELECT count(*) FROM @.records") == [(3,)]


def test_no_writer_can_change_a_blob_or_store_one_under_a_digest_that_is_not_its_own(url: str) -> None:
    ask(url, "CREATE ROLE blob_writer LOGIN")
    make_store(url, writers=["blob_writer"])
    as_writer = url.replace("//owner@", "//blob_writer@")
    name = asyncio.run(PostgresBlobs(as_writer).put(b"bytes")).removeprefix("sha256:")
    ask(as_writer, f"SELECT @.put_part('\\x{name}', 1, 'more')")
    assert ask(url, "SELECT data FROM @.blob_parts") == [(b"bytes",)]
    ask(url, "UPDATE @.blobs SET pruned = true")
    ask(url, "DELETE FROM @.blob_parts")
    other = "ab" * 32
    ask(as_writer, f"SELECT @.put_part('\\x{other}', 0, 'wrong')")
    for which, size in ((name, 5), (other, 5), (other, 6)):
        with pytest.raises(psycopg.Error, match="not those of its digest"):
            ask(as_writer, f"SELECT @.put_blob('\\x{which}', {size})")
    assert ask(url, "SELECT pruned FROM @.blobs") == [(True,)]


@pytest.mark.parametrize("version", range(1, VERSION))
def test_an_older_store_is_brought_up_to_date_with_its_streams_and_the_rights_of_its_roles(
    url: str, clock: Any, tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", MIGRATIONS[:version])
    monkeypatch.setattr(schema, "VERSION", version)
    monkeypatch.setattr(schema, "_READER", schema._READER if version > 1 else ())
    roles = [f"the_{kind}_of_{version}" for kind in ("writer", "reader")]
    for role in roles:
        ask(url, f"CREATE ROLE {role} LOGIN")
    assert make_store(url, writers=roles[:1], readers=roles[1:]) == (0, version)
    asyncio.run(_one_agent(PostgresTrace(url, clock=clock)))
    before = ask(url, "SELECT line FROM @.records ORDER BY seq")
    monkeypatch.undo()
    assert make_store(url) == (version, VERSION)
    assert ask(url, "SELECT line FROM @.records ORDER BY seq") == before
    as_writer, as_reader = (url.replace("//owner@", f"//{role}@") for role in roles)
    asyncio.run(PostgresBlobs(as_writer).put(b"bytes"))
    library = PostgresStore(parse_address(as_reader), tmp_path).library()
    assert [hit.event.seq for hit in library.search("needle")] == [1]
