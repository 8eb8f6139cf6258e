"""Tasks for `facade`: modules whose `__all__` misfits, and files that import from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

GARDEN = '''"""Beds and what grows in them."""

import math
{all}

def area(width, length):
    return width * length


def seeds_for(width, length, distance):
    return math.floor(area(width, length) / distance**2)


def _rounded(value):
    return round(value, 1)
'''
CHOIR = '''"""Who sings what."""
{all}
VOICES = ("soprano", "alto", "tenor", "bass")


class Singer:
    def __init__(self, name, voice):
        self.name = name
        self.voice = voice


def lowest(singers):
    return max(singers, key=lambda singer: VOICES.index(singer.voice))
'''
KNOTS = """from itertools import pairwise
{all}

def bowline(rope):
    return ["loop", "through", "round", "back", rope]


def reef(rope, other):
    return [rope, other, "left over right", "right over left"]


def strength(knots):
    return min(0.6 if first == second else 0.7 for first, second in pairwise(knots))
"""


@dataclass(frozen=True)
class _Case(Case):
    """A module, what it exports before, who imports from it, and what it is to export."""

    exports: Sequence[str] | None
    """None where there is no `__all__` yet."""
    users: dict[str, str]
    publish: Sequence[str] = ()
    retract: Sequence[str] = ()


CASES = (
    _Case("facade-garden", "easy", "garden/beds.py", GARDEN, ["area"],
          {"garden/plan.py": "from garden.beds import area, seeds_for\n"}, ["seeds_for"]),
    _Case("facade-choir", "easy", "choir.py", CHOIR, ["Singer", "conductor", "lowest"],
          {"concert.py": "from choir import Singer\n"}, (), ["conductor"]),
    _Case("facade-knots", "medium", "knots.py", KNOTS, ["bowline", "hitch", "sheepshank"],
          {"boat.py": "from knots import bowline, reef\n"}, ["reef"], ["hitch", "sheepshank"]),
    _Case("facade-fresh", "medium", "choir/voices.py", CHOIR, None,
          {"choir/rehearsal.py": "from .voices import VOICES, lowest\n"}, ["VOICES", "lowest"]),
    _Case("facade-fitting", "easy", "outdoor/beds.py", GARDEN, ["area", "seeds_for"],
          {"outdoor/plan.py": "from outdoor.beds import seeds_for\n"}),
    _Case("facade-ropes", "hard", "ropes.py", KNOTS, ["clove"],
          {"ship.py": "from ropes import (\n    bowline,\n    strength as holds,\n)\n",
           "rig.py": "from ropes import reef\n"}, ["bowline", "reef", "strength"], ["clove"]),
    _Case("facade-parcel", "medium", "allotment/parcel.py", GARDEN, None,
          {"allotment/shed.py": "from allotment.parcel import area\n", "notes.py": "from garden.beds import area\n"},
          ["area"]),
    _Case("facade-chorale", "hard", "chorale.py", CHOIR, ["VOICES", "Singr", "lowst"],
          {"mass.py": "from chorale import Singer, VOICES, lowest\n"}, ["Singer", "lowest"], ["Singr", "lowst"]),
)  # fmt: skip


def facade_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        yield _task(case)


def _task(case: _Case) -> Task:
    before = case.exports if case.exports is None else list(case.exports)
    after = sorted({*(before or ()), *case.publish} - {*case.retract}) if case.publish or case.retract else before
    todo = [call("publish_identifier", identifier=name) for name in case.publish]
    todo += [call("retract_identifier", identifier=name) for name in case.retract]
    files = {case.path: _source(case, before), **case.users}
    calls = [call("appraise_facade"), todo]
    return made(case.name, case.level, files, case.path, {case.path: _source(case, after)}, calls)


def _source(case: _Case, exports: Sequence[str] | None) -> str:
    """The module with these exports."""
    listed = ", ".join(f'"{name}"' for name in exports or ())
    return case.source.replace("{all}", "" if exports is None else f"\n__all__ = [{listed}]\n", 1)
