"""`python -m benchmarks.tasks`: writes `train.jsonl` and `eval.jsonl`, the same bytes each time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import orjson

from benchmarks.tasks._calls import sample_tasks, test_tasks
from benchmarks.tasks._docs import docstring_tasks
from benchmarks.tasks._lint import body_tasks
from benchmarks.tasks._lint_files import file_tasks
from remora.bench.tasks import Half, Task

FOLDER = Path(__file__).parent
HALVES: tuple[Half, ...] = ("train", "eval")
SEED = 20


def suite(half: Half) -> Iterator[Task]:
    """Every task of one half."""
    for place, make in enumerate((body_tasks, file_tasks, docstring_tasks, test_tasks, sample_tasks)):
        yield from make(half, random.Random(f"{SEED} {half} {place}"))


def encoded(half: Half) -> bytes:
    """The suite's file of one half."""
    tasks = [task.model_dump(mode="json") for task in suite(half)]
    return b"".join(orjson.dumps(task) + b"\n" for task in tasks)


def main() -> None:
    """Write both files."""
    for half in HALVES:
        (FOLDER / f"{half}.jsonl").write_bytes(encoded(half))


if __name__ == "__main__":
    main()
