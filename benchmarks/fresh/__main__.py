"""`python -m benchmarks.fresh`: writes `eval.jsonl`, the same bytes each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.fresh._config_upgrade import config_upgrade_tasks
from benchmarks.fresh._crontab import crontab_tasks
from benchmarks.fresh._dead_links import dead_links_tasks
from benchmarks.fresh._flags import flags_tasks
from benchmarks.fresh._locales import locales_tasks
from benchmarks.fresh._sql_order import sql_order_tasks
from benchmarks.making import encode_tasks
from remora_lab.bench.tasks import Task

FOLDER = Path(__file__).parent


def suite() -> Iterator[Task]:
    """Every task, agent by agent."""
    yield from config_upgrade_tasks()
    yield from locales_tasks()
    yield from sql_order_tasks()
    yield from flags_tasks()
    yield from dead_links_tasks()
    yield from crontab_tasks()


def encoded() -> bytes:
    """The suite's file."""
    return encode_tasks(suite())


if __name__ == "__main__":
    (FOLDER / "eval.jsonl").write_bytes(encoded())
