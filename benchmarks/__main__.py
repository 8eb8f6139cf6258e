"""`python -m benchmarks`: measure, judge, keep the results, and show them."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks import aims, page
from benchmarks.measure import begin_results, business, say, write_results
from benchmarks.workload import Case

GRID = [Case(turns, kb) for turns in (50, 200, 1000) for kb in (0.5, 5, 50)]
FULL: dict[str, list[Case]] = {
    "turns": GRID,
    "reading": [Case(1000, kb) for kb in (0.5, 5, 50)],
    "memory": [Case(turns, 5) for turns in (200, 1000, 4000)],
    "together": [Case(20, 5)],
    "peer": GRID,
    "index": [Case(1000, 0.5)],
    "many": [Case(3, 0.5)],
}
QUICK: dict[str, list[Case]] = {
    "turns": [Case(10, 0.5), Case(10, 50)],
    "reading": [Case(10, 5)],
    "memory": [Case(30, 5), Case(60, 5)],
    "together": [Case(2, 5)],
    "peer": [Case(10, 5)],
    "index": [Case(10, 0.5)],
    "many": [Case(3, 0.5)],
}


def main() -> None:
    """Measure what was asked for."""
    asked = _arguments()
    cases = {name: found for name, found in (QUICK if asked.quick else FULL).items() if name in (asked.only or FULL)}
    results = begin_results(_command(asked))
    for name, found in cases.items():
        section = importlib.import_module(f"benchmarks.{name}")
        results[name] = section.measure(found, rounds=1 if asked.quick else 3)
        results |= {"aims": aims.judge(results), "busy_after": business()}
        write_results(results, asked.out / page.RESULTS.name)
    say(f"results are in {asked.out}")
    print(page.tables(results))
    if asked.page:
        page.write_page()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed of the Long Track")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to see that it runs, not how fast")
    parser.add_argument("--only", nargs="+", choices=sorted(FULL), metavar="NAME", help=", ".join(FULL))
    parser.add_argument("--out", type=Path, default=page.RESULTS.parent, help="where long-track.json goes")
    parser.add_argument("--page", action="store_true", help="bring the documentation page up to date with the results")
    return parser.parse_args()


def _command(asked: argparse.Namespace) -> str:
    only = ["--only", *asked.only] if asked.only else []
    return " ".join(["python -m benchmarks", *(["--quick"] if asked.quick else []), *only])


if __name__ == "__main__":
    main()
