"""Tasks written by hand, for the evaluation half."""

from __future__ import annotations

from collections.abc import Iterator

from remora_lab.bench.tasks import DocstringCheck, LintCheck, Mutant, SampleDataCheck, Task, TestCheck

CONFIG = """[tool.ruff.lint]
select = ["B", "E", "F", "S110", "SIM"]
ignore = ["SIM108"]

[tool.pytest.ini_options]
pythonpath = ["lib"]
"""

ROWS = '''"""Cells of a spreadsheet."""

from __future__ import annotations


def cell_text(cell: object, digits: int = 2) -> str:
    """What a cell shows."""
    if type(cell) == float:
        return f"{cell:.{digits}f}"
    if type(cell) == bool:
        return "yes" if cell else "no"
    return str(cell)
'''

SHUTDOWN = '''"""Closing what was opened."""

from __future__ import annotations


def close_quietly(handles: list) -> int:
    """Close everything that can be closed; tells how many could."""
    closed = 0
    for handle in handles:
        try:
            handle.close()
            closed += 1
        except Exception:
            pass
    if closed > len(handles):
        assert False, "more than there are"
    return closed
'''

LATE = '''"""Paths of a photo archive."""

import math

PAGE = 24
import posixpath


def album_path(album: str, photo: int) -> str:
    """Where a photo lies, by the page it is printed on."""
    page = math.ceil(photo / PAGE)
    return posixpath.join(album, f"page-{page}", f"{photo}.jpg")
'''

VOTES = '''"""Counting votes."""

from __future__ import annotations


def winner(votes: list[str], seats: int = 1, quorum: int | None = None) -> list[str]:
    """Elects those with the most votes.

    Parameters
    ----------
    votes
        A name for each ballot.
    seats
        How many are elected.
    quorum
        How many votes there must be.
    threshold
        Share that a candidate needs.
    shuffle
        Whether equals are drawn.

    Returns
    -------
    list of str
        The names of those elected.
    """
    if quorum is not None and len(votes) < quorum:
        return []
    tally = {name: votes.count(name) for name in sorted(set(votes))}
    return sorted(tally, key=lambda name: -tally[name])[:seats]
'''

LAMP = '''"""A lamp that can be dimmed."""

from __future__ import annotations


class Lamp:
    """Light with a level from 0 to 100."""

    def __init__(self, level: int = 0) -> None:
        self._level = level

    @property
    def level(self) -> int:
        """How bright it is."""
        return self._level

    @level.setter
    def level(self, value: int) -> None:
        self._level = min(max(value, 0), 100)

    def fade(self, target: int, *, pace: int = 5):
        while self._level != target:
            delta = max(-pace, min(pace, target - self._level))
            self._level += delta
            yield self._level
'''

CHUNKS = '''"""Working through long lists in parts."""

from __future__ import annotations


def batches(things: list[int], size: int = 2):
    """The list in parts of equal size; the last may be shorter."""
    if size < 1:
        raise ValueError("a batch holds at least one thing")
    for begin in range(0, len(things), size):
        yield things[begin : begin + size]
'''

ROMAN = '''"""Numbers on old buildings."""

from __future__ import annotations

SIGNS = {"M": 1000, "D": 500, "C": 100, "L": 50, "X": 10, "V": 5, "I": 1}


def roman_value(numeral: str) -> int:
    """The number that a Roman numeral stands for."""
    values = [SIGNS[sign] for sign in numeral.upper()]
    amount = 0
    for value, following in zip(values, [*values[1:], 0], strict=True):
        amount += -value if value < following else value
    return amount
'''

INVOICE = '''"""Invoices with dates and exact amounts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum


class Terms(Enum):
    """When an invoice is to be paid."""

    AT_ONCE = 0
    TWO_WEEKS = 14


@dataclass
class Position:
    """A line of an invoice."""

    text: str
    unit_price: Decimal
    count: int = 1


def payable(issued: date, positions: tuple[Position, ...], terms: Terms | None = None) -> tuple[int, Decimal]:
    """Days until payment, and the amount."""
    if not positions:
        raise LookupError("an invoice without positions")
    days = issued.day * 0 + (terms.value if terms else 30)
    return days, sum((item.unit_price * item.count for item in positions), Decimal(0))
'''

BEHAVIOUR_1 = (
    "cells",
    'cell_text(1.5) == "1.50"',
    'cell_text(True) == "yes"',
    'cell_text(3) == "3"',
)
BEHAVIOUR_2 = (
    "closing",
    "close_quietly([1, 2]) == 0",
    "close_quietly([open(__file__), 1]) == 1",
)
BEHAVIOUR_3 = (
    "album",
    'album_path("sea", 25) == "sea/page-2/25.jpg"',
)


def hand_tasks() -> Iterator[Task]:
    """The tasks, in order."""
    yield _task(
        "types-compared", "cells.py", ROWS, "cell_text",
        LintCheck(gone=("E721",), behaviour=_tests(*BEHAVIOUR_1)),
        {"edits": [
            {"code": "E721", "bad": ["    if type(cell) == float:"], "good": ["    if isinstance(cell, float):"]},
            {"code": "E721", "bad": ["    if type(cell) == bool:"], "good": ["    if isinstance(cell, bool):"]},
        ]},
    )  # fmt: skip
    lines = SHUTDOWN.split("\n")
    tried = lines[9:14]
    yield _task(
        "swallowed", "closing.py", SHUTDOWN, "close_quietly",
        LintCheck(gone=("B011", "S110"), behaviour=_tests(*BEHAVIOUR_2)),
        {"edits": [
            {
                "code": "S110",
                "bad": tried,
                "good": ['        if hasattr(handle, "close"):', *(line for line in tried[1:3])],
            },
            {"code": "B011", "bad": [lines[15]], "good": ['        raise AssertionError("more than there are")']},
        ]},
    )  # fmt: skip
    yield _task(
        "late-import", "album.py", LATE, "",
        LintCheck(gone=("E402",), behaviour=_tests(*BEHAVIOUR_3)),
        {"edits": [{
            "code": "E402",
            "bad": ["import math", "", "PAGE = 24", "import posixpath"],
            "good": ["import math", "import posixpath", "", "PAGE = 24"],
        }]},
    )  # fmt: skip
    yield _task(
        "two-gone", "votes.py", VOTES, "winner",
        DocstringCheck(parameters=("votes", "seats", "quorum"), returns=True),
        {"summary": "Elects those with the most votes."},
    )  # fmt: skip
    yield _task(
        "setter", "lamp.py", LAMP, "Lamp.level#2", DocstringCheck(unchanged=True), {}, level="medium"
    )  # fmt: skip
    yield _task(
        "generator", "lamp.py", LAMP, "Lamp.fade",
        DocstringCheck(parameters=("target", "pace"), returns=True),
        {"summary": "Yield the level after each delta."},
    )  # fmt: skip
    yield _task(
        "batches", "chunks.py", CHUNKS, "batches",
        TestCheck(mutants=(
            Mutant(path="lib/chunks.py", old="begin + size]", new="begin + size - 1]"),
            Mutant(path="lib/chunks.py", old="range(0, len", new="range(1, len"),
        )),
        {"cases": ["[1, 2, 3] -> [[1, 2], [3]]", "[1, 2, 3], 3 -> [[1, 2, 3]]", "[1], 0 -> raises ValueError"]},
    )  # fmt: skip
    yield _task(
        "numerals", "roman.py", ROMAN, "roman_value",
        TestCheck(mutants=(
            Mutant(path="lib/roman.py", old="value < following", new="value <= following"),
            Mutant(path="lib/roman.py", old='"L": 50', new='"L": 5'),
        )),
        {"cases": ['"xiv" -> 14', '"MMXX" -> 2020', '"XL" -> 40', '"" -> 0']},
    )  # fmt: skip
    yield _task(
        "exact", "invoice.py", INVOICE, "payable",
        SampleDataCheck(cases=2),
        {"cases": [
            {"issued": "2024-05-31", "positions": [{"text": "paint", "unit_price": "9.90"}]},
            {"issued": "2024-06-01", "positions": [{"text": "brush", "unit_price": "4", "count": 3}], "terms": 14},
        ]},
    )  # fmt: skip


def _task(name, file, code, node, check, solution, level="hard") -> Task:  # type: ignore[no-untyped-def]
    return Task(
        id=f"eval-hand-{name}",
        operation=check.kind,
        half="eval",
        level=level,
        origin="hand",
        files={"pyproject.toml": CONFIG, f"lib/{file}": code},
        path=f"lib/{file}",
        node=node,
        check=check,
        solution=solution,
    )


def _tests(module: str, *asserted: str) -> str:
    tests = [f"def test_{number}():\n    assert {text}\n" for number, text in enumerate(asserted)]
    return "\n\n".join([f"from {module} import *  # noqa: F403\n", *tests])
