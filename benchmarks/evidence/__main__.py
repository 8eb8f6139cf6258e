"""`python -m benchmarks.evidence`: measure the memories side by side, keep the results, and show them."""

from __future__ import annotations

import argparse
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.evidence.data import Suite, load, long_suites
from benchmarks.evidence.frameworks import FRAMEWORKS, framework_rows
from benchmarks.evidence.ours import Ours
from benchmarks.evidence.page import table
from benchmarks.evidence.rows import ROWS as OTHERS
from benchmarks.evidence.rows import Count
from benchmarks.evidence.score import Make, Score, score
from benchmarks.measure import ROOT, machine, now, say, versions, write_results
from remora.inference import EstimatedCounter, file_counter
from remora.ports import TokenCounter

RESULTS = ROOT / "benchmarks" / "results" / "evidence.json"


def main() -> None:
    """Measure what was asked for."""
    asked = _arguments()
    counter: TokenCounter = file_counter(asked.tokenizer) if asked.tokenizer else EstimatedCounter()
    count = lru_cache(100_000)(counter.count)
    suites = load(asked.data)
    suites += long_suites(suites)
    rows = OTHERS | ({} if asked.plain else framework_rows(asked.tokenizer, asked.only)) | {"remora": Ours}
    wanted = {name: make for name, make in rows.items() if not asked.only or name in asked.only}
    measured = [row for suite in suites for name in wanted for row in _rows(suite, name, wanted[name], asked, count)]
    results: dict[str, Any] = {
        "date": now(),
        "command": "python -m benchmarks.evidence --data FOLDER --tokenizer MODEL.gguf",
        "counter": {"name": counter.name, "exact": counter.exact, "digest": counter.digest},
        "suites": {suite.name: {"runs": len(suite.chats), "turns": suite.turns} for suite in suites},
        "machine": machine(),
        "versions": versions(),
        "frameworks": [framework.package for framework in FRAMEWORKS],
        "rows": measured,
    }
    if asked.only:
        results["rows"] = _merge(asked.out, results)
    write_results(results, asked.out)
    print(table(results))
    say(f"results are in {asked.out}")


def _merge(file: Path, results: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the file with the new ones in their place, if both were measured on the same data by one counter."""
    old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if any(old.get(key) != results[key] for key in ("counter", "suites")):
        return list(results["rows"])
    new = {(row["suite"], row["memory"], row["budget"]): row for row in results["rows"]}
    kept = [new.pop((row["suite"], row["memory"], row["budget"]), row) for row in old["rows"]]
    return kept + list(new.values())


def _rows(suite: Suite, name: str, make: Make, asked: argparse.Namespace, count: Count) -> list[dict[str, Any]]:
    say(f"{suite.name}: {name}")
    scores = score(suite, make, asked.budgets, count, names=asked.names)
    return [
        {"suite": suite.name, "memory": name, "budget": budget} | kept.row() | {"parts": _parts(kept)}
        for budget, kept in scores.items()
    ]


def _parts(kept: Score) -> list[float]:
    """Recall in each quarter of the turns, in order: flat, if a memory does not forget."""
    size = max(1, -(-len(kept.recalls) // 4))
    quarters = [kept.recalls[start : start + size] for start in range(0, len(kept.recalls), size)]
    return [round(sum(part) / len(part), 3) for part in quarters]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder of chat logs, one folder a suite")
    parser.add_argument(
        "--budgets", type=lambda text: [int(part) for part in text.split(",")], default=[500, 1000, 2000, 4000]
    )
    parser.add_argument("--tokenizer", type=Path, help="a GGUF file or a `tokenizer.json`; without it, an estimate")
    parser.add_argument("--names", action="store_true", help="count the names of tools and arguments, too")
    parser.add_argument("--only", nargs="+", metavar="MEMORY", help="rows to measure; the file keeps the others")
    parser.add_argument("--plain", action="store_true", help="no frameworks, which are installed on first use")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
