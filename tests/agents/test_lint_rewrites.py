"""What a model is shown of an error without a fix, and which of its edits are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]

LINES = b"""def f(names, path):
    Text = text = join(
        path,
        "a\\
b",
    )
    for l in names:
        text += l

        print(l)
    try:
        print(text)
    except:
        pass
    else:
        text = ""
    return '''
%s
''' % text
"""
SHOWN = {
    "a block with what continues it": ("E722", 11, 16),
    "a loop with its body": ("E741", 7, 10),
    "a statement with brackets and texts over several lines": ("N806", 2, 6),
}


async def _call(tools: ScriptTools, tool: str, **args: Any) -> Any:
    return (await tools.call(tool, args)).value


@pytest.mark.parametrize(("code", "first", "last"), SHOWN.values(), ids=SHOWN.keys())
async def test_the_lines_to_write_anew_are_whole_statements(
    lint_tools: Make, tmp_path: Path, code: str, first: int, last: int
) -> None:
    tools = lint_tools(LINES)
    (tmp_path / "ruff.toml").write_text(f'lint.select = ["{code}"]\n')
    shown = (await _call(tools, "run_linter"))["excerpts"][0]
    assert shown["start_line"] == first
    assert shown["text"].split("\n") == LINES.decode().split("\n")[first - 1 : last]


async def test_the_rules_own_example_is_shown(lint_tools: Make) -> None:
    tools = lint_tools(b"def f(names):\n    return [l for l in names]\n")
    example = (await _call(tools, "run_linter"))["excerpts"][1]
    assert example["label"] == "example"
    assert example["text"].startswith("# before\nl = 0\n")
    assert "# after\nL = 0\n" in example["text"]


async def test_a_rule_whose_fix_needs_an_import_is_left_to_people(lint_tools: Make, tmp_path: Path) -> None:
    settings = 'lint.select = ["PTH110"]\n'
    without = lint_tools(b"import os\n\n\ndef f(path):\n    return os.path.exists(path)\n")
    (tmp_path / "ruff.toml").write_text(settings)
    knowledge = (await _call(without, "run_linter"))["knowledge_delta"]
    assert (knowledge["needs_edit"], knowledge["left_to_people"]) == ([], ["PTH110"])
    having = lint_tools(b"import os\nfrom pathlib import Path\n\n\ndef f(path):\n    return os.path.exists(path)\n")
    (tmp_path / "ruff.toml").write_text(settings)
    assert len((await _call(having, "run_linter"))["knowledge_delta"]["needs_edit"]) == 1


async def test_an_edit_must_not_use_a_name_that_is_not_defined_whatever_rules_the_project_has(
    lint_tools: Make, tmp_path: Path
) -> None:
    data = b"def f(path):\n    return '%s' % path\n"
    tools = lint_tools(data)
    (tmp_path / "ruff.toml").write_text('lint.select = ["UP031"]\n')
    value = await _call(tools, "edit_lines", first=2, last=2, text="return str(Path(path))")
    assert value["error"] == "Then `Path` would not be defined"
    assert not (tmp_path / ".agentfs/workspaces/AGENT/a.py").exists()


async def test_an_edit_in_a_models_own_words_is_marked_unsafe(lint_tools: Make) -> None:
    tools = lint_tools(b"def f(names):\n    return [l for l in names]\n")
    value = await _call(tools, "edit_lines", first=2, last=2, text="return [name for name in names]")
    assert value["knowledge_delta"]["unsafe_fixes"] == 1


async def test_an_edit_that_repeats_the_shown_lines_around_its_own_replaces_all_of_them(
    lint_tools: Make, tmp_path: Path
) -> None:
    tools = lint_tools(b"def f(names):\n    return [\n        l for l in names\n    ]\n")
    whole = await _call(tools, "edit_lines", first=3, last=3, text="return [\n    name for name in names\n]")
    assert whole["error"] is None
    assert whole["result"]["lines"] == [2, 4]
    written = tmp_path / ".agentfs/workspaces/AGENT/a.py"
    assert written.read_text() == "def f(names):\n    return [\n        name for name in names\n    ]\n"
