"""Row 34: a Postgres server that is killed, restarted, full, slow or cut off, and a writer that was asleep."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cutting_proxy import CuttingProxy
from postgres import Server, make_server
from remora.app import SystemClock, make_store
from remora.errors import TraceError, TraceLocked, TracePoisoned
from remora.events import AgentEndEvent, Event, NoticeEvent
from remora.trace import PostgresBlobs, PostgresStore, PostgresTrace, parse_address

pytestmark = pytest.mark.fleet
NO_TLS = "sslmode=disable&gssencmode=disable"
KILLS = int(os.environ.get("REMORA_KILLS", "200"))

WRITER = """
import asyncio, json, sys
from remora.app import SystemClock
from remora.events import NoticeEvent
from remora.trace import PostgresTrace

async def main(url, stream, lease):
    async with PostgresTrace(url, clock=SystemClock(), lease_s=float(lease)) as trace:
        number = 0
        while True:
            (event,) = await trace.append(stream, [NoticeEvent(message=str(number))])
            print(json.dumps([event.seq, event.message]), flush=True)
            number += 1

try:
    asyncio.run(main(*sys.argv[1:]))
except Exception as error:
    print(type(error).__name__, flush=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = make_server()
    yield found
    found.remove()


def note(text: str) -> NoticeEvent:
    return NoticeEvent(code="test", message=text)


def check(url: str, acknowledged: dict[str, list[Event]], cache: Path) -> None:
    """Everything acknowledged is there, once and in order, and every chain and blob verifies."""

    async def read() -> dict[str, list[Event]]:
        async with PostgresTrace(url, clock=SystemClock()) as trace:
            return {name: [event async for event in trace.read(name)] for name, seen in acknowledged.items() if seen}

    for name, found in asyncio.run(read()).items():
        seen = acknowledged[name]
        assert [event for event in found if event.seq in {each.seq for each in seen}] == seen, name
        texts = [event.message for event in found if isinstance(event, NoticeEvent)]
        assert len(texts) == len(set(texts)), f"{name}: an event was recorded twice"
    reports = PostgresStore(parse_address(url), cache).library().verify()
    assert not reports.damaged


class Load:
    """Writers that append, and start again after an error as a resumed run does, until they are stopped."""

    def __init__(self, url: str, streams: int = 4, **settings: float) -> None:
        self._url = url
        self._settings = settings
        self._stop = threading.Event()
        self.acknowledged: dict[str, list[Event]] = {f"traces/01S{number}": [] for number in range(streams)}
        self.errors = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            with contextlib.suppress(TraceError):
                async with PostgresTrace(self._url, clock=SystemClock(), **self._settings) as trace:
                    while not self._stop.is_set():
                        number += 1
                        await asyncio.gather(*(self._append(trace, name, number) for name in self.acknowledged))

    async def _append(self, trace: PostgresTrace, name: str, number: int) -> None:
        try:
            self.acknowledged[name] += await trace.append(name, [note(f"{number} a"), note(f"{number} b")])
        except TraceError:
            self.errors += 1
            raise

    def progress(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def wait_for_more(self) -> None:
        """Until every writer works again."""
        before = self.progress()
        while self.progress() <= before:
            threading.Event().wait(0.01)


def test_a_server_that_is_killed_loses_nothing_acknowledged(
    server: Server, tmp_path: Path, record_property: Callable[..., None]
) -> None:
    url, chance = server.new_url(), random.Random(34)
    make_store(url)
    with Load(url) as load:
        for _ in range(KILLS):
            load.wait_for_more()
            threading.Event().wait(chance.random() * 0.05)
            server.kill()
            server.start()
        load.wait_for_more()
    check(url, load.acknowledged, tmp_path)
    record_property("row 34", f"{KILLS} kills, {load.progress():,} events acknowledged: 0 lost, 0 twice")


def test_a_blob_waits_for_a_server_that_restarts(server: Server) -> None:
    blobs = PostgresBlobs(server.new_url())
    asyncio.run(blobs.put(b"before"))
    server.stop()
    start = threading.Timer(4, server.start)  # longer than a reader waits
    start.start()
    digest = asyncio.run(blobs.put(b"during"))
    start.join()
    assert blobs.read(digest) == b"during"
    blobs.close()


def test_a_server_that_is_restarted_is_waited_for(server: Server, tmp_path: Path) -> None:
    url = server.new_url()
    make_store(url)
    with Load(url) as load:
        for _ in range(5):
            load.wait_for_more()
            server.stop()
            server.start()
        load.wait_for_more()
    assert load.errors == 0
    check(url, load.acknowledged, tmp_path)


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_connection_cut_at_every_message_loses_nothing(
    server: Server, tmp_path: Path, side: Any, record_property: Callable[..., None]
) -> None:
    at, cut, url = 0, True, server.new_url()
    make_store(url)
    while cut:
        proxy = CuttingProxy(server.port, cut_side=side, cut_at=at)
        names = [f"traces/01C{at}X{number}" for number in range(2)]
        acknowledged = asyncio.run(_through(proxy, url, server, names))
        cut, at = proxy.was_cut, at + 1
        check_quickly(url, acknowledged)
    PostgresStore(parse_address(url), tmp_path).library().verify()
    record_property("row 34", f"cut before every message of the {side}, {at - 1}: 0 lost, 0 twice")


async def _through(proxy: CuttingProxy, url: str, server: Server, names: list[str]) -> dict[str, list[Event]]:
    through = url.replace(f":{server.port}/", f":{proxy.port}/") + "&" + NO_TLS
    acknowledged: dict[str, list[Event]] = {name: [] for name in names}

    async def append(trace: PostgresTrace, name: str, number: int) -> None:
        last = [AgentEndEvent()] if number == 3 else []
        acknowledged[name] += await trace.append(name, [note(f"{number} a"), note(f"{number} b"), *last])

    try:
        async with PostgresTrace(through, clock=SystemClock()) as trace:
            for number in range(4):
                await asyncio.gather(*(append(trace, name, number) for name in names))
            blobs = PostgresBlobs(through)
            name = await blobs.put(b"x" * 3000)
            assert await blobs.get(name) == b"x" * 3000
            blobs.close()
    except TraceError:
        pass  # nothing began: the very first connection was cut
    finally:
        proxy.close()
    return acknowledged


def check_quickly(url: str, acknowledged: dict[str, list[Event]]) -> None:
    async def read() -> None:
        async with PostgresTrace(url, clock=SystemClock()) as trace:
            for name, seen in acknowledged.items():
                found = [event async for event in trace.read(name)] if seen else []
                assert found[: len(seen)] == seen
                assert len(found) <= 9

    asyncio.run(read())


def test_an_answer_that_never_comes_is_asked_for_again(server: Server, tmp_path: Path) -> None:
    url = server.new_url()
    make_store(url)
    proxy = CuttingProxy(server.port, delay_s=0.002)
    through = url.replace(f":{server.port}/", f":{proxy.port}/") + "&" + NO_TLS
    with Load(through, streams=2, attempt_s=0.5, patience_s=60) as load:
        for _ in range(3):
            load.wait_for_more()
            proxy.freeze()
            threading.Event().wait(0.8)
            proxy.thaw()
        load.wait_for_more()
    proxy.close()
    assert load.errors == 0
    check(url, load.acknowledged, tmp_path)


def test_a_server_that_stays_away_ends_the_writing_and_nothing_is_acknowledged_falsely(tmp_path: Path) -> None:
    server = make_server()
    url = server.new_url()

    async def work() -> list[Event]:
        async with PostgresTrace(url, clock=SystemClock(), patience_s=0.5) as trace:
            seen = list(await trace.append("traces/01A", [note("a")]))
            await asyncio.to_thread(server.kill)
            for _ in range(2):
                with pytest.raises(TracePoisoned, match="no more events"):
                    await trace.append("traces/01A", [note("b")])
            return seen

    seen = asyncio.run(work())
    server.start()
    check(url, {"traces/01A": seen}, tmp_path)
    server.remove()


@pytest.mark.skipif(os.geteuid() != 0, reason="row 34: a full disk needs the right to mount one")
def test_a_full_disk_is_said_and_the_run_resumes_when_there_is_space(
    server: Server, tmp_path: Path, record_property: Callable[..., None]
) -> None:
    import psycopg

    place = server.folder / "small"
    place.mkdir()
    mount = ["/bin/mount", "-t", "tmpfs", "-o", f"size=6m,mode=0700,uid={server.folder.stat().st_uid}", "tmpfs", place]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("row 34: no file system can be mounted here")
    url = server.new_url()
    address = parse_address(url)
    try:
        make_store(url)
        with psycopg.connect(address.url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
            connection.execute(f"ALTER TABLE {address.schema}.records SET TABLESPACE small")
        seen: list[Event] = []

        async def fill() -> str:
            async with PostgresTrace(url, clock=SystemClock()) as trace:
                try:
                    while True:
                        number = len(seen)
                        text = f"{number} {os.urandom(20_000).hex()}"
                        seen.extend(await trace.append("traces/01FULL", [note(text)]))
                except TracePoisoned as error:
                    return error.message

        assert "disk is full" in asyncio.run(fill())
        check(url, {"traces/01FULL": seen}, tmp_path)
        with psycopg.connect(address.url, autocommit=True) as connection:
            connection.execute(f"ALTER TABLE {address.schema}.records SET TABLESPACE pg_default")
            connection.execute("DROP TABLESPACE small")

        async def resume() -> None:
            async with PostgresTrace(url, clock=SystemClock()) as trace:
                assert await trace.reopen("traces/01FULL") >= len(seen) - 1
                seen.extend(await trace.append("traces/01FULL", [note("after"), AgentEndEvent()]))

        asyncio.run(resume())
        check(url, {"traces/01FULL": seen}, tmp_path)
        record_property("row 34", f"full after {len(seen) - 2} events: said, nothing lost, resumed")
    finally:
        subprocess.run(["/bin/umount", "-l", place], check=False)


def test_a_writer_process_that_slept_is_refused_when_it_wakes(server: Server, tmp_path: Path) -> None:
    url = server.new_url()
    make_store(url)
    child = subprocess.Popen([sys.executable, "-c", WRITER, url, "traces/01A", "1"], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    seen = [json.loads(child.stdout.readline()) for _ in range(5)]
    child.send_signal(signal.SIGSTOP)

    async def take_over() -> list[Event]:
        async with PostgresTrace(url, clock=SystemClock()) as trace:
            while True:
                with contextlib.suppress(TraceLocked):
                    await trace.reopen("traces/01A")
                    break
                await asyncio.sleep(0.05)
            mine = list(await trace.append("traces/01A", [note("mine")]))
            child.send_signal(signal.SIGCONT)
            *more, last = child.stdout.read().splitlines() if child.stdout else []
            seen.extend(map(json.loads, more))
            assert last == "TraceFenced"
            return [*mine, *await trace.append("traces/01A", [note("mine too"), AgentEndEvent()])]

    mine = asyncio.run(take_over())
    child.communicate()
    check(url, {"traces/01A": mine}, tmp_path)
    assert [seq for seq, _ in seen] == list(range(len(seen)))
    assert mine[0].seq >= len(seen)


def test_the_stream_of_a_killed_writer_is_free_at_once(server: Server, record_property: Callable[..., None]) -> None:
    url = server.new_url()
    make_store(url)
    for number in range(5):
        name = f"traces/01K{number}"
        argv = [sys.executable, "-c", WRITER, url, name, "300"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()
            child.kill()
            seen = [json.loads(line) for line in child.stdout.read().splitlines()]

        async def resume(name: str = name) -> int:
            async with PostgresTrace(url, clock=SystemClock()) as trace:
                while True:
                    with contextlib.suppress(TraceLocked):  # the server has not noticed yet
                        return await trace.reopen(name)
                    await asyncio.sleep(0.01)

        assert asyncio.run(asyncio.wait_for(resume(), 30)) >= len(seen)
