"""The figures of the Postgres store on their page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.measure import ROOT
from remora_lab.marks import between_marks

PAGE = ROOT / "docs" / "benchmarks" / "fleet.md"
BEGIN = "<!-- figures: `python -m benchmarks.fleet --page` -->"
AIM = 2_000


def write_page(stored: dict[str, Any]) -> None:
    """Replace the figures on the page."""
    PAGE.write_text(between_marks(PAGE.read_text(encoding="utf-8"), BEGIN, figures(stored)), encoding="utf-8")


def figures(stored: dict[str, Any]) -> str:
    """The tables, from what was measured."""
    machine, reading = stored["machine"], stored["reading"]
    where = f"{machine['cores']} × {machine['cpu']}, {machine['system']}, {machine['filesystem']}"
    load = f"load before {stored['busy_before']['load']}, after {stored['busy_after']['load']}"
    sync = f"a sync took {stored['busy_before']['fdatasync_ms']} ms"
    head = f"Measured {stored['when']} on {where}, Postgres {stored['versions']['postgres']}, psycopg "
    head += f"{stored['versions']['psycopg']}, Python {stored['versions']['python']}; {load}; {sync}."
    best = max(row["events_s"] for row in stored["appends"] if row["store"] == "postgres")
    met = "met" if best >= AIM else "**not met** here"
    lines = ["| store | 16 writers are | events in an append | durable events/s | CPU µs an event: writer | server |"]
    lines.append("|---|---|---|---|---|---|")
    for row in stored["appends"]:
        kind = "streams of one process" if row["as"] == "streams" else "processes"
        cpu = f"{row.get('writer_us', '')} | {row.get('server_us', '')}"
        lines.append(f"| {row['store']} | {kind} | {row['batch']} | {row['events_s']:,} | {cpu} |")
    return "\n\n".join(
        [
            head,
            "\n".join(lines),
            f"The aim, {AIM:,} durable events a second from 16 writers, is {met}: {best:,}."
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
