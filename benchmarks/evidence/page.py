"""The page's figures: tables and plots from the stored results. `python -m benchmarks.evidence.page` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.evidence.plot import draw, off_chart
from benchmarks.measure import ROOT
from remora_lab.marks import between_marks

PAGE = ROOT / "docs" / "benchmarks" / "evidence.md"
PLOT = PAGE.with_suffix(".svg")
RESULTS = ROOT / "benchmarks" / "results" / "evidence.json"
BEGIN = "<!-- figures: `python -m benchmarks.evidence.page` -->"
NOTE = "Recall / grounded turns, by token budget. Where a rule sent more than it may, the cell says how many tokens."
TOLERATED = 1.05
"""Line breaks between messages take some tokens that no rule counts."""
TITLES = {
    "tau": "Help desk: {runs} conversations, {turns} turns",
    "trajectories": "SWE-agent: {runs} trajectories, {turns} turns",
    "tau, joined": "Help desk, joined to one run of {turns} turns",
    "mixed, joined": "Both joined, one run of {turns} turns",
}


def table(results: dict[str, Any]) -> str:
    """Recall and grounded turns as Markdown, a table for each suite."""
    lines = []
    budgets = sorted({row["budget"] for row in results["rows"]})
    for suite, told in results["suites"].items():
        title = TITLES.get(suite, suite + ": {runs} runs, {turns} turns").format(**told)
        head = " | ".join(f"{budget:,}" for budget in budgets)
        lines += [f"\n### {title}\n", f"| memory | {head} |", "|---" * (len(budgets) + 1) + "|"]
        for name in dict.fromkeys(row["memory"] for row in results["rows"]):
            found = {row["budget"]: row for row in results["rows"] if (row["suite"], row["memory"]) == (suite, name)}
            cells = [_cell(found.get(budget)) for budget in budgets]
            lines.append(f"| {f'**{name}**' if name == 'remora' else name} | {' | '.join(cells)} |")
    return "\n".join(lines).strip()


def _cell(row: dict[str, Any] | None) -> str:
    """Recall and grounded turns, and the tokens really sent if they were more than allowed."""
    if row is None:
        return "-"
    over = ""
    if row["tokens"] > row["budget"] * TOLERATED:
        over = f" ({row['tokens']:,} sent)"
    elif row["most_tokens"] > row["budget"] * TOLERATED:
        over = f" (up to {row['most_tokens']:,})"
    return f"{row['recall']:.3f} / {row['grounded']:.0%}{over}"


def facts(results: dict[str, Any]) -> str:
    """When, where and with what the figures were taken."""
    machine, versions = results["machine"], results["versions"]
    return (
        f"Measured on {results['date']}: {machine['cpu']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {versions['python']}, Remora {versions['remora-agents']}, {', '.join(results['frameworks'])}. Tokens "
        f"are counted by `{results['counter']['name']}`. `benchmarks/results/evidence.json` has all figures."
    )


def figures(results: dict[str, Any]) -> str:
    """What stands between the page's marks."""
    plot = "![Recall and grounded turns by tokens sent, one line for each memory](evidence.svg)"
    missing = off_chart(results)
    beyond = f"\n\nNot drawn, because more was sent: {', '.join(missing)}." if missing else ""
    return "\n\n".join((facts(results), plot + beyond, NOTE, table(results)))


def filled(page: str, results: dict[str, Any]) -> str:
    """The page with the figures of these results."""
    return between_marks(page, BEGIN, figures(results), name=PAGE.name)


def main(file: Path = RESULTS) -> None:
    """Write the page's figures and the plot."""
    results = json.loads(file.read_text(encoding="utf-8"))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    PLOT.write_text(draw(results), encoding="utf-8")


if __name__ == "__main__":
    main()
