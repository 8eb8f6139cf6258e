"""`python -m benchmarks.unseen`: writes `eval.jsonl`, the same bytes each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.making import encode_tasks
from benchmarks.unseen._backlog import backlog_tasks
from benchmarks.unseen._changelog import changelog_tasks
from benchmarks.unseen._copyright import copyright_tasks
from benchmarks.unseen._dependencies import dependencies_tasks
from benchmarks.unseen._dotenv import dotenv_tasks
from benchmarks.unseen._facade import facade_tasks
from benchmarks.unseen._readme import readme_tasks
from remora_lab.bench.tasks import Task

FOLDER = Path(__file__).parent


def suite() -> Iterator[Task]:
    """Every task, agent by agent."""
    yield from backlog_tasks()
    yield from facade_tasks()
    yield from copyright_tasks()
    yield from changelog_tasks()
    yield from dotenv_tasks()
    yield from dependencies_tasks()
    yield from readme_tasks()


def encoded() -> bytes:
    """The suite's file."""
    return encode_tasks(suite())


if __name__ == "__main__":
    (FOLDER / "eval.jsonl").write_bytes(encoded())
