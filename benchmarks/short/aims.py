"""The aims of the Short Track, and whether a run met them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.aims import Results, Rows, at_least, at_most


def judge(results: Results) -> Rows:
    """One verdict for each aim whose figures were taken."""
    return [verdict for section, aims in AIMS.items() if results.get(section) for verdict in aims(results[section])]


def _folding(rows: Rows) -> Rows:
    fewest, most = rows[0], rows[-1]
    slower = fewest["per_s"] / most["per_s"]
    return [
        at_least(f"tool results folded, {fewest['keys']} keys", 50_000, [fewest["per_s"]], "/s"),
        at_most(f"the same at {most['keys']:,} keys, times as long", 1.5, [slower], "×"),
    ]


def _state(rows: Rows) -> Rows:
    in_blobs = [row for row in rows if row["output_kb"] > 16]
    small, large = min(in_blobs, key=_size), max(in_blobs, key=_size)
    by_size = [_each(row) / _each(small) for row in in_blobs if row["output_kb"] == large["output_kb"]]
    times = large["output_kb"] / small["output_kb"]
    return [
        at_most("state in a fresh process, times parsing the same lines", 2.5, (row["to_orjson"] for row in rows), "×"),
        at_most(f"the same with payloads {times:g} times as large, in blobs", 1.25, by_size, "×"),
    ]


def _size(row: dict[str, Any]) -> float:
    return float(row["output_kb"])


def _each(row: dict[str, Any]) -> float:
    return float(row["state_ms"] / row["events"])


def _rendering(rows: Rows) -> Rows:
    estimated = [row for row in rows if not row["exact"]]
    few = [row["p95_ms"] for row in estimated if row["entries"] == min(each["entries"] for each in rows)]
    many = [row["p95_ms"] for row in estimated if row["entries"] == max(each["entries"] for each in rows)]
    return [
        at_most(f"prompt of 10 actions and {rows[0]['entries']} entries, 95th percentile", 2, few, " ms"),
        at_most(f"the same with {max(row['entries'] for row in rows):,} entries", 200, many, " ms"),
    ]


def _prefix(rows: Rows) -> Rows:
    aim = f"share of prompt tokens a prefix cache can reuse, {rows[0]['turns']} turns"
    return [at_least(aim, 60, (row["reusable_share"] for row in rows), "%")]


def _long(rows: Rows) -> Rows:
    first, last = min(row["turn"] for row in rows), max(row["turn"] for row in rows)
    grown = [
        row["packet_tokens"] - row["turn_digits"] - (early["packet_tokens"] - early["turn_digits"])
        for row in rows
        for early in rows
        if row["turn"] == last and early["turn"] == first and row["counter"] == early["counter"]
    ]
    aim = f"prompt tokens at turn {last:,} beyond those at turn {first}, but for the turn's own digits"
    return [at_most(aim, 0, grown)]


def _turn(rows: Rows) -> Rows:
    estimated = rows[:1]
    return [
        at_most("a whole turn with an output of 5 KB, CPU", 1, (row["cpu_ms"] for row in estimated), " ms"),
        at_most("the last turns against the first ones", 1.25, (row["last_to_first"] for row in rows), "×"),
        at_most("wall of a turn against a floor with the same syncs", 1.5, (row["wall_to_floor"] for row in rows), "×"),
        at_most("the same where a sync takes 4 ms", 1.5, (row["slow_wall_to_floor"] for row in rows), "×"),
    ]


AIMS: dict[str, Callable[[Rows], Rows]] = {
    "folding": _folding,
    "state": _state,
    "rendering": _rendering,
    "prefix": _prefix,
    "long": _long,
    "turn": _turn,
}
