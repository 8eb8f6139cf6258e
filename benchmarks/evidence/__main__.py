"""`python -m benchmarks.evidence`: measure the memories side by side, keep the results, and show them."""

from __future__ import annotations

import argparse
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.evidence.data import Suite, load, long_suites
from benchmarks.evidence.ours import Ours
from benchmarks.evidence.rows import ROWS as OTHERS
from benchmarks.evidence.rows import Count
from benchmarks.evidence.score import Score, score
from benchmarks.measure import ROOT, now, say, versions
from remora.inference import EstimatedCounter, file_counter
from remora.ports import TokenCounter

ROWS = OTHERS | {"remora": Ours}
RESULTS = ROOT / "benchmarks" / "results" / "evidence.json"


def main() -> None:
    """Measure what was asked for."""
    asked = _arguments()
    counter: TokenCounter = file_counter(asked.tokenizer) if asked.tokenizer else EstimatedCounter()
    count = lru_cache(100_000)(counter.count)
    suites = load(asked.data)
    suites += long_suites(suites)
    rows = [name for name in ROWS if not asked.only or name in asked.only]
    measured = [row for suite in suites for name in rows for row in _rows(suite, name, asked, count)]
    results: dict[str, Any] = {
        "date": now(),
        "counter": {"name": counter.name, "exact": counter.exact, "digest": counter.digest},
        "suites": {suite.name: {"runs": len(suite.chats), "turns": suite.turns} for suite in suites},
        "versions": versions(),
        "rows": measured,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(results))
    say(f"results are in {asked.out}")


def _rows(suite: Suite, name: str, asked: argparse.Namespace, count: Count) -> list[dict[str, Any]]:
    say(f"{suite.name}: {name}")
    scores = score(suite, ROWS[name], asked.budgets, count, names=asked.names)
    return [
        {"suite": suite.name, "memory": name, "budget": budget} | kept.row() | {"parts": _parts(kept)}
        for budget, kept in scores.items()
    ]


def _parts(kept: Score) -> list[float]:
    """Recall in each quarter of the turns, in order: flat, if a memory does not forget."""
    size = max(1, -(-len(kept.recalls) // 4))
    quarters = [kept.recalls[start : start + size] for start in range(0, len(kept.recalls), size)]
    return [round(sum(part) / len(part), 3) for part in quarters]


def table(results: dict[str, Any]) -> str:
    """Recall and grounded turns as Markdown, a table for each suite."""
    lines = []
    budgets = sorted({row["budget"] for row in results["rows"]})
    for suite, told in results["suites"].items():
        head = " | ".join(f"{budget:,}" for budget in budgets)
        lines += [f"\n{suite}: {told['runs']} runs, {told['turns']} turns\n", f"| memory | {head} |"]
        lines.append("|---" * (len(budgets) + 1) + "|")
        for name in dict.fromkeys(row["memory"] for row in results["rows"]):
            found = {r["budget"]: r for r in results["rows"] if (r["suite"], r["memory"]) == (suite, name)}
            cells = [f"{found[b]['recall']:.3f} / {found[b]['grounded']:.0%}" for b in budgets]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder of chat logs, one folder a suite")
    parser.add_argument(
        "--budgets", type=lambda text: [int(part) for part in text.split(",")], default=[500, 1000, 2000, 4000]
    )
    parser.add_argument("--tokenizer", type=Path, help="a GGUF file or a `tokenizer.json`; without it, an estimate")
    parser.add_argument("--names", action="store_true", help="count the names of tools and arguments, too")
    parser.add_argument("--only", nargs="+", metavar="MEMORY", help="rows to measure")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
