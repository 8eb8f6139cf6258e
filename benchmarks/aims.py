"""The aims, and whether a run met them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Results = dict[str, Any]
Rows = list[dict[str, Any]]


def judge(results: Results) -> list[dict[str, Any]]:
    """One verdict for each aim whose figures were taken."""
    return [verdict for section, aims in AIMS.items() if results.get(section) for verdict in aims(results[section])]


def at_most(aim: str, limit: float, figures: Iterable[float], unit: str = "") -> dict[str, Any]:
    """The verdict on the largest of the figures."""
    worst = max(figures)
    return {"aim": aim, "target": f"≤ {limit:,g}{unit}", "figure": _figure(worst) + unit, "met": worst <= limit}


def at_least(aim: str, limit: float, figures: Iterable[float], unit: str = "") -> dict[str, Any]:
    """The verdict on the smallest of the figures."""
    worst = min(figures)
    return {"aim": aim, "target": f"≥ {limit:,g}{unit}", "figure": _figure(worst) + unit, "met": worst >= limit}


def _figure(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _turns(rows: Rows) -> Rows:
    most = max(row["turns"] for row in rows)
    longest = [row for row in rows if row["turns"] == most]
    return [
        at_most("CPU to record a turn, worst case", 0.3, (row["cpu_ms_events"] for row in rows), " ms"),
        at_most("last tenth of turns against first, CPU", 1.15, (row["cpu_last_to_first"] for row in longest), "×"),
        at_most("wall against the floor with as many syncs", 1.25, (row["wall_to_floor"] for row in rows), "×"),
        at_most("bytes beside output and prompt, a turn", 3000, (row["overhead_bytes"] for row in rows), " B"),
        at_most("bytes a turn, longest run against shortest", 1.15, _linear(rows), "×"),
    ]


def _linear(rows: Rows) -> list[float]:
    sizes = {row["output_kb"] for row in rows}
    by_size = [sorted((row["turns"], row["disk_bytes"]) for row in rows if row["output_kb"] == kb) for kb in sizes]
    return [found[-1][1] / found[0][1] for found in by_size]


def _reading(rows: Rows) -> Rows:
    return [at_least("`verify`, CPU time", 300, (row["verify_mb_per_s"] for row in rows), " MB/s")]


def _memory(rows: Rows) -> Rows:
    works = [name for name in rows[0] if name.endswith("_growth_mb")]
    growth = [rows[-1][work] - rows[0][work] for work in works]
    return [at_most("peak memory, longest run against shortest: write, read, verify", 4, growth, " MB")]


def _together(rows: Rows) -> Rows:
    aim = f"{rows[0]['agents']} agents together against one alone, wall"
    return [at_most(aim, rows[0]["agents"] / 2, (row["together_to_alone"] for row in rows), "×")]


def _index(rows: Rows) -> Rows:
    return [
        at_least("index rebuilt without text", 20_000, (row["rebuild_events_per_s"] for row in rows), " events/s"),
        at_most("one turn by key, warm", 5, (row["get_ms"] for row in rows), " ms"),
    ]


def _many(rows: Rows) -> Rows:
    listed = [row["cpu_s"] for row in rows if "trace ls" in row["command"] and row["index"] == "there"]
    return [at_most(f"`trace ls` of {rows[0]['streams']:,} streams from the index, CPU", 1, listed, " s")]


AIMS: dict[str, Callable[[Rows], Rows]] = {
    "turns": _turns,
    "reading": _reading,
    "memory": _memory,
    "together": _together,
    "index": _index,
    "many": _many,
}
