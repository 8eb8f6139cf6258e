"""The oracle decides by what a prompt shows, whatever its form, and from any state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.tiny import MESSY, SETTINGS, task
from remora.context.contracts import ToolSpec
from remora.context.models import DecisionPacket
from remora.context.projection import apply
from remora.context.render import render
from remora.errors import DecisionError
from remora.events import ActionDelta, Excerpt, KnowledgeDelta, PacketDelta, PacketUpdateEvent
from remora.inference import EstimatedCounter
from remora.ports import Prompt
from remora.sandbox import probe
from remora_lab.bench.bench import BenchPlan, make_environment, run_bench, trials
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.oracle import Oracle
from remora_lab.bench.results import Result
from remora_lab.bench.rows import ROWS
from remora_lab.bench.tasks import Task, read_tasks

SUITE = Path(__file__).parents[3] / "benchmarks" / "tasks"
TOOLS = {
    "lint": ("run_linter", "apply_fix", "read_file", "edit_lines"),
    "docstring": ("read_current_docstring", "read_type_hints", "write_docstring"),
    "test": ("analyze_signature", "read_existing_tests", "write_test_file", "run_tests"),
    "sample_data": ("analyze_signature", "write_fixture_file"),
}
EDIT = {"code": "E711", "bad": ["    if x == None:"], "good": ["    if x is None:"]}


def made(operation: str, **solution: Any) -> Task:
    return task("t", operation=operation, solution=solution)


def prompts(operation: str, **parts: Any) -> list[Prompt]:
    """The same state as JSON, as Markdown, and as a chat that was told it."""
    specs = tuple(ToolSpec(name=name) for name in (*TOOLS[operation], "submit_result"))
    actions = [ActionDelta(tool=tool, summary="…", outcome=outcome) for tool, outcome in parts.pop("actions", [])]
    knowledge = parts.pop("knowledge", {})
    excerpts = [Excerpt(label=label, text=text, start_line=line) for label, line, text in parts.pop("excerpts", [])]
    deltas = [PacketDelta(action=action) for action in actions]
    known = {key: KnowledgeDelta(value=value) for key, value in knowledge.items()}
    deltas.append(PacketDelta(knowledge=known, excerpts=tuple(excerpts)))
    packet = DecisionPacket(agent_id="a", goal="Do it", operation=operation, node_id="a.py:f", turn=3)
    for seq, delta in enumerate(deltas):
        packet = apply(packet, PacketUpdateEvent(seq=seq, turn=3, delta=delta))
    rendered = [
        render(packet, system_prompt="Work.", tools=specs, limit=4000, counter=EstimatedCounter(), style=style)
        for style in ("json", "markdown")
    ]
    chat = [{"role": "system", "content": "Work."}, {"role": "user", "content": "Do it"}]
    for place, action in enumerate(actions or [None]):
        last = place == max(0, len(actions) - 1)
        told = {"outcome": action.outcome if action else "success", "knowledge_delta": knowledge if last else {}}
        told |= {"excerpts": [excerpt.model_dump() for excerpt in excerpts] if last else []}
        chat.append(
            {"role": "user", "content": f"{action.tool if action else 'x'} returned:\n{orjson.dumps(told).decode()}"}
        )
    return [*(Prompt(one.messages, specs, (), 3) for one in rendered), Prompt(tuple(chat), specs, (), 3)]


def right(task: Task, **parts: Any) -> list[tuple[str, dict[str, Any]]]:
    """The right calls: the same for each form of the prompt."""
    found = [Oracle(task).choices(prompt) for prompt in prompts(task.operation, **parts)]
    calls = [[(call.tool, call.args) for call in each] for each in found]
    assert calls[0] == calls[1] == calls[2]
    return calls[0]


ERRORS = {"lint_errors_remaining": 2, "fixable_codes": ["F401"], "needs_edit": ["line 7: E711 Comparison to None"]}
CODE = ("first errors", 6, "def f(x):\n    if x == None:\n        return 1")


def test_lint_begins_with_a_look_then_fixes_then_edits_then_ends() -> None:
    lint = made("lint", edits=[EDIT], leave=[])
    edit = ("edit_lines", {"first": 7, "last": 7, "text": "    if x is None:"})
    assert right(lint) == [("run_linter", {})]
    assert right(lint, knowledge=ERRORS, excerpts=[CODE]) == [("apply_fix", {"code": "F401"}), edit]
    fixed = {**ERRORS, "fixable_codes": []}
    assert right(lint, knowledge=fixed, excerpts=[CODE]) == [edit]
    assert right(lint, knowledge=fixed) == [("read_file", {"line": 7})]
    read = ("read_file", 7, "7:     if x == None:\n8:         return 1")
    assert right(lint, knowledge=fixed, excerpts=[read]) == [edit]
    done = {"lint_errors_remaining": 0, "fixable_codes": [], "needs_edit": []}
    assert [tool for tool, _ in right(lint, knowledge=done)] == ["submit_result"]


def test_an_error_that_must_stay_is_left_and_lines_that_moved_are_not_edited() -> None:
    left = {**ERRORS, "fixable_codes": []}
    assert [tool for tool, _ in right(made("lint", edits=[EDIT], leave=["E711"]), knowledge=left)] == ["submit_result"]
    moved = ("first errors", 9, CODE[2])
    assert right(made("lint", edits=[EDIT]), knowledge=left, excerpts=[moved]) == [("read_file", {"line": 7})]


def test_a_docstring_is_written_unless_it_is_complete() -> None:
    docs = made("docstring", summary="Say what it does.")
    assert right(docs) == [("read_current_docstring", {})]
    write = ("write_docstring", {"summary": "Say what it does."})
    for state in ("missing", "outdated"):
        assert right(docs, knowledge={"docstring_state": state}) == [write]
    failed = {"actions": [("write_docstring", "error")], "knowledge": {"docstring_state": "missing"}}
    assert right(docs, **failed) == [write]
    assert right(docs, knowledge={"docstring_state": "complete"})[0][0] == "submit_result"


def test_a_test_is_written_run_and_written_again_only_once() -> None:
    test = made("test", cases=["1 -> 2"])
    known = {"signature": "def f(x)"}
    write = [("write_test_file", {"cases": ["1 -> 2"]}), ("write_test_file", {})]
    assert right(test)[0] == ("analyze_signature", {})
    assert right(test, knowledge=known) == write
    written = {**known, "test_file": "tests/test_f.py"}
    assert right(test, knowledge=written, actions=[("write_test_file", "success")]) == [("run_tests", {})]
    ran = {**written, "test_problems": 0}
    once = [("write_test_file", "partial"), ("run_tests", "success")]
    assert right(test, knowledge=ran, actions=once)[0][0] == "submit_result"
    bad = {**written, "test_problems": 1}
    assert right(test, knowledge=bad, actions=once) == write
    again = [*once, ("write_test_file", "success")]
    assert right(test, knowledge=bad, actions=again) == [("run_tests", {})]
    assert right(test, knowledge=bad, actions=[*again, ("run_tests", "error")])[0][0] == "submit_result"


def test_a_fixture_is_written_until_it_fits() -> None:
    data = made("sample_data", cases=[{"x": 1}])
    assert [tool for tool, _ in right(data)] == ["analyze_signature", "write_fixture_file", "write_fixture_file"]
    missing = {"signature": "def f(x)", "fixture_problems": 1}
    assert right(data, knowledge=missing)[0] == ("write_fixture_file", {"cases": [{"x": 1}]})
    assert right(data, knowledge={**missing, "fixture_problems": 0})[0][0] == "submit_result"


async def test_tools_under_other_names_are_called_by_those() -> None:
    names = {"glimpse": "run_linter", "submit_result": "submit_result"}
    prompt = prompts("lint")[0]
    renamed = Prompt(prompt.messages, (ToolSpec(name="glimpse"), ToolSpec(name="submit_result")), (), 1)
    assert [call.tool for call in Oracle(made("lint"), names).choices(renamed)] == ["glimpse"]
    without = Prompt(prompt.messages, (ToolSpec(name="submit_result"),), (), 1)
    assert [call.tool for call in (await Oracle(made("lint")).decide(without)).calls] == ["submit_result"]
    with pytest.raises(DecisionError, match="No tool that is offered"):
        await Oracle(made("lint")).decide(Prompt(prompt.messages, (), (), 1))


async def solved(tasks: list[Task], control: str, folder: Path) -> list[Result]:
    asked = BenchPlan(tasks, [ROWS["oracle"]], [CONTROLS[control]], 1)
    place = make_environment(folder / "r.jsonl", None, Oracle)
    return [one async for one in run_bench(trials(asked), asked.models, place, keep=lambda one: None)]


def sample(per_operation: int) -> list[Task]:
    """Some tasks of each operation, hard ones first."""
    tasks = sorted(read_tasks([SUITE / "eval.jsonl"]), key=lambda each: each.level != "hard")
    return [each for name in TOOLS for each in [one for one in tasks if one.operation == name][:per_operation]]


@pytest.mark.faults
@pytest.mark.skipif(probe().applies == "none", reason="no OS sandbox works here")
async def test_the_oracle_solves_a_hard_task_of_each_operation(tmp_path: Path) -> None:
    results = await solved(sample(1), "none", tmp_path)
    assert [(one.task, one.problems) for one in results if not one.solved] == []
    assert all(one.right_calls == one.asked > 1 and one.largest_prompt <= 1000 for one in results)


@pytest.mark.faults
@pytest.mark.parametrize("control", sorted(CONTROLS))
async def test_candidates_and_names_make_no_difference_to_the_oracle(control: str, tmp_path: Path) -> None:
    results = await solved(sample(4), control, tmp_path)
    assert [(one.task, one.problems) for one in results if not one.solved] == []


async def test_an_error_that_nobody_can_mend_is_left_and_the_run_ends(tmp_path: Path) -> None:
    code = MESSY.replace("first(x)", "first(l)").replace("x is None", "l is None").replace("f'abc'", "'abc'")
    gone = {"kind": "lint", "gone": ["E741"]}
    stuck = task("stuck", files={"pyproject.toml": SETTINGS, "app/code.py": code}, check=gone, solution={})
    (result,) = await solved([stuck], "none", tmp_path)
    assert (result.reason, result.problems) == ("submitted", ("E741 is still there",))
