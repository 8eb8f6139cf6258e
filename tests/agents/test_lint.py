from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.context.contracts import ToolResult
from remora.errors import ToolFailed
from remora.sandbox._allow import find_program
from remora.scripts import ScriptTools
from remora.subagent import SubagentDefinition

Make = Callable[..., ScriptTools]
MANY = b"import os\nimport sys\n\nl = 1\nx = f'a'\n\n\ndef f():\n    import re\n    y = f == None\n    return y\n"


async def _call(tools: ScriptTools, name: str, **args: Any) -> dict[str, Any]:
    """The tool's value, which always keeps the contract."""
    value: dict[str, Any] = (await tools.call(name, args)).value
    ToolResult.model_validate(value)
    assert len(value["summary"]) < 200
    assert "\n" not in value["summary"]
    offered = {spec.name for spec in tools.specs} | {"submit_result"}
    assert all(action["tool"] in offered for action in value["candidate_actions"])
    assert value["candidate_actions"]
    return value


def _now(folder: Path) -> bytes:
    upper = folder / ".agentfs/workspaces/AGENT/a.py"
    return (upper if upper.exists() else folder / "a.py").read_bytes()


def _ruff_fix(data: bytes, folder: Path, code: str) -> bytes:
    """What ruff itself makes of the file, to compare with."""
    argv = [str(find_program("ruff")), "check", "--fix", "--no-cache", "--select", code, "--stdin-filename=a.py", "-"]
    return subprocess.run(argv, cwd=folder, input=data, capture_output=True, check=False).stdout


def test_the_definition_offers_only_what_the_model_gives(lint: SubagentDefinition, lint_tools: Make) -> None:
    specs = {spec.name: spec for spec in lint_tools(b"x = 1\n").specs}
    assert specs["run_linter"].parameters["properties"] == {}
    assert specs["apply_fix"].parameters["required"] == ["code"]
    assert (specs["run_linter"].effects, specs["apply_fix"].effects) == ("none", "workspace")
    assert lint.commands == ("ruff", "pytest")
    assert lint.check is not None


async def test_the_linter_tells_errors_and_what_is_fixable(lint_tools: Make) -> None:
    value = await _call(lint_tools(MANY), "run_linter")
    assert value["summary"] == "6 errors, 4 fixable: F401 x3, E741, F541, E711"
    assert value["outcome"] == "partial"
    assert value["knowledge_delta"]["lint_errors_remaining"] == 6
    assert len(value["result"]["errors"]) == 6
    assert [action["args"] for action in value["candidate_actions"]] == [{"code": "F401"}, {"code": "F541"}]
    assert value["excerpts"][0]["start_line"] == 3
    assert "l = 1" in value["excerpts"][0]["text"]


async def test_only_errors_in_the_nodes_own_lines_are_told(lint_tools: Make) -> None:
    inside = await _call(lint_tools(MANY, (8, 11)), "run_linter")
    assert inside["summary"] == "2 errors, 1 fixable: F401, E711"
    outside = await _call(lint_tools(MANY, (1, 7)), "run_linter")
    assert outside["summary"] == "4 errors, 3 fixable: F401 x2, E741, F541"


async def test_clean_code_leads_to_the_end(lint_tools: Make) -> None:
    value = await _call(lint_tools(b"x = 1\n"), "run_linter")
    assert (value["outcome"], value["summary"]) == ("success", "No lint errors")
    assert value["candidate_actions"][0]["tool"] == "submit_result"


async def test_following_the_candidates_fixes_the_safe_then_the_suggested(lint_tools: Make, tmp_path: Path) -> None:
    tools = lint_tools(MANY)
    value = await _call(tools, "run_linter")
    told = []
    while (action := value["candidate_actions"][0])["tool"] != "submit_result":
        value = await _call(tools, action["tool"], **action["args"])
        told.append(value["summary"])
    assert told == [
        "Fixed 3 F401, 3 errors left: E741, F541, E711",
        "Fixed 1 F541, 2 errors left: E741, E711",
        "Fixed 1 E711 as suggested, 1 error left: E741",
    ]
    assert action["args"]["summary"] == "1 error left without a safe fix: E741"
    assert _now(tmp_path) == b"l = 1\nx = 'a'\n\n\ndef f():\n    y = f is None\n    return y\n"
    assert (tmp_path / "a.py").read_bytes() == MANY
    assert (await _call(tools, "run_linter"))["knowledge_delta"]["lint_errors_remaining"] == 1


async def test_a_fix_leaves_other_nodes_lines_alone(lint_tools: Make, tmp_path: Path) -> None:
    tools = lint_tools(MANY, (1, 7))
    value = await _call(tools, "apply_fix", code="F401")
    assert value["summary"] == "Fixed 2 F401, 2 errors left: E741, F541"
    assert b"    import re\n" in _now(tmp_path)
    again = await _call(tools, "run_linter")
    assert again["summary"] == "2 errors, 1 fixable: E741, F541"


@pytest.mark.parametrize("code", ["E741", "Z999", "", "--fix", "F401; id"])
async def test_a_code_without_a_fix_is_an_error_that_says_so(lint_tools: Make, tmp_path: Path, code: str) -> None:
    value = await _call(lint_tools(MANY), "apply_fix", code=code)
    assert value["outcome"] == "error"
    assert value["error"].startswith(f"No fix for {code}")
    assert value["candidate_actions"][0] == {"tool": "apply_fix", "args": {"code": "F401"}, "reason": "3 safe fixes"}
    assert _now(tmp_path) == MANY


HARD = {
    "tabs": b"def f():\n\tx = f'a'\n\tif True:\n\t\timport os\n\t\ty = f'b'; z = f'c'\n\treturn x\n",
    "crlf": b"import os\r\nimport sys\r\nx = f'a'\r\nprint(x, sys)\r\n",
    "cr": b"import os\rx = f'a'\r",
    "mixed ends": b"import os\r\nimport sys\nx = f'a'\r\ny = f'b'\n",
    "non-ascii": "é = 'ñ😀'; x = f'日本'; y = f'😀'\nимпорт = f'é'\n".encode(),
    "byte order mark": b"\xef\xbb\xbfimport os, sys\nx = f'a'\n",
    "no last newline": b"x = 1\nimport os",
    "form feed": b"x = 1\n\x0c\nimport os\nz = f'\x0c'\n",
    "unicode separators": "s = '\u2028\x85'\nimport os\nx = f'\u2028'\n".encode(),
    "imports in a block": b"def f():\n    import os\n    import sys\n    return 1\nif f:\n    import re\n    f()\n",
    "one import statement": b"from os import (\n    path,\n    sep,\n    name,\n)\nprint(sep)\n",
    "twice in a line": b"x = f'a' + f'b' + f'c'\n",
}


@pytest.mark.parametrize("code", ["F401", "F541"])
@pytest.mark.parametrize("data", HARD.values(), ids=HARD.keys())
async def test_a_fix_equals_ruffs_own_byte_for_byte(lint_tools: Make, tmp_path: Path, data: bytes, code: str) -> None:
    tools = lint_tools(data, (1, 100))
    await _call(tools, "apply_fix", code=code)
    assert _now(tmp_path) == _ruff_fix(data, tmp_path, code)


@pytest.mark.parametrize("data", [b"def f(:\n    pass\n", b"import os\nx = (\n", b"\x00\n", b"print 'x'\n"])
async def test_a_file_that_is_not_python_is_never_called_clean(lint_tools: Make, tmp_path: Path, data: bytes) -> None:
    tools = lint_tools(data, (1, 1))
    value = await _call(tools, "run_linter")
    assert value["outcome"] == "error"
    assert value["summary"].startswith("Not valid Python, line ")
    assert value["knowledge_delta"]["lint_errors_remaining"] > 0
    assert value["candidate_actions"][0]["tool"] == "submit_result"
    assert (await _call(tools, "apply_fix", code="F401"))["outcome"] == "error"
    assert _now(tmp_path) == data


async def test_a_syntax_error_elsewhere_in_the_file_is_told_too(lint_tools: Make) -> None:
    value = await _call(lint_tools(b"import os\n\n\ndef f(:\n    pass\n", (1, 2)), "run_linter")
    assert value["summary"].startswith("Not valid Python, line 4")


async def test_a_project_whose_settings_are_broken_is_a_tool_error(lint_tools: Make, tmp_path: Path) -> None:
    tools = lint_tools(b"x = 1\n")
    (tmp_path / "ruff.toml").write_text("nonsense = [")
    with pytest.raises(ToolFailed, match=r"findings\.py:\d+: RuntimeError: ruff failed"):
        await _call(tools, "run_linter")


async def test_a_file_that_is_not_text_is_a_tool_error(lint_tools: Make) -> None:
    with pytest.raises(ToolFailed, match="UnicodeDecodeError"):
        await _call(lint_tools(b"x = '\xe9'\n"), "run_linter")


async def test_many_errors_still_make_a_short_summary(lint_tools: Make) -> None:
    data = b"".join(b"import m%d\nx%d = f'a'\nl = %d\n" % (n, n, n) for n in range(400))
    value = await _call(lint_tools(data, strict=True), "run_linter")
    assert value["knowledge_delta"]["lint_errors_remaining"] >= 1200
    assert len(value["excerpts"][0]["text"].splitlines()) <= 12


async def test_the_packet_is_told_which_rules_are_on(lint_tools: Make, tmp_path: Path) -> None:
    told = (await _call(lint_tools(b"x = 1\n"), "run_linter"))["knowledge_delta"]["ruff_settings"]
    assert told == "select E F W (ruff.toml)"
    (tmp_path / "ruff.toml").unlink()
    (tmp_path / "pyproject.toml").write_text('[tool.ruff]\nline-length = 99\nlint.extend-select = ["B"]\n')
    told = (await _call(lint_tools(b"x = 1\n"), "run_linter"))["knowledge_delta"]["ruff_settings"]
    assert told == "extend-select B, line-length 99 (pyproject.toml)"
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    told = (await _call(lint_tools(b"x = 1\n"), "run_linter"))["knowledge_delta"]["ruff_settings"]
    assert told == "no linter settings: errors that every linter reports"


async def test_what_has_no_safe_fix_is_told_with_its_line(lint_tools: Make) -> None:
    knowledge = (await _call(lint_tools(MANY), "run_linter"))["knowledge_delta"]
    assert knowledge["needs_edit"] == [
        "line 4: E741 Ambiguous variable name: `l`",
        "line 10: E711 Comparison to `None` should be `cond is None`",
    ]
    assert (await _call(lint_tools(b"import os\n"), "run_linter"))["knowledge_delta"]["needs_edit"] == []


async def test_what_is_against_the_design_is_left_to_people(lint_tools: Make, tmp_path: Path) -> None:
    tools = lint_tools(b"def f(flag: bool, l):\n    a, b = l\n    return a, flag\n")
    (tmp_path / "ruff.toml").write_text('lint.select = ["E", "FBT", "RUF059"]\n')
    value = await _call(tools, "run_linter")
    assert [step["tool"] for step in value["candidate_actions"]] == ["submit_result"]
    knowledge = value["knowledge_delta"]
    assert knowledge["left_to_people"] == ["FBT001", "RUF059"]
    assert knowledge["needs_edit"] == ["line 1: E741 Ambiguous variable name: `l`"]


async def test_what_was_read_is_taken_away_once_lines_have_moved(lint_tools: Make) -> None:
    tools = lint_tools(b"import os\nl = 1\nprint(l)\n")
    assert (await _call(tools, "run_linter"))["knowledge_delta"]["fixable_codes"] == ["F401"]
    refused = await _call(tools, "edit_lines", first=3, last=3, text="print()")
    assert [excerpt["label"] for excerpt in refused["excerpts"]] == ["first errors", "draft: lint error"]
    fixed = await _call(tools, "apply_fix", code="F401")
    assert {"label": "read_file", "text": "", "start_line": 1} in fixed["excerpts"]
    edited = await _call(tools, "edit_lines", first=1, last=2, text="line = 1\nprint(line)")
    assert {"label": "read_file", "text": "", "start_line": 1} in edited["excerpts"]


async def test_reading_shows_numbered_lines_around_a_line(lint_tools: Make) -> None:
    data = b"".join(b"x%d = %d\r\n" % (number, number) for number in range(1, 101))
    tools = lint_tools(data, (10, 20))
    value = await _call(tools, "read_file", line=50)
    assert value["summary"] == "Read lines 46-59 of 100; line 50 is not this node's"
    assert value["excerpts"][0]["text"].splitlines()[4] == "50: x50 = 50"
    assert (await _call(tools, "read_file", line=0))["summary"] == "Read lines 6-19 of 100"
    assert (await _call(tools, "read_file", line=999))["summary"].startswith("Read lines 96-100 of 100")


EDITS = {
    "one line": (b"l = 1\nprint(l)\n", (1, 2, "line = 1\nprint(line)"), b"line = 1\nprint(line)\n"),
    "indented by the old lines": (
        b"def f(x):\n\tif x == None:\n\t\treturn 1\n",
        (2, 2, "if x is None:"),
        b"def f(x):\n\tif x is None:\n\t\treturn 1\n",
    ),
    "inner indentation is kept": (
        b"def f(x):\n    if x == None:\n        return 1\n    return 2\n",
        (2, 4, "if x is None:\n    return 1\nreturn 2"),
        b"def f(x):\n    if x is None:\n        return 1\n    return 2\n",
    ),
    "windows line ends": (b"x = 1\r\ny = x == None\r\n", (2, 2, "y = x is None\n"), b"x = 1\r\ny = x is None\r\n"),
    "no last newline": (b"x = 1\ny = x == None", (2, 2, "y = x is None"), b"x = 1\ny = x is None"),
    "byte order mark": (
        b"\xef\xbb\xbfx = '\xc3\xa9'\ny = x == None\n",
        (2, 2, "y = x is None"),
        b"\xef\xbb\xbfx = '\xc3\xa9'\ny = x is None\n",
    ),
    "an unused line is taken away": (b"def f():\n    x = 1\n    return 2\n", (2, 2, ""), b"def f():\n    return 2\n"),
}


@pytest.mark.parametrize(("data", "edit", "after"), EDITS.values(), ids=EDITS.keys())
async def test_an_edit_changes_the_given_lines_alone(
    lint_tools: Make, tmp_path: Path, data: bytes, edit: tuple[int, int, str], after: bytes
) -> None:
    tools = lint_tools(data, (1, 9))
    first, last, text = edit
    value = await _call(tools, "edit_lines", first=first, last=last, text=text)
    assert value["error"] is None
    assert _now(tmp_path) == after
    again = await _call(tools, "edit_lines", first=first, last=last, text=text)
    assert again["outcome"] == "error"
    assert _now(tmp_path) == after


REFUSED = {
    "lines of another node": ((8, 8, "def f(x):"), "are not this node's"),
    "backwards": ((4, 3, "x = 1"), "are not this node's"),
    "beyond the file": ((4, 400, "x = 1"), "are not this node's"),
    "lines without an error": ((3, 3, "x = 2"), "have no error"),
    "a comment that hides it": ((4, 4, "l = 1  # noqa"), "hides an error"),
    "no longer Python": ((4, 4, "l = ("), "would not be Python"),
    "a new error": ((4, 4, "k = undefined_name"), "a new error"),
    "as bad as before": ((4, 4, "O = 1"), "as many errors"),
    "a function put in its place": ((4, 4, "def g():\n    return 1"), "gone, new or renamed"),
}


@pytest.mark.parametrize(("edit", "why"), REFUSED.values(), ids=REFUSED.keys())
async def test_an_edit_that_is_no_fix_changes_nothing(
    lint_tools: Make, tmp_path: Path, edit: tuple[int, int, str], why: str
) -> None:
    tools = lint_tools(MANY, (1, 7))
    value = await _call(tools, "edit_lines", first=edit[0], last=edit[1], text=edit[2])
    assert value["outcome"] == "error"
    assert why in value["error"]
    assert _now(tmp_path) == MANY


async def test_code_cannot_be_deleted_to_be_rid_of_its_errors(lint_tools: Make, tmp_path: Path) -> None:
    data = b"def f(x):\n    y = x == None\n    z = 2\n    return y, z\n"
    value = await _call(lint_tools(data), "edit_lines", first=2, last=3, text="")
    assert value["error"] == "Only lines that are an error themselves can be taken away"
    assert _now(tmp_path) == data


LOOPED = "def f(x):\n    return [l for l in x]\n"
TESTS = "from a import f\n\n\ndef test_all():\n    assert f([1, 2]) == [1, 2]\n"


async def test_an_edit_must_leave_the_projects_tests_green(agent_tools: Make, tmp_path: Path) -> None:
    tools = agent_tools("lint", {"a.py": LOOPED, "test_a.py": TESTS, "ruff.toml": 'lint.select = ["E"]\n'}, "a.py:f")
    broken = await _call(tools, "edit_lines", first=2, last=2, text="return [name for name in x if name > 1]")
    assert broken["error"] == "It fails with the project's suite: test_a.py::test_all"
    assert _now(tmp_path) == LOOPED.encode()
    kept = await _call(tools, "edit_lines", first=2, last=2, text="return [name for name in x]")
    assert (kept["error"], kept["outcome"]) == (None, "success")
    assert b"[name for name in x]" in _now(tmp_path)


async def test_all_safe_fixes_are_one_call_and_all_others_are_marked(lint_tools: Make, tmp_path: Path) -> None:
    tools = lint_tools(MANY)
    safe = await _call(tools, "apply_fix", code="safe")
    assert (safe["result"]["fixed"], safe["result"]["unsafe"]) == (4, 0)
    assert safe["knowledge_delta"]["next_step"] == "end"
    unsafe = await _call(tools, "apply_fix", code="unsafe")
    assert unsafe["knowledge_delta"]["unsafe_fixes"] == unsafe["result"]["fixed"] > 0
    assert b"f is None" in _now(tmp_path)


async def test_tests_with_very_many_errors_are_left_alone_with_that_reason(agent_tools: Make) -> None:
    code = "".join(f"import m{number}\n" for number in range(20))
    for path, left in (("tests/test_a.py", True), ("a.py", False)):
        tools = agent_tools("lint", {path: code}, path)
        value = await _call(tools, "run_linter")
        assert (value["knowledge_delta"]["lint_errors_remaining"] == 0) == left
        assert ("does not run its linter on this file" in value["summary"]) == left


async def test_a_file_that_the_projects_settings_exclude_has_no_errors(agent_tools: Make) -> None:
    files = {"a.py": "import os\n", "b.py": "import os\n", "pyproject.toml": '[tool.ruff]\nexclude = ["b.py"]\n'}
    for path, errors in (("a.py", 1), ("b.py", 0)):
        value = await _call(agent_tools("lint", files, path), "run_linter")
        assert value["knowledge_delta"]["lint_errors_remaining"] == errors


async def test_a_file_of_a_megabyte_is_linted_like_any_other(lint_tools: Make) -> None:
    table = b"x = [\n" + b"1,\n" * 300_000 + b"]\n"
    value = await _call(lint_tools(b"import os\n" + table), "run_linter")
    assert value["summary"] == "1 error, 1 fixable: F401"
