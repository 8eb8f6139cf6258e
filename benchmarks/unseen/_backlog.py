"""Tasks for `backlog`: comments of a file, and what TODO.md says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

HOTEL = '''"""Bookings of a small hotel."""


def free_rooms(rooms, booked):
    # FIXME: two guests can get the same bed
    return [room for room in rooms if room not in booked]


def nightly(price, nights):
    # TODO: cheaper from the seventh night
    return price * nights
'''
TIDES = '''import math


def height(hours, mean=2.0, swing=1.5):
    """Sea level at an hour of the day."""
    return mean + swing * math.cos(hours * math.pi / 6.21)  # TODO use the harmonics of the harbour


def next_ebb(hours):
    return hours + 6.21 - hours % 6.21  # FIXME wrong around midnight
'''
BREAD = """class Dough:
    def __init__(self, flour, water):
        self.flour = flour
        self.water = water

    def hydration(self):
        # FIXME crashes without any flour
        return self.water / self.flour

    def knead(self, minutes):
        # FIXME minutes below zero pass silently
        return max(0.0, 1.0 - minutes / 15)  # TODO ask a baker
"""
CALM = '''def chess_square(column, row):
    """The name of a square."""
    return "abcdefgh"[column] + str(row + 1)
'''
BUS = """def departures(timetable, now):
    # TODO respect public holidays
    # TODO show the platform
    return sorted(time for time in timetable if time >= now)
"""
RADIO = """STATIONS = {"jazz": 98.2, "news": 101.7}


def tune(station):
    # TODO remember the last choice
    return STATIONS[station]  # FIXME unknown stations end everything
"""


@dataclass(frozen=True)
class _Case(Case):
    """A file, what TODO.md says of it before, and what is to be done."""

    bugs: Sequence[str] = ()
    """Entries of the file that are there already."""
    ideas: Sequence[str] = ()
    gone: Sequence[str] = ()
    """Entries among those whose comment is gone."""
    others: Sequence[str] = ()
    """Ideas about other files: not this agent's to touch."""


CASES = (
    _Case("backlog-hotel", "easy", "hotel/bookings.py", HOTEL),
    _Case("backlog-tides", "easy", "tides.py", TIDES),
    _Case("backlog-bread", "medium", "kitchen/dough.py", BREAD),
    _Case("backlog-chess", "easy", "games/chess.py", CALM, ideas=("en passant",), gone=("en passant",)),
    _Case("backlog-bus", "medium", "transport/bus.py", BUS, others=("- `transport/tram.py`: bells and whistles",)),
    _Case(
        "backlog-radio", "hard", "radio.py", RADIO, ideas=("remember the last choice", "stereo"),
        bugs=("hisses at night",), gone=("stereo", "hisses at night"),
    ),
    _Case("backlog-calm", "easy", "games/squares.py", CALM, others=("- `games/go.py`: handicap stones",)),
    _Case(
        "backlog-dough", "hard", "bakery/dough.py", BREAD, bugs=("crashes without any flour",), ideas=("raisins",),
        gone=("raisins",), others=("- `bakery/oven.py`: preheat on Sundays",),
    ),
)  # fmt: skip


def backlog_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        yield _task(case)


def _task(case: _Case) -> Task:
    files = {case.path: case.source}
    if case.bugs or case.ideas or case.others:
        own = [_entry(case, text) for text in case.ideas]
        files["TODO.md"] = _ledger([_entry(case, text) for text in case.bugs], [*own, *case.others])
    said = re.findall(r"# (TODO|FIXME):? (.+)", case.source)
    new = [(word, text) for word, text in said if text not in (*case.bugs, *case.ideas)]
    bugs = [_entry(case, text) for text in case.bugs if text not in case.gone]
    bugs += [_entry(case, text) for word, text in new if word == "FIXME"]
    ideas = [_entry(case, text) for text in case.ideas if text not in case.gone]
    ideas += [_entry(case, text) for word, text in new if word == "TODO"]
    after: dict[str, str | None] = {"TODO.md": _ledger(bugs, [*ideas, *case.others])}
    todo = [
        call("enlist_jotting", slug=_slug(text), heading="Bugs" if word == "FIXME" else "Ideas") for word, text in new
    ]
    todo += [call("strike_jotting", slug=_slug(text)) for text in case.gone]
    return made(case.name, case.level, files, case.path, after, [call("gather_jottings"), todo])


def _entry(case: _Case, text: str) -> str:
    return f"- `{case.path}`: {text}"


def _slug(text: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", text.lower())[:4])


def _ledger(bugs: Sequence[str], ideas: Sequence[str]) -> str:
    """TODO.md with these entries."""
    parts = ["# TODO", "## Bugs", "\n".join(sorted(bugs)), "## Ideas", "\n".join(sorted(ideas))]
    return "\n\n".join(part for part in parts if part) + "\n"
