"""A suite: reads the tasks of a folder and selects some of them."""

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
"""Tasks of the everyday subset."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Suite:
    """Tasks, and the agents that they need beside the bundled ones."""

    folder: Path
    tasks: tuple[Task, ...]

    @property
    def agents(self) -> Path | None:
        """Agents of the suite's own, by folder."""
        own = (self.folder / "agents").absolute()
        return own if own.is_dir() else None


def read_suite(folder: Path) -> Suite:
    """The tasks of all `*.jsonl` in `folder`. Raises `ConfigError` for what is no suite."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise ConfigError(
            f"`{folder}` holds no tasks: expected `*.jsonl` files", hint="Name a suite with `--suite FOLDER`"
        )
    tasks = tuple(read_tasks(files))
    seen: set[str] = set()
    for task in tasks:
        if not _ID.fullmatch(task.id):
            raise ConfigError(f"`{task.id:.100}` is no id of a task: expected letters, digits, `.`, `_` and `-`")
        if task.id in seen:
            raise ConfigError(f"Two tasks of `{folder}` are called `{task.id}`: expected each id once")
        seen.add(task.id)
    return Suite(folder, tasks)


def select_tasks(
    suite: Suite, half: Half | None, operations: Collection[str] = (), count: int | None = None
) -> list[Task]:
    """The tasks of a half and of these operations; no more than `count`, spread over operations and levels."""
    known = sorted({task.operation for task in suite.tasks})
    if unknown := [name for name in operations if name not in known]:
        names = ", ".join(f"`{name}`" for name in known)
        raise ConfigError(f"There is no task for operation `{unknown[0]}`: expected one of {names}")
    found = [task for task in suite.tasks if half in (None, task.half) and (task.operation in (operations or known))]
    if not found:
        raise ConfigError(f"`{suite.folder}` has no task for half `{half}`")
    return found if count is None else spread(found, count)


def spread(tasks: Sequence[Task], count: int) -> list[Task]:
    """Some of the tasks, always the same: every operation and level in turn, in the order of the suite."""
    groups: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        groups[task.operation, task.level].append(task)
    in_turn = [task for each in zip_longest(*_alternating(groups)) for task in each if task]
    wanted = {task.id for task in in_turn[:count]}
    return [task for task in tasks if task.id in wanted]


def _alternating(groups: dict[tuple[str, str], list[Task]]) -> list[list[Task]]:
    """The groups so that operations take turns: the first level of each, then the second of each."""
    by_operation: dict[str, list[list[Task]]] = defaultdict(list)
    for (operation, _), tasks in groups.items():
        by_operation[operation].append(tasks)
    return [tasks for each in zip_longest(*by_operation.values()) for tasks in each if tasks]


def task_digest(task: Task) -> str:
    """What the task is, so that results of another one under its name are not taken for it."""
    return digest(canonical(task.model_dump(mode="json")))[:23]
