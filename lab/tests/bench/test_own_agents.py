"""Tasks for any agent: judged by whole files, solved by an oracle that is told its calls."""

from __future__ import annotations

import json
import re
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from bench.test_checks import made, verdict
from bench.test_oracle import prompts
from bench.test_results import head, result
from bench.tiny import task
from remora.cli._main import app
from remora.errors import DefinitionError
from remora.events import Call
from remora_lab.bench.oracle import Oracle
from remora_lab.bench.page import BEGIN, PAGE, page_files
from remora_lab.bench.results import Stored, read_results
from remora_lab.bench.summary import summarize
from remora_lab.bench.tasks import FilesCheck, read_tasks
from remora_lab.marks import END

ROOT = Path(__file__).parents[3]
WANTED = made(FilesCheck(files={"rides/fares.py": "x = 1\n", "new.md": "New\n", "rides/__init__.py": None}))
DONE: dict[str, str | None] = {"rides/fares.py": "x = 1\n", "new.md": "New\n", "rides/__init__.py": None}
RUN, FIX, EDIT = (
    {"tool": "run_linter"},
    {"tool": "apply_fix", "args": {"code": "F401"}},
    {"tool": "apply_fix", "args": {"code": "F541"}},
)


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        (DONE, ()),
        ({**DONE, "new.md": "New"}, ("`new.md` has another text",)),
        ({**DONE, "new.md": None}, ("`new.md` is not there",)),
        ({**DONE, "rides/__init__.py": ""}, ("`rides/__init__.py` is there",)),
        ({**DONE, "more.md": ""}, ("`more.md` is new",)),
        ({**DONE, "pyproject.toml": ""}, ("`pyproject.toml` was changed",)),
        ({**DONE, "pyproject.toml": None}, ("`pyproject.toml` is gone",)),
    ],
)
def test_the_files_that_are_named_have_their_texts_and_no_other_has_changed(
    changes: dict[str, str | None], problems: tuple[str, ...], tmp_path: Path
) -> None:
    assert verdict(tmp_path, WANTED, changes).problems == problems


def right(oracle: Oracle, *actions: tuple[str, str]) -> list[str]:
    """What the oracle would call after these actions, whatever the form of the prompt."""
    chosen = [oracle.choices(prompt) for prompt in prompts("lint", actions=list(actions))]
    assert chosen[0] == chosen[1] == chosen[2]
    return [f"{call.tool} {call.args.get('code', '')}".strip() for call in chosen[0]]


def asks(oracle: Oracle, tool: str, **args: object) -> None:
    oracle.asked([Call(call_id="c", tool=tool, args=args)])


def test_calls_are_right_in_their_order_and_those_of_a_group_in_any() -> None:
    oracle = Oracle(task("t", solution={"calls": [RUN, [FIX, EDIT], RUN]}))
    assert right(oracle) == ["run_linter"]
    asks(oracle, "run_linter")
    assert right(oracle, ("run_linter", "partial")) == ["apply_fix F401", "apply_fix F541"]
    asks(oracle, "apply_fix", code="F541")
    assert right(oracle, ("apply_fix", "success")) == ["apply_fix F401"]
    asks(oracle, "apply_fix", code="F401")
    assert right(oracle, ("apply_fix", "success")) == ["run_linter"]
    asks(oracle, "run_linter")
    assert right(oracle, ("run_linter", "success")) == ["submit_result"]


def test_a_call_that_failed_or_was_not_named_leaves_the_next_one_as_it_was() -> None:
    oracle = Oracle(task("t", solution={"calls": [FIX]}))
    asks(oracle, "apply_fix", code="F401")
    assert right(oracle, ("apply_fix", "error")) == ["apply_fix F401"]
    asks(oracle, "apply_fix", code="E711")
    assert right(oracle, ("apply_fix", "success")) == ["apply_fix F401"]
    asks(oracle, "apply_fix", code="F401")
    assert right(oracle, ("run_linter", "success")) == ["apply_fix F401"]  # shown is what another call came to


@pytest.mark.parametrize("calls", [{"tool": "x"}, ["x"], [{"args": {}}], [[{"tool": "x", "arguments": {}}]]])
def test_calls_that_nobody_can_make_are_refused_when_the_suite_is_read(calls: object, tmp_path: Path) -> None:
    line = {**task("t").model_dump(mode="json"), "solution": {"calls": calls}}
    (tmp_path / "t.jsonl").write_bytes(orjson.dumps(line))
    with pytest.raises(DefinitionError, match=r"must be a list of `\{tool, args\}`"):
        list(read_tasks([tmp_path / "t.jsonl"]))


def test_the_suite_of_the_reference_is_solved_by_the_oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "reference" / "bench.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    assert CliRunner().invoke(app, ["agents", "new", "todo"]).exit_code == 0
    (tmp_path / "tasks.jsonl").write_text(json.dumps(json.loads(block)) + "\n")
    words = ["bench", "--suite", ".", "--row", "oracle", "--row", "first-candidate", "--out", "r/r.jsonl"]
    assert CliRunner().invoke(app, words).exit_code == 0
    found = {one.row: one for one in read_results([tmp_path / "r" / "r.jsonl"]).results}
    oracle = found["oracle"]
    assert (oracle.solved, oracle.problems, oracle.own_agent) == (True, (), True)
    assert oracle.right_calls == oracle.asked == 4


def test_agents_of_a_suite_are_told_apart_from_the_bundled_ones() -> None:
    rows = ("first-candidate", "adapter")
    bundled = [result(f"t{n}", row=row, solved=True) for row in rows for n in range(10)]
    own = [
        result(f"o{n}", row=row, operation="todo", own_agent=True, solved=row == "adapter" and n < 4, turns=2)
        for row in rows
        for n in range(5)
    ]
    page = page_files(Stored((head(),), (*bundled, *own)), f"{BEGIN}\n{END}")
    alone = page_files(Stored((head(),), tuple(bundled)), f"{BEGIN}\n{END}")
    before, _, after = page[PAGE].partition("### Agents never trained on")
    assert "| no model: first candidate | 10 × 1 | 100%" in before
    assert "| no model: first candidate | 5 × 1 | 0% (0–43) | – |" in after
    assert "| embedded model with adapter, two tracks | 5 × 1 | 80%" in after
    assert "### todo" not in page[PAGE]
    assert {name: text for name, text in page.items() if name != PAGE} == {
        name: text for name, text in alone.items() if name != PAGE
    }
    assert alone[PAGE].startswith(before.rpartition("### Against")[0])


def test_a_table_of_own_agents_alone_is_a_table_like_any_other() -> None:
    found = summarize([result("o", row="random", operation="todo", own_agent=True)])
    assert found.own is None
    assert [line.operation for line in found.lines] == ["", "todo"]
