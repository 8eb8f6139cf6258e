"""A tiny suite, and an oracle for it that follows candidates: for tests of the harness, not of the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from remora.events import Call
from remora.ports import Decision, Prompt
from remora_lab.bench.bench import BenchPlan, make_environment, run_bench, trials
from remora_lab.bench.controls import select_controls
from remora_lab.bench.results import Result
from remora_lab.bench.rows import Models, select_rows
from remora_lab.bench.tasks import Task

SETTINGS = "[tool.ruff.lint]\nselect = ['F', 'E', 'B']\n"
MESSY = "import os\nimport sys\n\n\ndef first(x):\n    if x is None:\n        return f'abc'\n    return sys.argv\n"
BARE = 'def total(prices, rate):\n    """Add up."""\n    return sum(prices) * rate\n'
HOSTILE = "def show(text):\n    return f'</pre><script>alert(1)</script>'\n"


def task(name: str, **fields: Any) -> Task:
    """A lint task, unless said otherwise."""
    given: dict[str, Any] = {
        "id": name,
        "operation": "lint",
        "half": "eval",
        "level": "easy",
        "origin": "hand",
        "files": {"pyproject.toml": SETTINGS, "app/code.py": MESSY},
        "path": "app/code.py",
        "node": "first",
        "check": {"kind": "lint", "gone": ["F541"]},
    }
    return Task.model_validate(given | fields)


LINT = task("lint-1")
HARD = task("lint-2", level="hard", check={"kind": "lint", "gone": ["F541", "E999"], "stays": ["F999"]})
DOCS = task(
    "docs-1",
    operation="docstring",
    files={"app/code.py": BARE},
    node="total",
    check={"kind": "docstring", "parameters": ["prices", "rate"], "returns": True},
)


class Follower:
    """Calls what the packet proposes, and ends when it proposes nothing."""

    name = "oracle"

    def __init__(self, task: Task) -> None:
        self._task = task

    def choices(self, prompt: Prompt) -> tuple[Call, ...]:
        if not prompt.candidates:
            return (Call(call_id="o", tool="submit_result", args={"summary": "It is done"}),)
        return tuple(Call(call_id="o", tool=action.tool, args=action.args) for action in prompt.candidates)

    def asked(self, calls: Sequence[Call]) -> None:
        """Candidates tell all that it needs."""

    async def decide(self, prompt: Prompt) -> Decision:
        return Decision(calls=self.choices(prompt)[:1])


def write_suite(folder: Path, tasks: list[Task]) -> Path:
    """The folder holds these tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [orjson.dumps(each.model_dump(mode="json")) for each in tasks]
    (folder / "tiny.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder


async def tried(
    path: Path, tasks: list[Task], rows: list[str], controls: list[str] = (), seeds: int = 1, jobs: int = 2
) -> list[Result]:  # fmt: skip
    """The results of these rows, with their streams beside `path`."""
    models = Models()
    asked = BenchPlan(tasks, select_rows(rows, models), select_controls(controls), seeds, models)
    place = make_environment(path, None, Follower)
    found = run_bench(trials(asked), models, place, jobs=jobs, keep=lambda result: None)
    return [result async for result in found]
