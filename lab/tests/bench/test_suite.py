"""Which tasks are taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.tiny import DOCS, LINT, task, write_suite
from remora.errors import ConfigError
from remora_lab.bench.suite import read_suite, select_tasks, task_digest


def test_a_few_tasks_are_spread_over_operations_and_levels(tmp_path: Path) -> None:
    many = [task(f"l{n}", level=("easy", "medium", "hard")[n % 3]) for n in range(30)]
    many += [DOCS.model_copy(update={"id": f"d{n}"}) for n in range(30)]
    suite = read_suite(write_suite(tmp_path / "s", many))
    few = select_tasks(suite, "eval", count=8)
    assert few == select_tasks(suite, "eval", count=8)
    assert len(few) == 8
    assert {(each.operation, each.level) for each in few} == {(each.operation, each.level) for each in many}


def test_halves_and_operations_are_kept_apart(tmp_path: Path) -> None:
    tasks = [LINT, DOCS, task("t", half="train")]
    suite = read_suite(write_suite(tmp_path / "s", tasks))
    assert [each.id for each in select_tasks(suite, "train")] == ["t"]
    assert [each.id for each in select_tasks(suite, "eval", ["docstring"])] == ["docs-1"]
    assert len(select_tasks(suite, None)) == 3


def test_a_task_that_was_changed_is_another_one() -> None:
    assert task_digest(LINT) != task_digest(LINT.model_copy(update={"level": "hard"}))


def test_a_goal_belongs_to_a_task_and_a_task_without_one_is_written_as_before_there_were_goals() -> None:
    asked = LINT.model_copy(update={"goal": "Make it shorter"})
    assert task_digest(asked) != task_digest(LINT)
    assert asked.model_dump(mode="json")["goal"] == "Make it shorter"
    assert "goal" not in LINT.model_dump(mode="json")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [([LINT, LINT], "Two tasks"), ([task("../up")], "is no id of a task")],
)
def test_a_suite_with_unsound_names_is_refused(tasks: list, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        read_suite(write_suite(tmp_path / "s", tasks))
