"""The Postgres store: bytes equal to a file's, one writer by epoch, least privilege, migrations, copies."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutting_proxy import CuttingProxy
from postgres import Server
from remora.app import copy_store, describe_store, make_store, open_project
from remora.errors import ConfigError, StoreUnreachable, TraceError, TraceFenced, TraceLocked, TraceSealed
from remora.events import (
    AgentEndEvent,
    AgentStartEvent,
    BlobRef,
    Event,
    NoticeEvent,
    RunStartEvent,
    ToolResultEvent,
    UnknownEvent,
)
from remora.trace import (
    FileBlobs,
    FileTrace,
    Filter,
    Library,
    PostgresBlobs,
    PostgresStore,
    PostgresTrace,
    Retention,
    is_store_url,
    parse_address,
    read_lines,
    without_password,
)
from remora.trace.postgres.committer import Committer
from remora.trace.postgres.connection import connect_bare, driver, store_error
from remora.trace.postgres.schema import VERSION

STREAM = "traces/01TEST"
NO_TLS = "sslmode=disable&gssencmode=disable"


def nothing(_done: int, _total: int) -> None:
    pass


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.new_url()


@pytest.fixture
def store(url: str, tmp_path: Path) -> Iterator[PostgresStore]:
    found = PostgresStore(parse_address(url), tmp_path / "cache")
    yield found
    found.blobs.close()
    found.mirror.reader.close()


def note(text: str) -> NoticeEvent:
    return NoticeEvent(code="test", message=text)


def ask(url: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    import psycopg

    address = parse_address(url)
    with psycopg.connect(address.url, autocommit=True) as connection:
        cursor = connection.execute(sql.replace("@", address.schema), values)
        return cursor.fetchall() if cursor.description else []


# Addresses


def test_a_password_is_in_no_text_about_the_store() -> None:
    address = parse_address("postgres://me:h%40unter2@db:5433/x?schema=team&password=other&sslmode=require")
    assert address.shown == "postgres://me@db:5433/x?sslmode=require&schema=team"
    assert "unter2" not in repr(address)
    assert (address.password, address.schema) == ("h@unter2", "team")
    assert address.digest == parse_address("postgres://me:changed@db:5433/x?schema=team&sslmode=require").digest


@pytest.mark.parametrize(
    "url",
    [
        "mysql://db/x", "postgres://db/x?schema=A", "postgres://db/x?schema=a;drop", "postgres://db/x?schema=",
        "postgres://db:port/x", "postgres://[db/x", "postgres://db/x?schema=" + "a" * 60,
    ],
)  # fmt: skip
def test_a_bad_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_address(url.replace("://", "://me:hunter2secret@", 1))
    assert "hunter2secret" not in str(refused.value)
    assert "hunter2secret" not in without_password(url.replace("://", "://me:hunter2secret@", 1))


@pytest.mark.parametrize("password", ["hun/ter2", "hun#ter2", "hun?ter2", "123/ter2", "123?a=ter2", "%zzter2"])
def test_a_password_that_is_not_escaped_is_refused_and_no_part_of_it_is_shown(password: str) -> None:
    url = f"postgres://me:{password}@db/x"
    with pytest.raises(ConfigError, match="not valid") as refused:
        parse_address(url)
    for part in ("hun", "ter2", "123"):
        assert part not in f"{refused.value} {refused.value.hint} {without_password(url)}"
    assert parse_address(f"postgres://me:{quote(password, safe='')}@db/x").password == password


def test_a_database_without_a_host_is_one_on_this_machine() -> None:
    assert parse_address("postgres:///x?sslmode=disable").url == "postgresql:///x?sslmode=disable"
    with pytest.raises(ConfigError, match="neither a host nor a database"):
        parse_address("postgres://")


def test_a_parameter_that_postgres_does_not_know_is_an_error_of_the_url() -> None:
    address = parse_address("postgres://me:hunter2@127.0.0.1:1/x?nosuch=1")
    with pytest.raises(ConfigError, match=r"is not valid.*nosuch") as refused:
        connect_bare(address)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('port 1 failed: FATAL:  password authentication failed for user "me"', ConfigError),
        ('port 1 failed: FATAL:  database "x" does not exist', ConfigError),
        ("port 1 failed: FATAL:  the database system is starting up", StoreUnreachable),
        ("port 1 failed: FATAL:  sorry, too many clients already", StoreUnreachable),
        ("port 1 failed: Connection refused", StoreUnreachable),
    ],
)
def test_a_server_that_refuses_is_told_from_one_that_is_away(said: str, kind: type[Exception]) -> None:
    error = store_error(driver().OperationalError(said), parse_address("postgres://me:hunter2@db/x"))
    assert type(error) is kind
    assert ("password" in str(error.hint)) == (kind is ConfigError)


def test_a_role_that_does_not_exist_is_named(url: str) -> None:
    with pytest.raises(ConfigError, match='role "nobody_here" does not exist') as refused:
        make_store(url, writers=["nobody_here"])
    assert "CREATE ROLE" in str(refused.value.hint)


@pytest.mark.parametrize(("commit_s", "every_s"), [(0.0, 0.05), (0.004, 0.05), (0.02, 0.2), (3.0, 1.0)])
def test_notices_are_at_most_a_tenth_of_the_commits_and_come_every_second(commit_s: float, every_s: float) -> None:
    async def pause() -> float:
        committer = Committer(parse_address("postgres://db/x"))
        committer._commit_s = commit_s
        return committer._notify_every_s

    assert asyncio.run(pause()) == pytest.approx(every_s)


def test_a_path_is_no_store() -> None:
    assert is_store_url("postgres://db/x") and is_store_url("postgresql://db/x")
    assert not is_store_url(".agentfs") and not is_store_url("postgres:/db") and not is_store_url("file:///x")


# The same bytes


_numbers = count()


@cache
def shared_url(server: Server) -> str:
    """One store for all examples: making it takes longer than using it."""
    return server.new_url()


texts = st.text(alphabet="a\0\x1b\ufeffé\u2028\U0001f40d", max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5, alphabet="ab\0é\u2028"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=20)
@given(
    drafts=st.lists(
        st.tuples(st.text(alphabet="a\0\x1b\ufeffé\u2028\U0001f40d", max_size=8), values), min_size=1, max_size=6
    )
)
def test_a_stream_has_the_bytes_and_the_head_of_a_file(
    postgres: Server, tmp_path_factory: pytest.TempPathFactory, drafts: list[tuple[str, Any]]
) -> None:
    folder, url, stream = tmp_path_factory.mktemp("state"), shared_url(postgres), f"traces/{next(_numbers)}"

    class Clock:
        def __init__(self) -> None:
            self.time = datetime(2026, 1, 1, tzinfo=UTC)

        def now(self) -> datetime:
            self.time += timedelta(milliseconds=1)
            return self.time

        def monotonic(self) -> float:
            return 0.0

    async def write(trace: FileTrace | PostgresTrace) -> str:
        async with trace:
            for text, value in drafts:
                await trace.append(stream, [note(text), UnknownEvent(type="x", data={"value": value})])
            await trace.append(stream, [AgentEndEvent()])
            return await trace.head(stream)

    file_head = asyncio.run(write(FileTrace(folder, clock=Clock(), sync="off")))
    assert asyncio.run(write(PostgresTrace(url, clock=Clock()))) == file_head
    ((number, head, size),) = ask(url, "SELECT id, head, bytes FROM @.streams WHERE stream_id = %s", stream)
    lines = [line for (line,) in ask(url, "SELECT line FROM @.records WHERE stream = %s ORDER BY seq", number)]
    assert lines == [line[:-1] for line in read_lines(folder / f"{stream}.jsonl")]
    assert f"sha256:{head.hex()}" == file_head
    assert size == (folder / f"{stream}.jsonl").stat().st_size


# One writer


async def test_a_stream_with_a_live_writer_is_refused_at_once(url: str, clock: Any) -> None:
    async with PostgresTrace(url, clock=clock) as first, PostgresTrace(url, clock=clock) as second:
        await first.append(STREAM, [note("a")])
        with pytest.raises(TraceLocked):
            await second.append(STREAM, [note("b")])
        await first.close(STREAM)
        (event,) = await second.append(STREAM, [note("c")])
        assert event.seq == 1


async def test_a_writer_that_slept_past_its_lease_is_fenced(postgres: Server, url: str, clock: Any) -> None:
    proxy = CuttingProxy(postgres.port)
    asleep_url = url.replace(f":{postgres.port}/", f":{proxy.port}/") + "&" + NO_TLS
    asleep = PostgresTrace(asleep_url, clock=clock, lease_s=0.6, patience_s=60, attempt_s=60)
    await asleep.append(STREAM, [note("a")])
    proxy.freeze()
    late = asyncio.create_task(asleep.append(STREAM, [note("from the past")]))
    async with PostgresTrace(url, clock=clock) as other:
        while True:
            try:
                assert await other.reopen(STREAM) == 0
                break
            except TraceLocked:
                await asyncio.sleep(0.05)
        await other.append(STREAM, [note("b")])
        proxy.thaw()
        with pytest.raises(TraceFenced, match="taken over"):
            await late
        with pytest.raises(TraceFenced):
            await asleep.append(STREAM, [note("again")])
        await other.append(STREAM, [note("c")])
        texts = [event.message async for event in other.read(STREAM) if isinstance(event, NoticeEvent)]
    assert texts == ["a", "b", "c"]
    await asleep.aclose()
    proxy.close()


async def test_a_writer_that_reconnected_holds_its_streams_when_the_server_drops_its_former_session(
    url: str, clock: Any
) -> None:
    async with PostgresTrace(url, clock=clock, lease_s=0.3) as trace:
        await trace.append(STREAM, [note("a")])
        committer = trace._committer
        assert committer is not None
        former, committer._connection = committer._connection, None  # cut, and the server has not noticed
        await trace.append(STREAM, [note("b")])
        assert former is not None
        await former.close()
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND classid::bigint = "
        held += "(hashtext('@')::bigint & 4294967295)"
        async with asyncio.timeout(60):
            while ask(url, held, committer.writer) != [(1,)]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_a_claim_takes_a_stream_over_that_was_opened_and_never_written(url: str, clock: Any) -> None:
    async with PostgresTrace(url, clock=clock) as first, PostgresTrace(url, clock=clock) as second:
        assert await first.claim(STREAM) == -1
        with pytest.raises(TraceLocked):
            await second.claim(STREAM)
        await first.close(STREAM)
        assert await second.claim(STREAM) == -1
        with pytest.raises(TraceLocked):
            await first.append(STREAM, [note("late")])
        (event,) = await second.append(STREAM, [note("a")])
        assert event.seq == 0


async def test_a_writer_that_was_fenced_goes_on_only_after_it_claimed_the_stream_again(url: str, clock: Any) -> None:
    async with PostgresTrace(url, clock=clock) as trace:
        await trace.append(STREAM, [note("a")])
        ask(url, "UPDATE @.streams SET epoch = epoch + 1, writer = NULL")  # another writer had it
        for _ in range(2):
            with pytest.raises(TraceFenced):
                await trace.append(STREAM, [note("refused")])
        assert await trace.claim(STREAM) == 0
        (event,) = await trace.append(STREAM, [note("b")])
        assert event.seq == 1


async def test_a_process_that_was_stopped_longer_than_its_patience_asks_again_when_it_wakes(
    url: str, clock: Any
) -> None:
    async with PostgresTrace(url, clock=clock, patience_s=3, attempt_s=3) as trace:
        await trace.append(STREAM, [note("a")])
        late = asyncio.create_task(trace.append(STREAM, [note("b")]))
        while not trace._committer._is_committing:  # type: ignore[union-attr] # noqa: ASYNC110
            await asyncio.sleep(0)
        time.sleep(3.3)  # noqa: ASYNC251 - like a stopped process, the loop sees neither answers nor the time
        (event,) = await late
        assert event.seq == 1
        texts = [event.message async for event in trace.read(STREAM) if isinstance(event, NoticeEvent)]
    assert texts == ["a", "b"]


async def test_many_writers_that_race_for_a_stream_never_interleave(url: str, clock: Any) -> None:
    make_store(url)
    won: list[str] = []

    async def race(name: str) -> None:
        async with PostgresTrace(url, clock=clock) as trace:
            try:
                for number in range(3):
                    await trace.append(STREAM, [note(f"{name} {number}")])
                won.append(name)
            except TraceLocked:
                return

    for start in range(0, 40, 10):
        await asyncio.gather(*(race(str(start + number)) for number in range(10)))
    async with PostgresTrace(url, clock=clock) as trace:
        texts = [event.message async for event in trace.read(STREAM) if isinstance(event, NoticeEvent)]
    assert texts == [f"{name} {number}" for name in won for number in range(3)]


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("at", range(0, 120, 12))
async def test_a_cut_connection_loses_nothing_and_repeats_nothing(
    postgres: Server, url: str, clock: Any, side: Any, at: int
) -> None:
    make_store(url)
    await append_through(CuttingProxy(postgres.port, cut_side=side, cut_at=at), url, postgres, clock)


async def append_through(proxy: CuttingProxy, url: str, postgres: Server, clock: Any, batches: int = 4) -> int:
    """Append to two streams through the proxy. What was acknowledged is there, once; the chain is whole."""
    through = url.replace(f":{postgres.port}/", f":{proxy.port}/") + "&" + NO_TLS
    acknowledged: dict[str, list[Event]] = {"traces/01A": [], "traces/01B": []}
    try:
        async with PostgresTrace(through, clock=clock) as trace:
            for number in range(batches):
                done = await asyncio.gather(
                    *(trace.append(name, [note(f"{number}"), note("more")]) for name in acknowledged),
                    return_exceptions=True,
                )
                for seen, events in zip(acknowledged.values(), done, strict=True):
                    if isinstance(events, BaseException):
                        assert isinstance(events, TraceError), events
                    else:
                        seen += events
    except TraceError:
        pass  # it could not even begin, or close
    finally:
        proxy.close()
    async with PostgresTrace(url, clock=clock) as trace:
        for name, seen in acknowledged.items():
            found = [event async for event in trace.read(name)] if seen else []
            assert found[: len(seen)] == seen
            assert len(found) <= batches * 2
            assert [event.seq for event in found] == list(range(len(found)))
    return sum(map(len, acknowledged.values()))


# Least privilege


def test_a_writer_may_append_and_read_but_change_and_delete_nothing(postgres: Server, url: str, clock: Any) -> None:
    import psycopg

    ask(url, "CREATE ROLE the_writer LOGIN")
    ask(url, "CREATE ROLE the_reader LOGIN")
    make_store(url, writers=["the_writer"], readers=["the_reader"])
    as_writer, as_reader = (url.replace("//owner@", f"//{role}@") for role in ("the_writer", "the_reader"))

    async def work() -> None:
        async with PostgresTrace(as_writer, clock=clock) as trace:
            await trace.append(STREAM, [note("a"), AgentEndEvent()])
        await PostgresBlobs(as_writer).put(b"bytes")
        async with PostgresTrace(as_reader, clock=clock) as trace:
            with pytest.raises(ConfigError, match="permission denied") as refused:
                await trace.append("traces/01OTHER", [note("b")])
            assert "--writer ROLE" in (refused.value.hint or "")

    with pytest.raises(ConfigError, match="permission denied for database") as denied:
        make_store(f"{as_writer}_of_my_own")
    assert "GRANT CREATE ON DATABASE" in (denied.value.hint or "")
    asyncio.run(work())
    tables = ("records", "streams", "blobs", "blob_parts", "writers", "index_events", "migrations")
    for role in (as_writer, as_reader):
        for sql in ("DELETE FROM @.{}", "TRUNCATE @.{}", "DROP TABLE @.{}", "INSERT INTO @.{} DEFAULT VALUES"):
            for table in tables:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    ask(role, sql.format(table))
        for sql in ("UPDATE @.records SET line = ''", "UPDATE @.streams SET epoch = 9", "SELECT @.forget_index()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ask(role, sql)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(as_reader, "SELECT @.append(1, 1, 0, NULL, ARRAY['x'::bytea], false, true)")


def test_a_reader_reads_searches_and_verifies_but_cannot_prune(url: str, clock: Any, tmp_path: Path) -> None:
    ask(url, "CREATE ROLE only_reads LOGIN")
    make_store(url, readers=["only_reads"])
    asyncio.run(_one_agent(PostgresTrace(url, clock=clock)))
    library = PostgresStore(parse_address(url.replace("//owner@", "//only_reads@")), tmp_path).library()
    assert [info.stream_id for info in library.agents()] == [STREAM]
    assert [hit.event.seq for hit in library.search("needle")] == [1]
    (report,) = library.verify().by_ids()
    assert (report.status, str(report.file)) == ("sealed", STREAM)
    plan = library.plan_prune(Retention(max_age_days=0), datetime(2030, 1, 1, tzinfo=UTC))
    assert [stream.stream_id for stream in plan.streams] == [STREAM]
    with pytest.raises(ConfigError, match="permission denied") as refused:
        library.prune(plan)
    assert "Only the store's owner" in (refused.value.hint or "")


async def _one_agent(trace: PostgresTrace) -> None:
    async with trace:
        await trace.append(STREAM, [AgentStartEvent(format=1, goal="look"), note("a needle"), AgentEndEvent()])


# Migrations


def test_many_that_make_the_store_at_once_make_one(url: str) -> None:
    found: list[tuple[int, int]] = []
    threads = [threading.Thread(target=lambda: found.append(make_store(url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(before for before, _ in found) == [0, *[VERSION] * 3]
    assert make_store(url) == (VERSION, VERSION)
    assert describe_store(url).problems == ()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_character_is_refused(url: str, encoding: str) -> None:
    name = f"of_{encoding.lower()}"
    ask(url, f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(ConfigError, match=f"`{name}` has the encoding `{encoding}`: expected `UTF8`"):
        make_store(url.replace("/postgres?", f"/{name}?"))


def test_a_store_of_another_version_is_refused_with_what_to_do(url: str, tmp_path: Path) -> None:
    library = PostgresStore(parse_address(url), tmp_path).library()
    with pytest.raises(ConfigError, match="There is no trace store"):
        library.agents()
    with pytest.raises(ConfigError, match="There is no trace store"):
        describe_store(url)
    make_store(url)
    ask(url, "INSERT INTO @.migrations (version) VALUES (99)")
    with pytest.raises(ConfigError, match=f"supports versions up to {VERSION}"):
        library.agents()
    ask(url, "DELETE FROM @.migrations WHERE version > 1")
    with pytest.raises(ConfigError, match=f"has version 1: expected {VERSION}"):
        library.agents()


# Index, retention, copies


async def _fill(trace: FileTrace | PostgresTrace, blobs: Any) -> None:
    big = await blobs.put(b"haystack \xff with a pin " * 2000)
    ref = BlobRef(blob=big, size=46000, encoding="utf-8")
    async with trace:
        await trace.append(
            "runs/01M7MC8Z4XD8NNSD1P8DEMWAC0", [RunStartEvent(format=1, run_id="01M7MC8Z4XD8NNSD1P8DEMWAC0")]
        )
        for number, operation in enumerate(["lint", "docstring", "lint"]):
            who = {"run_id": "01M7MC8Z4XD8NNSD1P8DEMWAC0", "operation": operation, "node_id": f"src/a.py:f{number}"}
            name = f"01M7MC8Z4XD8NNSD1P9JCGGC0{number}"
            results = [
                ToolResultEvent(
                    call_id="1", tool="run_linter", outcome="error", raw={"found": ["Übung src/a.py"]}, turn=1, **who
                ),
                ToolResultEvent(call_id="2", tool="read", outcome="success", raw_ref=ref, turn=2, **who),
                UnknownEvent(type="odd", data={"text": "NUL \0 here", "raw": None}, turn=2, **who),
            ]
            start = AgentStartEvent(format=1, goal=f"goal {number}", agent_id=name, **who)
            await trace.append(f"traces/{name}", [start, *results, AgentEndEvent(outcome="partial", **who)])


FILTERS = [
    Filter(), Filter(operation="lint"), Filter(node="src/a.py:f1"), Filter(tool="run_linter"),
    Filter(outcome="partial"),
    Filter(type="odd"), Filter(turn=2), Filter(since="2026-11-15", until="2026-11-16"), Filter(since="2027-01-01"),
    Filter(run="AC0"), Filter(operation="\ud800"), Filter(tool="x\0y"),
]  # fmt: skip


async def test_sql_finds_what_the_index_of_a_folder_finds(
    store: PostgresStore, url: str, state_dir: Path, tmp_path: Path, clock: Any
) -> None:
    await _fill(PostgresTrace(url, clock=clock), store.blobs)
    copy_store(url, str(state_dir), nothing)
    files, stored = Library(state_dir), store.library()
    for wanted in FILTERS:
        assert stored.agents(wanted) == files.agents(wanted), wanted
        assert stored.newest_agents(wanted, limit=2) == files.newest_agents(wanted, limit=2), wanted
    for words in ["haystack", "pin", "goal", "src/a.py", "Goal 1", "here NUL", "nowhere", "a.py src", "found"]:
        assert stored.search(words) == files.search(words), words
        assert stored.search(words, Filter(operation="lint"), limit=1) == files.search(
            words, Filter(operation="lint"), limit=1
        )
    ask(url, "SELECT @.forget_index()")
    assert stored.agents() == files.agents()


async def test_a_copy_to_files_and_back_keeps_every_byte(
    store: PostgresStore, url: str, postgres: Server, state_dir: Path, tmp_path: Path, clock: Any
) -> None:
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        await _fill(trace, FileBlobs(state_dir))
    there, back = postgres.new_url(), tmp_path / "back" / ".agentfs"
    done = copy_store(str(state_dir), there, nothing)
    assert (len(done.streams), done.blobs, done.refused) == (4, 1, {})
    again = copy_store(str(state_dir), there, nothing)
    assert (again.streams, again.same, again.records) == ([], 4, 0)
    copy_store(there, str(back), nothing)
    originals = {path.name: path.read_bytes() for path in state_dir.glob("*/*.jsonl")}
    assert {path.name: path.read_bytes() for path in back.glob("*/*.jsonl")} == originals
    assert not Library(back).verify().damaged
    assert not PostgresStore(parse_address(there), tmp_path / "cache2").library().verify().damaged


async def test_a_copy_continues_a_stream_and_refuses_another(url: str, state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        await trace.append(STREAM, [note("a")])
        copy_store(str(state_dir), url, nothing)
        await trace.append(STREAM, [note("b"), AgentEndEvent()])
        done = copy_store(str(state_dir), url, nothing)
        assert (done.streams, done.records) == ([STREAM], 2)
    (state_dir / f"{STREAM}.jsonl").unlink()
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        await trace.append(STREAM, [note("another stream"), note("of the same name"), note("x"), note("y")])
    assert list(copy_store(str(state_dir), url, nothing).refused) == [STREAM]
    assert list(copy_store(url, str(state_dir), nothing).refused) == [STREAM]


async def test_damage_in_the_database_is_found(store: PostgresStore, url: str, clock: Any) -> None:
    await _fill(PostgresTrace(url, clock=clock), store.blobs)
    library = store.library()
    assert not library.verify().damaged
    ask(url, "UPDATE @.records SET line = set_byte(line, 40, get_byte(line, 40) # 1) WHERE stream = 2 AND seq = 3")
    assert [report.seq for report in library.verify() if report.status == "damaged"] == [3]
    ask(url, "UPDATE @.records SET line = set_byte(line, 40, get_byte(line, 40) # 1) WHERE stream = 2 AND seq = 3")
    ask(url, "DELETE FROM @.records WHERE stream = 3 AND seq = 4")
    with pytest.raises(TraceError, match="no record 4"):
        library.verify()
    ask(url, "UPDATE @.streams SET records = 4 WHERE id = 3")
    assert [report.status for report in library.verify()].count("damaged") == 1
    ask(url, "UPDATE @.blob_parts SET data = 'other'")
    assert library.verify().blobs.damaged == 1


async def test_retention_deletes_streams_and_their_blobs_and_verify_tells_pruned_from_lost(
    store: PostgresStore, url: str, clock: Any
) -> None:
    await _fill(PostgresTrace(url, clock=clock), store.blobs)
    library, later = store.library(), datetime(2030, 1, 1, tzinfo=UTC)
    async with PostgresTrace(url, clock=clock) as trace:
        await trace.append("traces/01OPEN", [note("open")])
        plan = library.plan_prune(Retention(keep_last=0), later)
        assert len(plan.streams) == 3
        ask(url, "UPDATE @.blobs SET stored = stored - interval '2 hours'")
        result = library.prune(library.plan_prune(Retention(keep_last=1), later))
        assert (len(result.streams), len(result.blobs)) == (1, 0)
        result = library.prune(library.plan_prune(Retention(keep_last=0), later))
        assert (len(result.streams), len(result.blobs)) == (2, 1)
    assert not library.verify().damaged
    assert ask(url, "SELECT count(*) FROM @.blob_parts") == [(0,)]


async def test_tail_follows_a_stream_to_its_seal(store: PostgresStore, url: str, clock: Any) -> None:
    async with PostgresTrace(url, clock=clock) as trace:
        await trace.append(STREAM, [note("a")])

        async def follow() -> list[int]:
            return [event.seq async for event in store.library().tail("01TEST", follow=True)]

        following = asyncio.create_task(follow())
        for text in "bc":
            await trace.append(STREAM, [note(text)])
            await asyncio.sleep(0)
        await trace.append(STREAM, [AgentEndEvent()])
        assert await following == [0, 1, 2, 3]


async def test_nothing_follows_a_seal_also_for_a_new_writer(url: str, clock: Any) -> None:
    async with PostgresTrace(url, clock=clock) as trace:
        await trace.append(STREAM, [AgentEndEvent()])
    async with PostgresTrace(url, clock=clock) as trace:
        assert await trace.reopen(STREAM) == 0
        with pytest.raises(TraceSealed):
            await trace.append(STREAM, [note("late")])


async def test_blobs_of_many_parts_come_back(url: str) -> None:
    blobs = PostgresBlobs(url)
    parts = [bytes([number]) * 700_000 for number in range(5)]
    digest, size = await blobs.put_chunks(iter(parts))
    assert (await blobs.get(digest), size) == (b"".join(parts), 3_500_000)
    with pytest.raises(TraceError, match="more than"):
        await blobs.get(digest, limit=1000)
    blobs.close()


# Settings


def test_a_repository_cannot_name_a_store(tmp_path: Path) -> None:
    (tmp_path / "remora.yaml").write_text("runner: {memory: {trace_store: 'postgres://evil@host/x'}}\n")
    with pytest.raises(ConfigError, match="a repository may not set this to anything but `jsonl` or `kv`"):
        open_project(tmp_path)


def test_the_environment_and_a_flag_name_a_store_and_no_listing_shows_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "postgres://me:hunter2secret@db/x"
    monkeypatch.setenv("REMORA_RUNNER__MEMORY__TRACE_STORE", secret)
    for project in (open_project(tmp_path), open_project(tmp_path, state_dir=secret)):
        assert project.store is not None
        assert str(project.store.address) == "postgres://me@db/x"
        assert "hunter2secret" not in str(project.settings.listed())
        assert project.secrets.clean("x hunter2secret y") != "x hunter2secret y"


def test_the_index_of_a_folder_is_not_made_by_reading_a_store(store: PostgresStore, url: str, clock: Any) -> None:
    asyncio.run(_one_agent(PostgresTrace(url, clock=clock)))
    store.library().agents()
    assert not (store.mirror.folder / "index.db").exists()
