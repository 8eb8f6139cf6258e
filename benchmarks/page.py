"""The results as tables: on the terminal, and between the marks of the documentation page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from remora_lab.marks import between_marks

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "long-track.md"
RESULTS = ROOT / "benchmarks" / "results" / "long-track.json"
BEGIN = "<!-- figures: `python -m benchmarks.page` -->"

Columns = dict[str, str]
Sections = dict[str, tuple[str, Columns]]
COLUMNS: Sections = {
    "turns": (
        "A turn",
        {
            "turns": "turns",
            "output_kb": "output, KB",
            "cpu_ms_events": "CPU to record, ms",
            "cpu_ms_handed_over": "handed to a thread, ms",
            "cpu_ms_in_memory": "in memory, ms",
            "cpu_ms_events_and_blobs": "with blobs, ms",
            "cpu_ms_loop": "whole loop, ms",
            "cpu_ms_floor": "floor, ms",
            "cpu_last_to_first": "last/first tenth",
            "syncs": "syncs",
            "wall_ms_durable": "wall, durable, ms",
            "wall_ms_floor": "floor, ms",
            "wall_to_floor": "× floor",
            "wall_to_floor_loop": "whole loop × floor",
            "disk_bytes": "bytes on disk",
            "overhead_bytes": "beside output and prompt",
        },
    ),
    "reading": (
        "Reading",
        {
            "output_kb": "output, KB",
            "stream_mb": "stream, MB",
            "events": "events",
            "verify_mb_per_s": "`verify`, MB/s",
            "verify_mb_per_s_wall": "by wall",
            "sha256_mb_per_s": "SHA-256 of each line alone, MB/s",
            "read_events_per_s": "typed events/s",
            "orjson_events_per_s": "parsed by orjson alone, events/s",
        },
    ),
    "memory": (
        "Memory",
        {
            "turns": "turns",
            "output_kb": "output, KB",
            "write_growth_mb": "writing, MB",
            "read_growth_mb": "reading, MB",
            "verify_growth_mb": "`verify`, MB",
        },
    ),
    "together": (
        "Many agents at once",
        {
            "agents": "agents",
            "turns": "turns each",
            "alone_s": "one alone, s",
            "together_s": "together, s",
            "together_cpu_s": "of it CPU, s",
            "together_to_alone": "together/alone",
            "floor_together_s": "as many floors, s",
            "together_to_floor": "× floors",
        },
    ),
    "peer": (
        "Beside LangGraph",
        {
            "turns": "turns",
            "output_kb": "output, KB",
            "variant": "LangGraph",
            "turns_done": "turns done",
            "cpu_ms": "CPU, ms",
            "remora_cpu_ms": "Remora",
            "wall_ms": "wall, ms",
            "remora_wall_ms": "Remora",
            "cpu_last_to_first": "last/first tenth, CPU",
            "disk_bytes": "bytes a turn",
            "remora_disk_bytes": "Remora",
        },
    ),
    "index": (
        "Index",
        {
            "events": "events",
            "streams": "streams",
            "rebuild_events_per_s": "rebuilt, events/s",
            "rebuild_events_per_s_cpu": "by CPU time",
            "rebuild_text_events_per_s": "with text, events/s",
            "rebuild_text_events_per_s_cpu": "by CPU time",
            "rebuild_mb": "index, MB",
            "rebuild_text_mb": "with text, MB",
            "get_ms": "one turn by key, ms",
            "get_ms_p95": "95th percentile",
        },
    ),
    "many": (
        "Many streams",
        {
            "command": "command",
            "index": "index",
            "streams": "streams",
            "runs": "runs",
            "events": "events",
            "cpu_s": "CPU, s",
            "wall_s": "wall, s",
            "start_cpu_s": "of it starting, CPU, s",
            "look_cpu_s": "`scandir` and `stat` of each, CPU, s",
            "to_look": "× that, without the start",
        },
    ),
}


def tables(results: dict[str, Any], sections: Sections = COLUMNS) -> str:
    """Everything that was measured, as Markdown."""
    parts = [aims_table(results["aims"])]
    for section, (title, columns) in sections.items():
        if results.get(section):
            parts.append(f"### {title}\n\n{_table(results[section], columns)}")
    return "\n\n".join([*parts, _where(results)])


def write_page() -> None:
    """The page holds the tables of the stored results."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def filled(page: str) -> str:
    """The page with the stored results between its marks."""
    return between_marks(page, BEGIN, tables(json.loads(Path(RESULTS).read_text(encoding="utf-8"))))


def aims_table(verdicts: list[dict[str, Any]]) -> str:
    """Each aim, and whether it was met."""
    rows = [verdict | {"met": "yes" if verdict["met"] else "**no**"} for verdict in verdicts]
    return _table(rows, {"aim": "aim", "target": "target", "figure": "measured", "met": "met"})


def _table(rows: list[dict[str, Any]], columns: Columns) -> str:
    head = ["| " + " | ".join(columns.values()) + " |", "|" + "---|" * len(columns)]
    body = ["| " + " | ".join(_cell(row.get(name)) for name in columns) + " |" for row in rows]
    return "\n".join([*head, *body])


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return f"{round(value):,}" if abs(value) >= 100 else f"{value:.3g}"


def _where(results: dict[str, Any]) -> str:
    machine, versions = results["machine"], results["versions"]
    parts = ", ".join(f"{name} {number}" for name, number in versions.items())
    load, sync = ([results[when][name] for when in ("busy_before", "busy_after")] for name in ("load", "fdatasync_ms"))
    return (
        f"{results['date']}, `{results['command']}`: {machine['cpu']}, {machine['cores']} cores, {machine['system']}, "
        f"{machine['filesystem']}; {parts}. Before and after the run, load was {load[0]} and {load[1]}, and one small "
        f"`fdatasync` took {sync[0]} and {sync[1]} ms."
    )


if __name__ == "__main__":
    write_page()
