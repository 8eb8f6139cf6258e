"""`python -m benchmarks.short`: measure, judge, keep the results, and show them."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks.measure import begin_results, business, say, write_results
from benchmarks.short import aims, page
from benchmarks.short.run import Plan

FULL = {
    "folding": {"results": 100_000, "keys": (50, 1_000, 10_000), "passes": 3},
    "state": {"cases": ((1000, 0.5), (1000, 5), (1000, 50)), "blobs": ((200, 20), (200, 200)), "passes": 5},
    "rendering": {"entries": (50, 1_000, 10_000, 100_000), "limits": (1000, 4096), "passes": 100},
    "prefix": {"turns": 30},
    "long": {"turns": 1000, "cycle": 20},
    "turn": {"turns": 300, "kb": 5, "limit": 1000},
}
QUICK = {
    "folding": {"results": 200, "keys": (5, 50), "passes": 1},
    "state": {"cases": ((10, 0.5),), "blobs": ((4, 20), (4, 40)), "passes": 1},
    "rendering": {"entries": (50, 100), "limits": (1000,), "passes": 2},
    "prefix": {"turns": 5},
    "long": {"turns": 12, "cycle": 4},
    "turn": {"turns": 12, "kb": 5, "limit": 1000},
}


def main() -> None:
    """Measure what was asked for."""
    asked = _arguments()
    results = begin_results(_command(asked))
    for name, sizes in (QUICK if asked.quick else FULL).items():
        if name in (asked.only or FULL):
            section = importlib.import_module(f"benchmarks.short.{name}")
            results[name] = section.measure(Plan(sizes, asked.tokenizer))
            results |= {"aims": aims.judge(results), "busy_after": business()}
            write_results(results, asked.out / page.RESULTS.name)
    say(f"results are in {asked.out}")
    print(page.tables(results))
    if asked.page:
        page.write_page()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.short", description="Speed of the Short Track")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to see that it runs, not how fast")
    parser.add_argument("--only", nargs="+", choices=sorted(FULL), metavar="NAME", help=", ".join(FULL))
    parser.add_argument("--tokenizer", type=Path, help="a GGUF file or a `tokenizer.json`, to count as its model does")
    parser.add_argument("--out", type=Path, default=page.RESULTS.parent, help="where short-track.json goes")
    parser.add_argument("--page", action="store_true", help="bring the documentation page up to date with the results")
    return parser.parse_args()


def _command(asked: argparse.Namespace) -> str:
    only = ["--only", *asked.only] if asked.only else []
    tokenizer = ["--tokenizer", asked.tokenizer.name] if asked.tokenizer else []
    return " ".join(["python -m benchmarks.short", *(["--quick"] if asked.quick else []), *only, *tokenizer])


if __name__ == "__main__":
    main()
