"""What a model is shown of an error without a fix, and which of its edits are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
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
    except Exception:
        pass
    else:
        text = ""
    return '''
%s
''' % text
    found = []
    for name in names:
        name = name.strip()
"""
SHOWN = {
    "a block with what continues it": ("BLE001", 11, 16),
    "a loop with its body": ("E741", 7, 10),
    "a statement with brackets and texts over several lines": ("N806", 2, 6),
    "the loop around its only statement": ("PLW2901", 21, 22),
}


async def _call(tools: ScriptTools, tool: str, **args: Any) -> Any:
    return (await tools.call(tool, args)).value


@pytest.mark.parametrize(("code", "first", "last"), SHOWN.values(), ids=SHOWN.keys())
async def test_the_lines_to_write_anew_are_whole_statements(
    lint_tools: Make, tmp_path: Path, code: str, first: int, last: int
) -> None:
    tools = lint_tools(LINES)
    (tmp_path / "ruff.toml").write_text(f'lint.select = ["{code}"]\n')
    value = await _call(tools, "run_linter")
    shown = value["excerpts"][1]
    lines = LINES.decode().split("\n")[first - 1 : last]
    assert shown["start_line"] == first
    assert "```python\n" + dedent("\n".join(lines)) + "\n```" in shown["text"]


async def test_a_model_sees_the_message_and_the_rules_own_example(lint_tools: Make) -> None:
    tools = lint_tools(b"def f(names):\n    return [l for l in names]\n")
    shown = (await _call(tools, "run_linter"))["excerpts"][1]["text"]
    assert shown.startswith("E741: Ambiguous variable name: `l`\nAn example of this rule:\n```python\nl = 0\n")
    assert "```\nis better written as\n```python\nL = 0\n" in shown
    assert "This is the code:\n```python\nreturn [l for l in names]\n```\n" in shown


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


KEPT = {
    "a comment": (
        b"def f(x):\n    # the first\n    return [l for l in x]\n",
        2,
        "return [item for item in x]",
        "# the first",
    ),
    "a name": (b"def f(x):\n    return [l for l in sorted(x)]\n", 2, "return [item for item in x]", "sorted"),
    "a return": (b"def f(x):\n    return [l for l in x]\n", 2, "[item for item in x]", "return"),
    "a number": (b"def f(x):\n    return [l + 25 for l in x]\n", 2, "return [item for item in x]", "25"),
    "a text": (b"def f(x):\n    return ['no: ' + l for l in x]\n", 2, "return ['yes: ' + item for item in x]", "no"),
}


@pytest.mark.parametrize(("data", "first", "text", "kept"), KEPT.values(), ids=KEPT.keys())
async def test_an_edit_keeps_all_words_that_have_no_error(
    lint_tools: Make, data: bytes, first: int, text: str, kept: str
) -> None:
    value = await _call(lint_tools(data), "edit_lines", first=first, last=data.count(b"\n"), text=text)
    assert value["error"].startswith("Keep ")
    assert kept in value["error"]


async def test_an_edit_brings_nothing_that_is_neither_in_the_code_nor_in_the_rules_example(
    lint_tools: Make, tmp_path: Path
) -> None:
    tools = lint_tools(b"def f(log, x):\n    log.info(f'{x} done')\n")
    (tmp_path / "ruff.toml").write_text('lint.select = ["G004"]\n')
    other = await _call(tools, "edit_lines", first=2, last=2, text="log.debug('%s done', x)")
    assert other["error"] == "`debug` is neither in the code nor in the rule's example"
    example = "import logging\nlogging.basicConfig(format='%(message)s', level=logging.INFO)\nlog.info('{x} done')"
    copied = await _call(tools, "edit_lines", first=2, last=2, text=example)
    assert "copies the rule's example" in copied["error"]
    good = await _call(tools, "edit_lines", first=2, last=2, text="log.info('%s done', x)")
    assert (good["error"], good["outcome"]) == (None, "success")


async def test_code_between_fences_is_taken_out_of_a_reply(lint_tools: Make) -> None:
    tools = lint_tools(b"def f(names):\n    return [l for l in names]\n")
    reply = "Here it is:\n```python\nreturn [name for name in names]\n```\nThe name is longer."
    value = await _call(tools, "edit_lines", first=2, last=2, text=reply)
    assert (value["error"], value["outcome"]) == (None, "success")


async def test_a_draft_replaces_the_lines_that_were_shown_and_the_next_error_is_shown(
    lint_tools: Make, tmp_path: Path
) -> None:
    tools = lint_tools(b"def f(names):\n    a = [l for l in names]\n    return a, [l for l in names]\n")
    drafted = await _call(tools, "edit_lines", first=0, last=0, text="a = [name for name in names]")
    assert (drafted["outcome"], drafted["excerpts"][1]["start_line"]) == ("partial", 3)
    await _call(tools, "edit_lines", first=0, last=0, text="return a, [name for name in names]")
    written = (tmp_path / ".agentfs/workspaces/AGENT/a.py").read_text()
    assert written == "def f(names):\n    a = [name for name in names]\n    return a, [name for name in names]\n"


async def test_a_refused_draft_ends_the_work_and_a_refused_call_does_not(lint_tools: Make) -> None:
    tools = lint_tools(b"def f(names):\n    return [l for l in names]\n")
    same = "return [l for l in names]"
    call = await _call(tools, "edit_lines", first=2, last=2, text=same)
    assert (call["outcome"], call["knowledge_delta"]["next_step"]) == ("error", "edit")
    drafted = await _call(tools, "edit_lines", first=0, last=0, text=same)
    assert (drafted["outcome"], drafted["knowledge_delta"]["next_step"]) == ("error", "end")
    assert drafted["excerpts"][1]["text"] == ""


async def test_an_edit_that_repeats_the_shown_lines_around_its_own_replaces_all_of_them(
    lint_tools: Make, tmp_path: Path
) -> None:
    tools = lint_tools(b"def f(names):\n    return [\n        l for l in names\n    ]\n")
    whole = await _call(tools, "edit_lines", first=3, last=3, text="return [\n    name for name in names\n]")
    assert whole["error"] is None
    assert whole["result"]["lines"] == [2, 4]
    written = tmp_path / ".agentfs/workspaces/AGENT/a.py"
    assert written.read_text() == "def f(names):\n    return [\n        name for name in names\n    ]\n"
