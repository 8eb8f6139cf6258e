"""A suite: the tasks of a folder, and the selection of tasks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from remora.errors import ConfigError
from remora.events import canonical, digest
from remora_lab.bench.tasks import Half, Task, read_tasks

QUICK = 12
"""Number of tasks in the everyday subset."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Suite:
    """Tasks, and the agents that they need besides the bundled ones."""

    folder: Path
    tasks: tuple[Task, ...]

    @property
    def agents(self) -> Path | None:
        """The suite's own agents folder."""
        own = (self.folder / "agents").absolute()
        return own if own.is_dir() else None


def read_suite(folder: Path) -> Suite:
    """The tasks of all `*.jsonl` files in `folder`. Raises `ConfigError` if it is not a suite."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise ConfigError(
            f"`{folder}` contains no tasks: expected `*.jsonl` files", hint="Name a suite with `--suite FOLDER`"
        )
    tasks = tuple(read_tasks(files))
    seen: set[str] = set()
    for task in tasks:
        if not _ID.fullmatch(task.id):
            raise ConfigError(f"`{task.id:.100}` is not a valid task id: expected letters, digits, `.`, `_` and `-`")
        if task.id in seen:
            raise ConfigError(f"Two tasks of `{folder}` are called `{task.id}`: expected each id once")
        seen.add(task.id)
    return Suite(folder, tasks)


def chosen_tasks(
    suite: Suite, half: Half | None, operations: Collection[str] = (), count: int | None = None
) -> list[Task]:
    """The tasks of a half and of these operations; at most `count`, spread over operations and levels."""
    known = sorted({task.operation for task in suite.tasks})
    if unknown := [name for name in operations if name not in known]:
        names = ", ".join(f"`{name}`" for name in known)
        raise ConfigError(f"There is no task for operation `{unknown[0]}`: expected one of {names}")
    found = [task for task in suite.tasks if half in (None, task.half) and (task.operation in (operations or known))]
    if not found:
        raise ConfigError(f"`{suite.folder}` has no task for half `{half}`")
    return found if count is None else spread(found, count)


def spread(tasks: Sequence[Task], count: int) -> list[Task]:
    """A deterministic subset of the tasks: every operation and level in turn, in the order of the suite."""
    groups: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        groups[task.operation, task.level].append(task)
    in_turn = [task for each in zip_longest(*_alternating(groups)) for task in each if task]
    wanted = {task.id for task in in_turn[:count]}
    return [task for task in tasks if task.id in wanted]


def _alternating(groups: dict[tuple[str, str], list[Task]]) -> list[list[Task]]:
    """The groups in an order where operations alternate: the first level of each, then the second of each."""
    by_operation: dict[str, list[list[Task]]] = defaultdict(list)
    for (operation, _), tasks in groups.items():
        by_operation[operation].append(tasks)
    return [tasks for each in zip_longest(*by_operation.values()) for tasks in each if tasks]


def task_digest(task: Task) -> str:
    """Identifies the task's content, so that results of another task with its name are not mixed up."""
    return digest(canonical(task.model_dump(mode="json")))[:23]
