"""`python -m benchmarks.fleet [--url URL]`: the Postgres store. Starts a server of its own unless a URL is given."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.fleet import appends, floor, nodes
from benchmarks.fleet.page import write_page
from benchmarks.measure import ROOT, business, machine, say, versions
from remora.app import SystemClock, describe_store, make_store
from remora.events import AgentEndEvent, AgentStartEvent, NoticeEvent, ToolResultEvent, new_id
from remora.trace import PostgresStore, PostgresTrace, parse_address

RESULTS = ROOT / "benchmarks" / "results" / "fleet.json"
WRITERS = 16
NODES = "0,1,2,4,8,1x30,8x30"
"""Numbers of nodes, the last two with agents that wait 30 s."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--url", help="a database that the figures may fill; default: a server of our own")
    parser.add_argument("--events", type=int, default=1_200, help="of each writer")
    parser.add_argument("--kinds", default="streams,processes", help="what the 16 writers are")
    parser.add_argument("--streams", type=int, default=400, help="to read and search")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="of the appends: the best one counts, as others may be busy; agents of each place on a node",
    )
    parser.add_argument("--floor-seconds", type=int, default=5, help="of pgbench beside our writers; 0: without")
    parser.add_argument("--nodes", default="", help=f"only this: numbers of Ray nodes, such as {NODES}; 0: no Ray")
    parser.add_argument("--agent-seconds", type=float, default=10.0, help="how long each agent waits")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true", help="write the figures into docs/benchmarks/fleet.md too")
    chosen = parser.parse_args()
    stored: dict[str, Any] = json.loads(chosen.out.read_text(encoding="utf-8")) if chosen.out.exists() else {}
    with _database(chosen.url) as (url, server):
        if chosen.nodes:
            cases = [nodes.Case.parse(text, chosen.agent_seconds) for text in chosen.nodes.split(",")]
            stored["nodes"] = _about(url) | {
                "busy_before": business(),
                "rows": nodes.measure(url, server, cases, rounds=chosen.rounds),
            }
        else:
            stored |= _measure(url, server, chosen)
    chosen.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    if chosen.page:
        write_page(stored)
    print(json.dumps({name: stored.get(name) for name in ("appends", "reading", "nodes")}, indent=1))


@contextmanager
def _database(given: str | None) -> Iterator[tuple[str, int | None]]:
    """The URL, and the process of a server of our own."""
    if given:
        yield given, None
        return
    sys.path.insert(0, str(ROOT / "tests"))
    from postgres import make_server

    server = make_server()
    try:
        yield server.url(), server.pid
    finally:
        server.remove()


def _measure(url: str, server: int | None, chosen: argparse.Namespace) -> dict[str, Any]:
    busy = business()
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for number in range(chosen.rounds):
        for batch in (1, 3):
            say(f"fleet: {WRITERS} writers, {batch} events at a time, round {number + 1} of {chosen.rounds}")
            fresh = f"{url}?schema=appends_{int(time.time() * 1000)}"
            make_store(fresh)
            load = appends.Load(WRITERS, chosen.events, batch)
            for row in appends.measure(fresh, load, chosen.kinds.split(","), server):
                key = (row["store"], row["as"], row["batch"])
                rows[key] = max(row, rows.get(key, row), key=lambda each: each["events_s"])
        for row in _floor(url, server, chosen.floor_seconds):
            key = (row["store"], row["as"], row["batch"])
            rows[key] = max(row, rows.get(key, row), key=lambda each: each["events_s"])
    return _about(fresh) | {
        "busy_before": busy,
        "busy_after": business(),
        "appends": list(rows.values()),
        "reading": _reading(f"{url}?schema=reading_{int(time.time())}", chosen.streams),
    }


def _about(url: str) -> dict[str, Any]:
    """When and where something was measured."""
    make_store(url)  # only a store says which server it is on
    known = {name: version(name) for name in ("psycopg", "ray") if importlib.util.find_spec(name)}
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": " ".join(["python -m benchmarks.fleet", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions() | known | {"postgres": describe_store(url).server},
    }


def _floor(url: str, server: int | None, seconds: int) -> list[dict[str, Any]]:
    """Bare inserts into a server of our own."""
    from postgres import find_binaries

    binaries = find_binaries()
    if not (server and seconds and binaries and (binaries / "pgbench").exists()):
        return []
    return floor.measure(binaries, url, server, seconds)


def _reading(url: str, streams: int) -> dict[str, Any]:
    """Fetching, indexing and searching a store of small streams, and how soon a follower sees an event."""
    say(f"fleet: reading {streams} streams")
    events = asyncio.run(_fill(url, streams))
    with tempfile.TemporaryDirectory() as cache:
        library = PostgresStore(parse_address(url), Path(cache)).library()
        index = _seconds(library.agents)
        found = {"streams": streams, "events": events, "index_events_s": round(events / index)}
        found |= {
            "ls_ms": _ms(lambda: library.newest_agents(limit=20)),
            "search_ms": _ms(lambda: library.search("needle")),
        }
        found |= {"fetch_events_s": round(events / _seconds(library.refresh)), "refresh_ms": _ms(library.refresh)}
        return found | {"follow_ms": asyncio.run(_follow(url, library))}


async def _fill(url: str, streams: int) -> int:
    clock = SystemClock()
    async with PostgresTrace(url, clock=clock) as trace:
        for start in range(0, streams, 50):
            await asyncio.gather(*(_one(trace, number, clock) for number in range(start, min(start + 50, streams))))
    return streams * 25


async def _one(trace: PostgresTrace, number: int, clock: SystemClock) -> None:
    results = [ToolResultEvent(call_id=str(at), tool="t", outcome="success", raw=appends.RAW) for at in range(22)]
    words = NoticeEvent(message="a needle" if number % 100 == 0 else "hay")
    await trace.append(f"traces/{new_id(clock.now())}", [AgentStartEvent(format=1), *results, words, AgentEndEvent()])


async def _follow(url: str, library: Any) -> float:
    """Milliseconds from the acknowledgement of an event to its appearance in `tail`, median of 20."""
    async with PostgresTrace(url, clock=SystemClock()) as trace:
        await trace.append("traces/followed", [NoticeEvent(message="begin")])
        following = aiter(library.tail("followed", follow=True))
        await anext(following)
        took = []
        for _ in range(20):
            waiting = asyncio.ensure_future(anext(following))
            await asyncio.sleep(0.2)
            await trace.append("traces/followed", [NoticeEvent(message="more")])
            began = time.perf_counter()
            await waiting
            took.append(time.perf_counter() - began)
        await following.aclose()
    return round(1000 * sorted(took)[len(took) // 2], 1)


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _ms(work: Any) -> float:
    return round(1000 * sorted(_seconds(work) for _ in range(5))[2], 1)


if __name__ == "__main__":
    main()
