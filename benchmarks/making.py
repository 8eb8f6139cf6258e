"""How tasks for agents of a suite's own are put together: those of `unseen` and of `fresh`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from remora_lab.bench.tasks import FilesCheck, Level, Task


@dataclass(frozen=True)
class Case:
    """What every task begins with."""

    name: str
    level: Level
    path: str
    source: str


Planned = dict[str, Any]
"""A call of the solution."""


def call(tool: str, **args: object) -> Planned:
    """One call of a solution."""
    return {"tool": tool, "args": args} if args else {"tool": tool}


def made(
    name: str,
    level: Level,
    files: dict[str, str],
    path: str,
    after: Mapping[str, str | None],
    calls: list[Any],
    *,
    node: str = "",
    goal: str = "",
) -> Task:
    """A task: `name` begins with its agent's name. What `after` does not name must be as it was."""
    return Task(
        id=name,
        operation=name.partition("-")[0],
        half="eval",
        level=level,
        origin="hand",
        files=files,
        path=path,
        node=node,
        goal=goal,
        check=FilesCheck(files={path: files[path], **after}),
        solution={"calls": calls},
    )


def encode_tasks(tasks: Iterable[Task]) -> bytes:
    """The file of a suite, one task a line."""
    return b"".join(orjson.dumps(task.model_dump(mode="json")) + b"\n" for task in tasks)
