"""`python -m benchmarks.tasks`: writes `train.jsonl` and `eval.jsonl`, the same bytes each time.

With `--more SEED --out FOLDER` it writes another training half, of the same code and other defects: to train on. In it
every other lint task about a function has errors that are left to people, because three of them taught too little.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import orjson

from benchmarks.tasks import _hand_eval, _hand_train
from benchmarks.tasks._calls import sample_tasks, test_tasks
from benchmarks.tasks._docs import docstring_tasks
from benchmarks.tasks._lint import body_tasks
from benchmarks.tasks._lint_files import file_tasks
from remora_lab.bench.tasks import Half, Task

FOLDER = Path(__file__).parent
HALVES: tuple[Half, ...] = ("train", "eval")
SEED = 20


def suite(half: Half, seed: int = SEED) -> Iterator[Task]:
    """Every task of one half."""
    bodies = partial(body_tasks, leaving=seed != SEED)
    for place, make in enumerate((bodies, file_tasks, docstring_tasks, test_tasks, sample_tasks)):
        yield from make(half, random.Random(f"{seed} {half} {place}"))
    if seed == SEED:
        yield from {"train": _hand_train, "eval": _hand_eval}[half].hand_tasks()


def encoded(half: Half, seed: int = SEED) -> bytes:
    """The suite's file of one half."""
    tasks = [task.model_dump(mode="json") for task in suite(half, seed)]
    return b"".join(orjson.dumps(task) + b"\n" for task in tasks)


def main() -> None:
    """Write both files, or one more to train on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description=__doc__)
    parser.add_argument("--more", type=int, metavar="SEED", help="another training half, of this seed")
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder for it")
    options = parser.parse_args()
    if options.more is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"train-{options.more}.jsonl").write_bytes(encoded("train", options.more))
        return
    for half in HALVES:
        (FOLDER / f"{half}.jsonl").write_bytes(encoded(half))


if __name__ == "__main__":
    main()
