"""The suite of agents never trained on: their names are new, and their tasks need what is shown and a decision."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.generator import part
from bench.own_suites import (
    BUNDLED,
    agents_of,
    hardest_tasks,
    names,
    solvable_by_what_is_shown,
    suite_of,
    titles,
    trained_names,
    trained_words,
    tried,
)

SUITE = suite_of("unseen")
TASKS = SUITE.tasks
AGENTS = agents_of(SUITE)
PLAIN = [agent for agent in AGENTS if agent.name in ("changelog", "dependencies", "dotenv", "readme")]
"""Written in the words that come to mind, as a user would: single words may be known, tools are not."""
HARDEST = hardest_tasks(SUITE)


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent not in PLAIN], ids=lambda path: path.name)
def test_no_name_argument_or_key_is_one_that_was_trained_on(agent: Path) -> None:
    assert len(names(agent)) > 8
    assert names(agent) & set().union(*map(names, BUNDLED)) == set()
    known = trained_words() | {word for name in trained_names() for word in name.split("_")}
    assert {word for name in names(agent) for word in name.split("_")} & known == set()


@pytest.mark.parametrize("agent", PLAIN, ids=lambda path: path.name)
def test_an_agent_in_plain_words_has_no_tool_that_was_trained_on(agent: Path) -> None:
    assert len(titles(agent)) > 4
    assert titles(agent) & set().union(trained_words(), trained_names(), *map(titles, BUNDLED)) == set()


def test_the_committed_suite_is_what_the_generator_makes() -> None:
    main = part("__main__", "unseen")
    assert (main.FOLDER / "eval.jsonl").read_bytes() == main.encoded()
    told = {agent.name: sum(task.operation == agent.name for task in TASKS) for agent in AGENTS}
    assert told == {
        "backlog": 8, "changelog": 12, "copyright": 8, "dependencies": 10, "dotenv": 12, "facade": 8, "readme": 10,
    }  # fmt: skip


async def test_the_oracle_solves_a_task_of_each_agent_with_arguments_that_are_shown(tmp_path: Path) -> None:
    await solvable_by_what_is_shown(SUITE, HARDEST, tmp_path)


@pytest.mark.faults
async def test_every_task_can_be_solved_and_a_third_of_the_turns_need_a_decision(tmp_path: Path) -> None:
    await solvable_by_what_is_shown(SUITE, TASKS, tmp_path)


async def test_the_first_candidate_does_not_do(tmp_path: Path) -> None:
    results, _ = await tried(SUITE, HARDEST, "first-candidate", tmp_path)
    assert sum(one.solved for one in results) < len(results)
