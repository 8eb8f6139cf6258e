"""One task, one row, one seed: run through the real app, judged by the files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.tiny import DOCS, HARD, LINT, MESSY, SETTINGS, Follower, task, tried
from inference.real import smollm2
from remora.app import Project
from remora.config import Config, ServerConfig
from remora.context.models import DecisionPacket
from remora.errors import ConfigError
from remora.events import AgentStartEvent, ModelRequestEvent, ToolCallEvent, ToolResultEvent
from remora_lab.bench.bench import BenchPlan, make_environment, run_bench, trials
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.results import Result
from remora_lab.bench.rows import ROWS, Models

Controlled = tuple[Path, dict[str, Result]]


def opened(path: Path, result: Result) -> Project:
    state = path.parent / result.stream
    return Project(state, state, Config())


async def test_the_files_decide_and_not_the_agents_word(tmp_path: Path) -> None:
    easy, hard = await tried(tmp_path / "r.jsonl", [LINT, HARD], ["first-candidate"], jobs=1)
    assert (easy.solved, easy.problems, easy.reason) == (True, (), "submitted")
    assert (hard.solved, hard.reason) == (False, "submitted")
    assert any("F999" in problem for problem in hard.problems)


def test_a_result_tells_turns_prompts_and_agreement_and_keeps_its_stream(controlled: Controlled) -> None:
    path, results = controlled
    result = results["none"]
    events = list(opened(path, result).library.events(result.agent_id))
    receipts = [event.tokens["total"] for event in events if isinstance(event, ModelRequestEvent)]
    assert (result.turns, result.asked, result.right_tools) == (len(receipts),) * 3
    assert (result.prompt_tokens, result.largest_prompt) == (sum(receipts), max(receipts))
    assert result.wall_s > 0


async def test_a_wrong_turn_is_named_with_what_would_have_been_right(tmp_path: Path) -> None:
    class Stubborn(Follower):
        def choices(self, prompt):  # type: ignore[no-untyped-def]
            calls = super().choices(prompt)
            return tuple(call.model_copy(update={"tool": "read_file"}) for call in calls) if prompt.turn == 2 else calls

    models = Models()
    asked = BenchPlan([LINT], [ROWS["first-candidate"]], [CONTROLS["none"]], 1, models)
    place = make_environment(tmp_path / "r.jsonl", None, Stubborn)
    (result,) = [one async for one in run_bench(trials(asked), models, place, keep=lambda one: None)]
    assert result.wrong_turn == 2
    assert result.wrong_call is not None
    assert result.wrong_call.tool == "apply_fix"
    assert {choice.tool for choice in result.choices} == {"read_file"}
    assert result.right_tools == result.asked - 1


@pytest.mark.parametrize("control", ["none", "withheld", "unfamiliar"])
async def test_an_agent_is_asked_what_a_person_asks_in_the_task(control: str, tmp_path: Path) -> None:
    asked = LINT.model_copy(update={"goal": "Use {no} braces in {node}, please"})
    path = tmp_path / "r.jsonl"
    (result,) = await tried(path, [asked], ["first-candidate"], [control])
    (start,) = [one for one in opened(path, result).library.events(result.agent_id) if isinstance(one, AgentStartEvent)]
    assert start.goal == "Use {no} braces in {node}, please"


async def test_ruff_alone_may_mend_other_lines_of_the_file(tmp_path: Path) -> None:
    lint, *rest = await tried(tmp_path / "r.jsonl", [LINT, DOCS], ["ruff-fix"])
    assert rest == []  # there is no such tool for docstrings
    assert lint.solved
    assert (lint.turns, lint.prompt_tokens) == (0, 0)


async def test_ruff_mends_what_is_not_surely_safe_only_where_it_is_told_to(tmp_path: Path) -> None:
    files = {"pyproject.toml": SETTINGS, "app/code.py": MESSY.replace("x is None", "x == None")}
    unsafe = task("unsafe", files=files, check={"kind": "lint", "gone": ["E711", "F541"]})
    results = await tried(tmp_path / "r.jsonl", [unsafe], ["ruff-fix", "ruff-fix-unsafe"])
    assert {one.row: one.problems for one in results} == {"ruff-fix": ("E711 is still there",), "ruff-fix-unsafe": ()}


async def test_the_same_seed_draws_the_same_and_the_rows_differ_only_where_they_draw(tmp_path: Path) -> None:
    models = Models()
    rows = [ROWS["first-candidate"], ROWS["random"], ROWS["ruff-fix"]]
    found = trials(BenchPlan([LINT, DOCS], rows, [CONTROLS["none"], CONTROLS["planted"]], 3, models))
    seeds = {(one.row.name, one.control.name): [] for one in found}
    for one in found:
        seeds[one.row.name, one.control.name].append(one.seed)
    assert sorted(seeds["first-candidate", "none"]) == [0, 0]
    assert sorted(seeds["first-candidate", "planted"]) == [0, 0, 1, 1, 2, 2]
    assert sorted(seeds["random", "none"]) == [0, 0, 1, 1, 2, 2]
    assert seeds["ruff-fix", "none"] == [0]
    once = await tried(tmp_path / "a.jsonl", [LINT], ["random"], ["planted"], seeds=2)
    again = await tried(tmp_path / "b.jsonl", [LINT], ["random"], ["planted"], seeds=2)
    told = [[(one.seed, one.turns, one.solved) for one in each] for each in (once, again)]
    assert told[0] == told[1]


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Result]]:
    """One task under every control, without a model: the file, and the results by control. They are only read."""
    path = tmp_path_factory.mktemp("controlled") / "r.jsonl"
    results = asyncio.run(tried(path, [LINT], ["first-candidate"], list(CONTROLS)))
    return path, {result.control: result for result in results}


@pytest.mark.parametrize("control", CONTROLS)
async def test_a_controlled_stream_verifies_and_folds_to_what_was_shown(control: str, controlled: Controlled) -> None:
    path, results = controlled
    result = results[control]
    app = opened(path, result)
    reports = app.library.verify()
    assert len(reports) == 2
    assert [report.problem for report in reports] == [None, None]
    packet = app.streams.packet(result.agent_id)
    assert isinstance(packet, DecisionPacket)
    assert packet.turn == result.turns


def offered(path: Path, result: Result) -> list[list[str]]:
    """The tools of the candidates, each time that they were set."""
    events = opened(path, result).library.events(result.agent_id)
    found = []
    for event in events:
        if isinstance(event, AgentStartEvent | ToolResultEvent) and event.delta is not None:
            found.append([action.tool for action in event.delta.candidate_actions or ()])
    return found


def test_withheld_candidates_are_nowhere(controlled: Controlled) -> None:
    path, results = controlled
    assert not any(offered(path, results["withheld"]))
    assert results["withheld"].solved is False  # without a model, there is nothing left to go by


def test_a_planted_candidate_stands_first_and_can_be_called(controlled: Controlled) -> None:
    path, results = controlled
    as_shipped, planted = offered(path, results["none"]), offered(path, results["planted"])
    assert planted[0] == as_shipped[0]  # before the first result
    assert planted[1][1:] == as_shipped[1]
    assert planted[1][0] not in as_shipped[1]


async def test_an_unfamiliar_agent_works_alike_under_names_that_are_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    shipped, renamed = await tried(path, [LINT], ["oracle"], ["none", "unfamiliar"], jobs=1)
    assert (renamed.solved, renamed.turns, renamed.right_calls) == (True, shipped.turns, shipped.turns)
    app = opened(path, renamed)
    events = list(app.library.events(renamed.agent_id))
    called = {event.tool for event in events if isinstance(event, ToolCallEvent)}
    assert not called & {"run_linter", "apply_fix", "read_file", "edit_lines"}
    whole = b"".join(file.read_bytes() for file in (app.state_dir / "traces").iterdir())
    assert b"run_linter" not in whole
    assert b"apply_fix" not in whole
    assert b"run_linter" not in b"".join([await app.blobs.get(blob) for blob in texts(events)])


def texts(events: list) -> list[str]:
    receipts = [event for event in events if isinstance(event, ModelRequestEvent)]
    messages = [message for event in receipts for message in event.messages]
    return [message["content_ref"]["blob"] for message in messages if "content_ref" in message]


async def test_a_function_called_like_a_tool_keeps_its_name_in_what_tools_say(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    code = MESSY.replace("def first", "def read_file")
    named = task("named", files={"pyproject.toml": SETTINGS, "app/code.py": code}, node="read_file")
    (result,) = await tried(path, [named], ["oracle"], ["unfamiliar"])
    start = next(iter(opened(path, result).library.events(result.agent_id)))
    assert isinstance(start, AgentStartEvent)
    assert "read_file" in start.goal
    assert result.solved


async def test_a_task_for_code_that_is_not_there_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`lost` is for `app/code\.py:nowhere`, where `lint` has 0 agents"):
        await tried(tmp_path / "r.jsonl", [task("lost", node="nowhere")], ["first-candidate"])


async def test_a_task_cannot_write_beside_its_project(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leads out of its project"):
        await tried(tmp_path / "r.jsonl", [task("out", files={"../x.py": "", "app/code.py": MESSY})], ["ruff-fix"])


@pytest.mark.faults  # takes most of a minute
async def test_the_embedded_model_has_a_row_on_each_memory(tmp_path: Path) -> None:
    models = Models(embedded=ServerConfig(gguf=smollm2(), max_tokens=64))
    rows = [ROWS["embedded"], ROWS["embedded-cut"]]
    asked = BenchPlan([DOCS], rows, [CONTROLS["none"]], 1, models)
    place = make_environment(tmp_path / "r.jsonl", None, Follower)
    found = [one async for one in run_bench(trials(asked), models, place, keep=lambda one: None)]
    assert [one.row for one in found] == ["embedded", "embedded-cut"]
    assert all(one.exact and one.largest_prompt <= 1000 and one.turns for one in found)
