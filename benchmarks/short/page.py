"""The results as tables: on the terminal, and between the marks of the documentation page."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.page import ROOT, Sections
from benchmarks.page import tables as tables_of
from remora_lab.marks import between_marks

PAGE = ROOT / "docs" / "benchmarks" / "short-track.md"
RESULTS = ROOT / "benchmarks" / "results" / "short-track.json"
BEGIN = "<!-- figures: `python -m benchmarks.short.page` -->"

COLUMNS: Sections = {
    "folding": (
        "Folding",
        {"results": "tool results", "keys": "knowledge keys", "per_s": "folded/s, CPU", "per_s_wall": "by wall"},
    ),
    "state": (
        "State in a fresh process",
        {
            "turns": "turns",
            "output_kb": "output, KB",
            "turn": "at turn",
            "events": "events",
            "state_ms": "state, ms",
            "orjson_ms": "parsed by orjson alone, ms",
            "to_orjson": "× orjson",
            "imports_ms": "imports before, ms",
        },
    ),
    "rendering": (
        "Rendering",
        {
            "counter": "counted by",
            "entries": "knowledge entries",
            "limit": "limit",
            "tokens": "tokens",
            "median_ms": "median, ms",
            "p95_ms": "95th percentile, ms",
            "p95_cpu_ms": "of it CPU, ms",
        },
    ),
    "prefix": (
        "Prefix cache",
        {
            "shows": "prompt shows",
            "counter": "counted by",
            "turns": "turns",
            "prompt_tokens": "prompt tokens",
            "reusable_tokens": "reusable",
            "reusable_share": "share, %",
            "system_share": "system text and tools alone, %",
        },
    ),
    "long": (
        "A long run",
        {
            "counter": "counted by",
            "turn": "turn",
            "packet_tokens": "prompt, tokens",
            "history_tokens": "chat history, tokens",
            "limit": "limit",
        },
    ),
    "turn": (
        "A whole turn",
        {
            "counter": "counted by",
            "turns": "turns",
            "output_kb": "output, KB",
            "load": "load of the machine",
            "cpu_ms": "CPU, ms",
            "least_cpu_ms": "least, ms",
            "last_to_first": "last turns against first",
            "cpu_to_floor": "× dumping and writing the same",
            "syncs": "syncs",
            "wall_ms": "wall, ms",
            "floor_wall_ms": "floor with the same syncs, ms",
            "wall_to_floor": "× floor",
            "slow_wall_ms": "wall with syncs of 4 ms, ms",
            "slow_floor_wall_ms": "floor with these, ms",
            "slow_wall_to_floor": "× floor with these",
        },
    ),
}


def tables(results: dict[str, Any]) -> str:
    """Everything that was measured, as Markdown."""
    return tables_of(results, COLUMNS)


def write_page() -> None:
    """The page holds the tables of the stored results."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def filled(page: str) -> str:
    """The page with the stored results between its marks."""
    return between_marks(page, BEGIN, tables(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    write_page()
