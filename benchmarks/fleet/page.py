"""The figures of the Postgres store on their page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.measure import ROOT
from remora_lab.marks import between_marks

PAGE = ROOT / "docs" / "benchmarks" / "fleet.md"
BEGIN = "<!-- figures: `python -m benchmarks.fleet --page` -->"
BEGIN_NODES = "<!-- figures: `python -m benchmarks.fleet --nodes 0,1,2,4,8,1x30,8x30 --rounds 2 --page` -->"
AIM = 2_000
KINDS = {
    (False, "streams"): "streams of one process",
    (False, "processes"): "processes",
    (True, "streams"): "rows of one insert",
    (True, "processes"): "connections",
}


def write_page(stored: dict[str, Any]) -> None:
    """Replace the figures on the page."""
    page = between_marks(PAGE.read_text(encoding="utf-8"), BEGIN, figures(stored))
    if "nodes" in stored:
        page = between_marks(page, BEGIN_NODES, node_figures(stored["nodes"]))
    PAGE.write_text(page, encoding="utf-8")


def node_figures(stored: dict[str, Any]) -> str:
    """The table of nodes, from what was measured."""
    machine, known = stored["machine"], stored["versions"]
    head = (
        f"Measured {stored['when']} on {machine['cores']} × {machine['cpu']}, {machine['system']}, Ray {known['ray']}, "
    )
    head += f"Postgres {known['postgres']}, psycopg {known['psycopg']}, Python {known['python']}."
    lines = [
        "| nodes | an agent waits | agents | agents/s | times one | events/s | one agent | its place is free after"
    ]
    lines[0] += " | engine adds | CPU of an agent: driver | node | database | workers ready after | load |"
    lines.append("|---" * (lines[0].count("|") - 1) + "|")
    ones = {row["wait_s"]: row["agents_s"] for row in stored["rows"] if row["nodes"] == 1}
    for row in stored["rows"]:
        one = ones.get(row["wait_s"])
        times = f"{row['agents_s'] / one:.2f}" if one and row["nodes"] else ""
        adds = f"{row['turnaround_s'] / row['agent_s'] - 1:.1%}"
        cells = [
            row["nodes"] or "no Ray",
            f"{row['wait_s']:g} s",
            row["agents"],
            row["agents_s"],
            times,
            row["events_s"],
            f"{row['agent_s']:.2f} s",
        ]
        cells += [f"{row['turnaround_s']:.2f} s", adds, f"{row['driver_ms']} ms", f"{row['nodes_ms']} ms"]
        cells += [f"{row.get('server_ms', '')} ms", f"{row['start_s']} s" if "start_s" in row else "", row["load"]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return head + "\n\n" + "\n".join(lines)


def figures(stored: dict[str, Any]) -> str:
    """The tables, from what was measured."""
    machine, reading = stored["machine"], stored["reading"]
    where = f"{machine['cores']} × {machine['cpu']}, {machine['system']}, {machine['filesystem']}"
    load = f"load before {stored['busy_before']['load']}, after {stored['busy_after']['load']}"
    sync = f"a sync took {stored['busy_before']['fdatasync_ms']} ms"
    head = f"Measured {stored['when']} on {where}, Postgres {stored['versions']['postgres']}, psycopg "
    head += f"{stored['versions']['psycopg']}, Python {stored['versions']['python']}; {load}; {sync}."
    best = max(row["events_s"] for row in stored["appends"] if (row["store"], row["batch"]) == ("postgres", 1))
    met = "met" if best >= AIM else "**not met** here"
    lines = ["| store | 16 writers are | events in an append | durable events/s | CPU µs an event: writer | server |"]
    lines.append("|---|---|---|---|---|---|")
    for row in stored["appends"]:
        kind = KINDS[row["store"] == "pgbench", row["as"]]
        cpu = f"{row.get('writer_us', '')} | {row.get('server_us', '')}"
        lines.append(f"| {row['store']} | {kind} | {row['batch']} | {row['events_s']:,} | {cpu} |")
    return "\n\n".join(
        [
            head,
            "\n".join(lines),
            f"The aim, {AIM:,} durable events a second from 16 writers with one event an append, is {met}: {best:,}."
            + _by_cpu(stored["appends"]),
            f"Reading a store of {reading['streams']:,} streams with {reading['events']:,} events: the first question "
            f"indexes {reading['index_events_s']:,} events/s; then `ls` takes {reading['ls_ms']} ms and a search "
            f"{reading['search_ms']} ms. Streams are fetched at {reading['fetch_events_s']:,} events/s; when nothing "
            f"is new, that takes {reading['refresh_ms']} ms. A follower sees an event {reading['follow_ms']} ms after "
            "its acknowledgement.",
        ]
    )


def _by_cpu(rows: Sequence[dict[str, Any]]) -> str:
    """What one event at a time takes of the cores, which tells more on a busy machine."""
    for row in rows:
        if (row["store"], row["as"], row["batch"]) == ("postgres", "streams", 1) and row.get("server_us"):
            taken = row["writer_us"] + row["server_us"]
            return f" By CPU, one event at a time takes {taken} µs, writer and server together: {10**6 // taken:,}/s."
    return ""
