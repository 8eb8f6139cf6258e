"""Tasks for `crontab`: functions that say when they run, and a crontab that may start them at other times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

CRONTAB = "deploy/crontab"
HEAD = "# minute hour day month weekday\n"
FARM = '''"""Jobs of the farm shop."""

from farm.scheduling import job


@job("backup")
def copy_orders():
    """Copy the orders to the second site.

    Runs: every day at 02:30
    """
    return ["orders.db"]


@job("veg-boxes")
def pack_boxes(season="summer"):
    """Plan which vegetables go into the boxes.

    Runs: every tuesday at 06:15
    """
    return {"summer": ["beans", "courgettes"], "winter": ["kale"]}[season]


@job("recount")
def recount():
    """Count the stock again, after a mistake was found.

    Runs: on demand
    """
    return 0


@job("greetings")
def greet():
    """Send birthday greetings, when there is time."""
'''
OBSERVATORY = """from dome.jobs import job


@job("darks")
def dark_frames(count=20):
    '''Take dark frames.

    Runs: every day at 18:20
    '''
    return ["dark"] * count


@job("flush-queue")
def flush():
    '''Empty the queue of observations.

    Runs: on demand
    '''


@job("report")
def weekly_report(nights):
    '''Mail the report of the week.

    Runs: every sunday at 11:05
    '''
    return f"{sum(nights)} hours"
"""


@dataclass(frozen=True)
class _Case(Case):
    """A function, the crontab before and after, and the way there."""

    node: str
    before: str
    after: str
    way: Sequence[Any] = ()


def _add(job: str, minute: int, hour: int, weekday: str) -> dict[str, Any]:
    return call("add_line", job=job, minute=minute, hour=hour, weekday=weekday)


def _change(job: str, minute: int, hour: int, weekday: str) -> dict[str, Any]:
    return call("change_line", job=job, minute=minute, hour=hour, weekday=weekday)


CASES = (
    _Case("crontab-backup", "easy", "farm/jobs.py", FARM, "copy_orders",
          "30 1 * * * run backup\n0 5 * * * run prices\n", "30 2 * * * run backup\n0 5 * * * run prices\n",
          [_change("backup", 30, 2, "*")]),
    _Case("crontab-boxes", "easy", "farm/jobs.py", FARM, "pack_boxes",
          "30 2 * * * run backup\n", "30 2 * * * run backup\n15 6 * * 2 run veg-boxes\n",
          [_add("veg-boxes", 15, 6, "2")]),
    _Case("crontab-recount", "medium", "farm/jobs.py", FARM, "recount",
          "30 2 * * * run backup\n0 4 * * 1 run recount\n", "30 2 * * * run backup\n# 0 4 * * 1 run recount\n",
          [call("disable_line", job="recount")]),
    _Case("crontab-sunday", "medium", "dome/nightly.py", OBSERVATORY, "weekly_report",
          "5 11 * * 1 run report\n20 18 * * * run darks\n", "5 11 * * 0 run report\n20 18 * * * run darks\n",
          [_change("report", 5, 11, "0")]),
    _Case("crontab-darks", "hard", "dome/nightly.py", OBSERVATORY, "dark_frames",
          "20 18 * * * run open-dome\n5 11 * * 0 run report\n",
          "20 18 * * * run open-dome\n5 11 * * 0 run report\n5 18 * * * run darks\n",
          [call("free_minute", hour=18), _add("darks", 5, 18, "*")]),
    _Case("crontab-prices", "hard", "farm/jobs.py", FARM, "copy_orders",
          "30 2 * * * run prices\n5 2 * * 6 run mail\n0 3 * * * run backup\n",
          "30 2 * * * run prices\n5 2 * * 6 run mail\n20 2 * * * run backup\n",
          [call("free_minute", hour=2), _change("backup", 20, 2, "*")]),
    _Case("crontab-ops", "hard", "farm/jobs.py", FARM, "copy_orders",
          "# ops: moved while the disks are replaced\n45 3 * * * run backup\n0 5 * * * run prices\n",
          "# ops: moved while the disks are replaced\n45 3 * * * run backup\n0 5 * * * run prices\n"),
    _Case("crontab-greetings", "medium", "farm/jobs.py", FARM, "greet",
          "30 2 * * * run backup\n0 9 * * * run greetings\n", "30 2 * * * run backup\n0 9 * * * run greetings\n"),
    _Case("crontab-queue", "hard", "dome/nightly.py", OBSERVATORY, "flush",
          "20 18 * * * run darks\n# ops: until the new camera is here\n0 12 * * * run flush-queue\n",
          "20 18 * * * run darks\n# ops: until the new camera is here\n0 12 * * * run flush-queue\n"),
    _Case("crontab-market", "hard", "shop/jobs.py", FARM, "pack_boxes",
          "15 6 * * * run market\n5 6 * * 3 run invoices\n15 6 * * 2 run veg-boxes\n",
          "15 6 * * * run market\n5 6 * * 3 run invoices\n20 6 * * 2 run veg-boxes\n",
          [call("free_minute", hour=6), _change("veg-boxes", 20, 6, "2")]),
)  # fmt: skip


def crontab_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        files = {case.path: case.source, CRONTAB: HEAD + case.before}
        after = {CRONTAB: HEAD + case.after}
        way = [call("check_job"), *case.way]
        yield made(case.name, case.level, files, case.path, after, way, node=case.node)
