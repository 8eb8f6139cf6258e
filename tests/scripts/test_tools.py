from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from remora.errors import DefinitionError, ToolArgumentsInvalid, ToolFailed, ToolNotFound, WorkspaceError
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import Completed
from remora.scripts import Script, ScriptPool, ScriptTools, load_scripts
from remora.scripts._lines import follow, split_lines
from remora.subagent import SubagentDefinition, ToolEntry


class Files:
    """A workspace of a few files, in memory."""

    def __init__(self, **files: bytes) -> None:
        self.files = {name.replace("_py", ".py"): data for name, data in files.items()}
        self.upper = Path("upper")

    async def read(self, path: str) -> bytes:
        if ".." in path:
            raise WorkspaceError("leads outside")
        if path not in self.files:
            raise FileNotFoundError(2, "No such file", path)
        return self.files[path]

    def moved(self) -> dict[str, bytes]:
        return {}

    async def write(self, path: str, data: bytes) -> None:
        self.files[path] = data

    async def exists(self, path: str) -> bool:
        return path in self.files

    def take_changes(self) -> tuple[tuple[str, bytes | None, bytes | None], ...]:
        return ()


class Echo:
    """A spawner that starts nothing and says its arguments."""

    async def run(
        self, argv: Sequence[str], *, cwd: Path, stdin: bytes = b"", limit_s: float = 30.0, over: Path | None = None
    ) -> Completed:
        return Completed(tuple(argv), 0, " ".join(argv).encode() + b"|" + stdin, b"warned")


NODE = CodeNode(
    node_id="a.py:f",
    node_type=NodeType.FUNCTION,
    name="f",
    file_path=Path("a.py"),
    lines=LineRange(first=2, last=3),
    owned=(LineRange(first=2, last=3),),
    text="def f():\n    pass\n",
)
HEADER = "from grail import Input, external\n"
HOST = (
    "@external\nasync def read_file(path: str) -> str: ...\n"
    "@external\nasync def write_file(path: str, content: str) -> None: ...\n"
    "@external\nasync def file_exists(path: str) -> bool: ...\n"
    "@external\nasync def run_command(argv: list[str], stdin: str = '') -> dict: ...\n"
)


def _definition(*names: str) -> SubagentDefinition:
    entries = tuple(ToolEntry(name=name) for name in names)
    return SubagentDefinition(name="some", goal="g", system_prompt="s", tools=entries, commands=("ruff",))


@pytest.fixture
def tools(script: Callable[..., Script], pool: ScriptPool, tmp_path: Path) -> Callable[..., ScriptTools]:
    def make(text: str, files: Files | None = None) -> ScriptTools:
        return ScriptTools(
            _definition("tool"),
            {"tool": script(text)},
            node=NODE,
            agent_id="AGENT",
            workspace=files or Files(a_py=b"import os\ndef f():\n    pass\n"),
            spawner=Echo(),
            root=tmp_path,
            pool=pool,
        )

    return make


async def test_system_inputs_are_bound_and_never_offered(tools: Callable[..., ScriptTools]) -> None:
    declared = "".join(f'{name}: Any = Input("{name}")\n' for name in ("node_text", "target_file", "workspace_id"))
    made = tools(HEADER + declared + 'node_lines: list[list[int]] = Input("node_lines")\nq: str = Input("q")\n'
                 "[node_text, target_file, workspace_id, node_lines, q]")  # fmt: skip
    assert made.specs[0].parameters["properties"].keys() == {"q"}
    assert made.specs[0].parameters["required"] == ["q"]
    output = await made.call("tool", {"q": "x"})
    assert output.value == ["def f():\n    pass\n", "a.py", "AGENT", [[2, 3]], "x"]
    with pytest.raises(ToolArgumentsInvalid, match="target_file"):
        await made.call("tool", {"q": "x", "target_file": "/etc/passwd"})


async def test_the_nodes_lines_follow_its_own_edits(tools: Callable[..., ScriptTools]) -> None:
    files = Files(a_py=b"import os\ndef f():\n    pass\n")
    made = tools(HEADER + 'node_lines: Any = Input("node_lines")\nnode_text: str = Input("node_text")\n'
                 "[node_lines, node_text]", files)  # fmt: skip
    await made.call("tool", {})
    files.files["a.py"] = b"def f():\n    pass\n    return\n"
    assert (await made.call("tool", {})).value == [[[1, 3]], "def f():\n    pass\n    return\n"]


async def test_host_functions_do_what_they_say(tools: Callable[..., ScriptTools]) -> None:
    files = Files(a_py="é\r\n".encode())
    body = (
        "text = await read_file('a.py')\nawait write_file('b.py', text + 'x')\n"
        "done = await run_command(['ruff', 'check'], stdin='in')\n"
        "[text, await file_exists('b.py'), await file_exists('c.py'), done]"
    )
    output = await tools(HEADER + HOST + body, files).call("tool", {})
    done = {"returncode": 0, "stdout": "ruff check|in", "stderr": "warned", "artifacts": {}}
    assert output.value == ["é\r\n", True, False, done]
    assert files.files["b.py"] == "é\r\nx".encode()
    assert output.outputs == (("ruff stdout", b"ruff check|in"), ("ruff stderr", b"warned"))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("read_file('none')", "FileNotFoundError"),
        ("read_file('../x')", "PermissionError"),
        ("read_file(3)", "TypeError"),
        ("read_file('latin')", "UnicodeDecodeError"),
        ("read_file('large')", "OSError"),
        ("run_command(['sh', '-c', 'id'])", "PermissionError"),
        ("run_command('ruff check')", "TypeError"),
        ("run_command([])", "TypeError"),
        ("write_file('a', 3)", "TypeError"),
    ],
)
async def test_a_refused_host_call_is_an_ordinary_exception(
    tools: Callable[..., ScriptTools], call: str, kind: str
) -> None:
    files = Files(latin=b"\xe9", large=b"x" * 5_000_000)
    with pytest.raises(ToolFailed, match=rf"tool\.pym:10: {kind}"):
        await tools(HEADER + HOST + f"await {call}\n1", files).call("tool", {})


async def test_a_failed_call_still_tells_what_its_commands_said(tools: Callable[..., ScriptTools]) -> None:
    with pytest.raises(ToolFailed) as caught:
        await tools(HEADER + HOST + "print('p')\nawait run_command(['ruff'])\n1 / 0").call("tool", {})
    assert caught.value.prints == "p\n"
    assert ("ruff stdout", b"ruff|") in caught.value.outputs


async def test_an_unknown_tool_is_told_with_the_known_ones(tools: Callable[..., ScriptTools]) -> None:
    with pytest.raises(ToolNotFound, match=r"expected one of `tool`"):
        await tools("1").call("../tool", {})


def test_all_problems_of_all_scripts_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "one.pym").write_text("x = 1")
    (tmp_path / "two.pym").write_text(HEADER + "@external\nasync def steal(key: str) -> str: ...\n1")
    (tmp_path / "three.pym").write_text(HEADER + "@external\nasync def read_file(key: str) -> str: ...\n1")
    with pytest.raises(DefinitionError) as caught:
        load_scripts(tmp_path, _definition("one", "two", "three", "four"))
    told = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 4
    for words in ("one.pym:1:1: no result", "`steal` does not exist", "parameters of `read_file`", "four.pym:1:1"):
        assert words in told


@pytest.mark.parametrize(
    ("pairs", "before", "after", "expected"),
    [
        ([[1, 2]], "a\nb\nc\n", "a\nb\nc\n", [[1, 2]]),
        ([[3, 3]], "a\nb\nc\n", "b\nc\n", [[2, 2]]),
        ([[1, 1], [3, 3]], "a\nb\nc\n", "x\ny\nb\nc\n", [[1, 2], [4, 4]]),
        ([[1, 1]], "a\nb\n", "b\n", []),
        ([[2, 2]], "a\nb\n", "a\nb\nnew\n", [[2, 3]]),
        ([[1, 1]], "a\rb\r\nc", "a\rb\r\nc\x0cd", [[1, 1]]),
    ],
)
def test_lines_are_followed_through_a_difference(pairs: Any, before: str, after: str, expected: Any) -> None:
    assert follow(pairs, split_lines(before), split_lines(after)) == expected


def test_only_what_python_calls_a_line_end_is_one() -> None:
    assert split_lines("a\x0c\x0b\x85\u2028b\r\nc\rd\n\ne") == ["a\x0c\x0b\x85\u2028b\r\n", "c\r", "d\n", "\n", "e"]
