"""`python -m benchmarks.hub_page`: the stored figures of the Hub, on their page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.page import ROOT, aims_table
from remora_lab.marks import between_marks

PAGE = ROOT / "docs" / "benchmarks" / "hub.md"
RESULTS = ROOT / "benchmarks" / "results" / "hub.json"
BEGIN = "<!-- figures: `python -m benchmarks.hub_page` -->"


def figures() -> str:
    """The tables, from what was measured last."""
    stored: dict[str, Any] = json.loads(Path(RESULTS).read_text(encoding="utf-8"))
    machine, rows = stored["machine"], stored["hub"]
    where = f"{machine['cores']} × {machine['cpu']}, {machine['system']}, {machine['filesystem']}"
    load = f"load before {stored['busy_before']['load']}, after {stored['busy_after']['load']}"
    full, asking, visible, change = (rows[name] for name in ("full", "asking", "visible", "change"))
    return "\n\n".join(
        [
            f"Measured {stored['when']} on {where}, Python {stored['versions']['python']}; {load}.",
            aims_table(stored["aims"]),
            f"{full['files']:,} files, {full['lines']:,} lines, {asking['nodes']:,} nodes: the Hub took "
            f"{full['hub_wall']} s ({full['hub_cpu']} s CPU), `ast` {full['ast_wall']} s ({full['ast_cpu']} s CPU) and "
            f"could not read {full['ast_failed']} files. The database has {full['db_mb']} MB.",
            f"Asked for the first time, 10 nodes take {asking['first_ms']} ms. Warm, the 95th percentile is "
            f"{asking['warm_p95_ms']} ms; the mean of the CPU time is {asking['warm_cpu_ms']} ms.",
            f"A saved file is visible after {visible['visible_p95_ms']} ms at the 95th percentile. One change takes "
            f"{change['small_ms']} ms among {change['files'][0]} files and {change['large_ms']} ms among "
            f"{change['files'][-1]:,}.",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(between_marks(PAGE.read_text(encoding="utf-8"), BEGIN, figures()), encoding="utf-8")
