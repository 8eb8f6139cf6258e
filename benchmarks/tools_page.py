"""`python -m benchmarks.tools_page`: the stored figures of scripts, workspaces and runs, on their page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.accepting import AIM_S
from benchmarks.page import ROOT, aims_table
from remora_lab.marks import between_marks

PAGE = ROOT / "docs" / "benchmarks" / "runs-and-tools.md"
BEGIN = "<!-- figures: `python -m benchmarks.tools_page` -->"


def figures() -> str:
    """The tables, from what was measured last."""
    scripts, workspaces, runs = (_stored(name) for name in ("scripts", "workspaces", "runs"))
    large, many = workspaces["workspaces"][-1], workspaces["accepts"][-1]
    machine = runs["machine"]
    rows = [
        *runs["aims"],
        *_stored("decisions")["aims"],
        *(
            _row(f"a script call over plain Monty, median: {name}", 2, row["more"], "ms")
            for name, row in scripts["milliseconds"].items()
        ),
        _row("memory after 1,000 script calls, our process", 1, scripts["growth_mb"]["ours"], "MB"),
        _row(f"open a workspace over {large['files']:,} files", 50, large["open_ms"], "ms"),
        _row(
            f"diff of {large['changed']} changed files among {large['files']:,}, wall", 100, large["diff_wall_ms"], "ms"
        ),
        _row(f"accept {many['changes']:,} agents' changes of one file, wall", AIM_S, many["accept_s"], "s"),
    ]
    where = f"{machine['cores']} × {machine['cpu']}, {machine['system']}, {machine['filesystem']}"
    load = f"load before {runs['busy_before']['load']}, after {runs['busy_after']['load']}"
    told = [f"Measured {runs['when']} on {where}, Python {runs['versions']['python']}; {load}.", aims_table(rows)]
    if found := runs.get("embedded"):
        spent = f"{found['model_s']} s in the model, {found['tools_s']} s in tools, {found['ours_s']} s in all else"
        told.append(f"On the embedded model: {found['turns']} turns, {found['decision_s']} s a decision; {spent}.")
    return "\n\n".join([*told, _accepts(workspaces), _decisions(_stored("decisions"))])


def _accepts(found: dict[str, Any]) -> str:
    tools = {"accept": "`remora accept`", "undo": "`remora undo`", "diff": "`remora diff`"}
    tools |= {"git_merge_file": "`git merge-file`, one process a change", "patch": "`patch`, one process a change"}
    rows = found["accepts"]
    sizes = [f"{row['changes']:,} changes, {row['lines']:,} lines" for row in rows]
    head = "\n".join([f"| | {' | '.join(sizes)} |", "|---" * (len(sizes) + 1) + "|"])
    lines = [
        f"| {told} | " + " | ".join(f"{row[f'{name}_s']} s ({row[f'{name}_cpu_s']} s)" for row in rows) + " |"
        for name, told in tools.items()
        if f"{name}_s" in rows[0]
    ]
    told = (
        f"Agents that each changed another function of one file, seconds of wall (of CPU), measured "
        f"{found['accepts_when']}, load before {found['accepts_load']}."
    )
    return "\n\n".join([told, "\n".join([head, *lines])])


def _decisions(found: dict[str, Any]) -> str:
    machine = found["machine"]
    where = (
        f"{machine['cores']} × {machine['cpu']}, {found['threads']} threads, load before {found['busy_before']['load']}"
    )
    head = "| agent | decisions | weights as fetched | as served | 9 of 10 | times as fast |\n|---|---|---|---|---|---|"
    rows = [
        f"| {row['operation']} | {row['decisions']} | {row['fetched_s']} s | {row['served_s']} s | "
        f"{row['served_p90_s']} s | {row['faster']} |"
        for row in found["decisions"]
    ]
    told = f"Decisions of the embedded model with its adapter, medians, measured {found['when']} on {where}."
    return "\n\n".join([told, "\n".join([head, *rows])])


def _row(aim: str, limit: float, figure: float, unit: str) -> dict[str, Any]:
    return {"aim": aim, "target": f"≤ {limit} {unit}", "figure": f"{figure:.3g} {unit}", "met": figure <= limit}


def _stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / "results" / f"{name}.json").read_text())
    return found


if __name__ == "__main__":
    PAGE.write_text(between_marks(PAGE.read_text(encoding="utf-8"), BEGIN, figures()), encoding="utf-8")
