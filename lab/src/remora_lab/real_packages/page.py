"""The tables of the bench on packages, and the examples that a person should judge."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from remora.errors import ConfigError
from remora_lab.real_packages.results import Offered, RowEnd

START, END = "<!-- packages: begin -->", "<!-- packages: end -->"
"""The figures of the page stand between these lines. The rest is written by people."""
RATINGS = ("merge", "useless", "wrong")


def rating_rows(changes: Sequence[Offered]) -> list[tuple[str, ...]]:
    """By row, operation and kind: how many changes were offered, and how the rules rate them."""
    keys = sorted({(change.row, change.operation, change.unsafe) for change in changes})
    rows = []
    for row, operation, unsafe in keys:
        mine = [each for each in changes if (each.row, each.operation, each.unsafe) == (row, operation, unsafe)]
        counts = Counter[str](each.rating for each in mine)
        share = f"{counts['merge'] / len(mine):.0%}"
        kind = "marked unsafe" if unsafe else "bulk accept"
        rows.append((row, operation, kind, str(len(mine)), *(str(counts[rating]) for rating in RATINGS), share))
    return rows


def package_rows(changes: Sequence[Offered], ends: Sequence[RowEnd]) -> list[tuple[str, ...]]:
    """By package and row: agents, seconds, offered changes, and the package's own tests before and after."""
    rows: list[tuple[str, ...]] = []
    for end in sorted(ends, key=lambda each: (each.package, each.row)):
        own = [each for each in changes if (each.package, each.row) == (end.package, end.row)]
        mine = [each for each in own if each.operation in end.operations]
        counts = Counter[str](each.rating for each in mine)
        tests = end.problem[:40] or f"{end.tests_before} → {end.tests_after}"
        asked = sum(number for name, number in end.decisions.items() if name not in ("by rule", "first-candidate"))
        broken = str(len(end.broken)) if end.broken else "0"
        rated = " / ".join(str(counts[rating]) for rating in RATINGS)
        agents = str(end.agents or "–")
        rows.append(
            (f"{end.package} {end.version}", end.row, agents, str(asked), f"{end.seconds:.0f}", rated, tests, broken)
        )
    return rows


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


RATED = ("row", "operation", "kind", "offered", *RATINGS, "merge share")
BY_PACKAGE = (
    "package", "row", "agents", "asked", "seconds", "merge / useless / wrong", "own tests passed", "tests broken",
)  # fmt: skip


def figures(changes: Sequence[Offered], ends: Sequence[RowEnd]) -> str:
    """The generated part of the page."""
    machine = ", ".join(str(value) for value in ends[-1].machine.values()) if ends else ""
    return "\n\n".join(
        [
            START,
            f"Rated by the rules below, over {len({end.package for end in ends})} packages. Machine: {machine}.",
            markdown_table(RATED, rating_rows(changes)),
            markdown_table(BY_PACKAGE, package_rows(changes, ends)),
            END,
        ]
    )


def write_page(path: Path, changes: Sequence[Offered], ends: Sequence[RowEnd]) -> None:
    """Put the figures into a page, between its marks. Raises `ConfigError` if it has none."""
    text = path.read_text(encoding="utf-8")
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        raise ConfigError(f"`{path}` has no place for figures: expected the lines `{START}` and `{END}`")
    path.write_text(f"{head}{figures(changes, ends)}{tail}", encoding="utf-8")


def examples(changes: Sequence[Offered], count: int) -> list[Offered]:
    """Changes for a person to judge: the same every time, spread over packages, chosen without their rating."""
    order = sorted(changes, key=lambda each: hashlib.sha256(f"{each.package}{each.node}{each.diff}".encode()).digest())
    taken: list[Offered] = []
    seen: Counter[str] = Counter()
    while len(taken) < min(count, len(order)):
        left = [each for each in order if each not in taken]
        fewest = min(seen[each.package] for each in left)
        chosen = next(each for each in left if seen[each.package] == fewest)
        seen[chosen.package] += 1
        taken.append(chosen)
    return taken
