"""The suite of agents that nobody tuned for: new tools and topics, and tasks that need what is shown and a decision."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from bench.generator import part
from bench.own_suites import (
    BUNDLED,
    agents_of,
    hardest_tasks,
    solvable_by_what_is_shown,
    suite_of,
    titles,
    trained_names,
    trained_words,
    tried,
)

SUITE = suite_of("fresh")
AGENTS = agents_of(SUITE)
HARDEST = hardest_tasks(SUITE)
STOPS = {
    task.id for task in SUITE.tasks if all(task.files.get(path) == text for path, text in task.check.files.items())
}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda path: path.name)
def test_no_agent_or_tool_has_a_name_that_was_trained_on_or_that_another_agent_has(agent: Path) -> None:
    others = [*BUNDLED, *agents_of(suite_of("unseen")), *(other for other in AGENTS if other != agent)]
    assert len(titles(agent)) > 4
    assert titles(agent) & set().union(trained_words(), trained_names(), *map(titles, others)) == set()


@pytest.mark.parametrize("agent", AGENTS, ids=lambda path: path.name)
def test_no_sentence_of_an_agents_prompt_is_in_that_of_another(agent: Path) -> None:
    others = [*BUNDLED, *agents_of(suite_of("unseen")), *(other for other in AGENTS if other != agent)]
    assert len(sentences(agent)) > 4
    assert sentences(agent) & set().union(*map(sentences, others)) == set()


def sentences(agent: Path) -> set[str]:
    prompt = yaml.safe_load((agent / "subagent.yaml").read_text(encoding="utf-8"))["system_prompt"]
    return {each for each in re.split(r"[.:;]\s+", " ".join(prompt.split())) if len(each.split()) > 3}


def test_the_committed_suite_is_what_the_generator_makes() -> None:
    main = part("__main__", "fresh")
    assert (main.FOLDER / "eval.jsonl").read_bytes() == main.encoded()
    told = {agent.name: sum(task.operation == agent.name for task in SUITE.tasks) for agent in AGENTS}
    assert told == {"config_upgrade": 10, "crontab": 10, "dead_links": 9, "flags": 10, "locales": 10, "sql_order": 10}


def test_in_a_fifth_of_the_tasks_it_is_right_to_leave_all_files_as_they_are() -> None:
    assert len(STOPS) >= len(SUITE.tasks) / 5
    assert {name.partition("-")[0] for name in STOPS} == {agent.name for agent in AGENTS}


async def test_the_oracle_solves_a_task_of_each_agent_with_arguments_that_are_shown(tmp_path: Path) -> None:
    await solvable_by_what_is_shown(SUITE, HARDEST, tmp_path)


@pytest.mark.faults
async def test_every_task_can_be_solved_and_a_third_of_the_turns_need_a_decision(tmp_path: Path) -> None:
    await solvable_by_what_is_shown(SUITE, SUITE.tasks, tmp_path)


@pytest.mark.faults
async def test_the_first_candidate_solves_a_third_to_a_half(tmp_path: Path) -> None:
    results, _ = await tried(SUITE, SUITE.tasks, "first-candidate", tmp_path)
    assert len(SUITE.tasks) / 3 < sum(one.solved for one in results) < len(SUITE.tasks) / 2


async def test_every_task_asks_somebody(tmp_path: Path) -> None:
    results, _ = await tried(SUITE, [task for task in SUITE.tasks if task.id in STOPS], "first-candidate", tmp_path)
    assert [one.task for one in results if one.asked == 0] == []
