"""Scenarios: each can be worked through by what is told, every wrong call is refused, and none is in two halves."""

from __future__ import annotations

import pytest
import yaml

from remora.subagent import SUBMIT_RESULT_TOOL
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._scenarios import FOLDER, Scenario, scenarios
from remora_lab.train.synthetic._scene import Scene
from remora_lab.train.synthetic._working import Deciding, Going

ALL = list(scenarios().values())
SEEDS = range(6)


def scene(scenario: Scenario, seed: int) -> Scene:
    dice = Dice(f"{scenario.name}-{seed}")
    return Deciding(dice, scenario) if scenario.shape == "one" else Going(dice, scenario)


def test_every_scenario_has_a_name_of_its_own() -> None:
    written = [each["name"] for path in FOLDER.glob("*.yaml") for each in yaml.safe_load(path.read_bytes())]
    assert sorted(written) == sorted(scenarios())


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_what_is_right_leads_to_the_end_and_what_is_wrong_does_not(scenario: Scenario) -> None:
    for seed in SEEDS:
        world, turns = scene(scenario, seed), 0
        while (step := world.fine()[0]).tool != SUBMIT_RESULT_TOOL:
            left = len(world.pending())
            for wrong in world.wrong():
                if wrong.tool in world.shown.values():
                    assert world.do(wrong).outcome == "error"
                    assert len(world.pending()) == left
            told = world.do(step)
            assert told.outcome != "error"
            assert told.summary
            turns += 1
        assert turns <= 6
        stopped = isinstance(world, Going) and bool(world.why)
        assert stopped or world.knowledge().get(world.count, 0) == 0


@pytest.mark.parametrize("scenario", [each for each in ALL if each.shape == "one"], ids=lambda each: each.name)
def test_what_is_told_beside_the_facts_stays_when_a_thing_is_taken_care_of(scenario: Scenario) -> None:
    for seed in SEEDS:
        world = scene(scenario, seed)
        world.do(world.fine()[0])
        before = world.knowledge()
        world.do(world.fine()[0])
        assert {key: world.knowledge()[key] for key in scenario.values} == {key: before[key] for key in scenario.values}
        assert world.counted == (world.count in before)


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_a_menu_has_what_is_right_among_what_is_wrong(scenario: Scenario) -> None:
    for seed in SEEDS:
        world = scene(scenario, seed)
        assert world.menu() == []
        world.do(world.fine()[0])
        menu, fine = world.menu(), world.fine()
        assert sum(any(step.like(each) for each in fine) for step in menu) == 1


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_facts_of_one_case_do_not_fit_another(scenario: Scenario) -> None:
    for case in scenario.cases:
        assert bool(case.items) == (scenario.shape == "names")
        for other in scenario.cases:
            if other is not case and not case.items:
                shared = case.facts.keys() & other.facts.keys()
                assert any(not {*map(str, case.facts[key])} & {*map(str, other.facts[key])} for key in shared)
    named = [item for case in scenario.cases for item in case.items]
    assert len(named) == len(set(named))


def test_what_is_kept_for_judging_is_never_drawn_for_training() -> None:
    def drawn(*, unseen: bool) -> set[str]:
        return {Dice(str(seed), unseen=unseen).scenario(scenarios()).name for seed in range(2000)}

    def tools(names: set[str]) -> set[str]:
        return {case.tool for name in names for case in scenarios()[name].cases if case.tool}

    kept, trained = drawn(unseen=True), drawn(unseen=False)
    assert len(kept) > 10
    assert kept | trained == set(scenarios())
    assert not kept & trained
    assert not tools(kept) & tools(trained)
