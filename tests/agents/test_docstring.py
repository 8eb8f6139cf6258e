"""The docstring agent's tools, on files like those people write."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from remora.context.contracts import ToolResult
from remora.context.schema import problems
from remora.discovery import PythonCode, TreeSitterDiscovery
from remora.nodes import CodeNode
from remora.sandbox import LocalSpawner
from remora.scripts import Agent, ScriptPool, ScriptTools, load_agent
from remora.subagent import SUBMIT_RESULT
from remora.workspaces import OverlayWorkspace

AGENTS = Path(__file__).parents[2] / "agents"
CORPUS = Path(__file__).parent / "corpus/docstring"
Make = Callable[..., ScriptTools]


@pytest.fixture(scope="module")
def agent() -> Agent:
    return load_agent(AGENTS, "docstring")


@pytest_asyncio.fixture
async def make(agent: Agent, tmp_path: Path) -> AsyncIterator[Make]:
    """The agent's real tools for a node of `a.py`, which has the given text."""
    async with ScriptPool(max_processes=2) as pool:

        def made(source: str | bytes, name: str) -> ScriptTools:
            file = tmp_path / "p/a.py"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(source.encode() if isinstance(source, str) else source)
            node = _nodes(tmp_path / "p")[f"a.py:{name}"]
            return ScriptTools(
                agent.definition,
                agent.scripts,
                node=node,
                agent_id="A",
                workspace=OverlayWorkspace(tmp_path / "p", tmp_path / "state/workspaces/A"),
                spawner=LocalSpawner(),
                root=tmp_path / "p",
                pool=pool,
                code=PythonCode(),
            )

        yield made


def _nodes(root: Path) -> dict[str, CodeNode]:
    return {node.node_id: node for node in TreeSitterDiscovery(root).find([root])}


async def _call(tools: ScriptTools, name: str, **args: Any) -> dict[str, Any]:
    """The tool's value, which always keeps the contract."""
    value: dict[str, Any] = (await tools.call(name, args)).value
    ToolResult.model_validate(value)
    assert len(value["summary"]) < 200
    assert "\n" not in value["summary"]
    offered = {spec.name: spec.parameters for spec in (*tools.specs, SUBMIT_RESULT)}
    for action in value["candidate_actions"]:
        assert not problems(offered[action["tool"]], action["args"])
    return value


async def _now(tools: ScriptTools) -> str:
    return (await tools._workspace.read("a.py")).decode()


def _without_docstrings(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


@pytest.mark.parametrize("name", ["plain", "sphinx", "numpy"])
async def test_following_the_candidates_documents_a_whole_file(make: Make, tmp_path: Path, name: str) -> None:
    """`NAME.expected.py` is the file when every node was worked on, `NAME.told.json` what each tool said."""
    source = (CORPUS / f"{name}.py").read_text()
    text, told = source, {}
    (tmp_path / "p").mkdir(exist_ok=True)
    (tmp_path / "p/a.py").write_text(source)
    for node_id in [node for node in _nodes(tmp_path / "p") if ":" in node]:
        tools = make(text, node_id.partition(":")[2])
        hints = await _call(tools, "read_type_hints")
        value = first = await _call(tools, "read_current_docstring")
        said = []
        while (action := value["candidate_actions"][0])["tool"] != "submit_result":
            value = await _call(tools, action["tool"], **action["args"])
            said.append(value["summary"])
        assert value["knowledge_delta"]["docstring_problems"] == 0
        after = await _call(tools, "read_current_docstring")
        assert after["knowledge_delta"]["docstring_state"] in ("complete", "not needed")
        told[node_id] = {
            "hints": hints["summary"],
            "signature": hints["result"]["signature"],
            "read": first["summary"],
            "candidates": first["candidate_actions"],
            "write": said,
        }
        text = await _now(tools)
        assert _without_docstrings(text) == _without_docstrings(source)
    if os.environ.get("UPDATE_CORPUS"):
        (CORPUS / f"{name}.expected.py").write_text(text)
        (CORPUS / f"{name}.told.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    assert text == (CORPUS / f"{name}.expected.py").read_text()
    assert told == json.loads((CORPUS / f"{name}.told.json").read_text())


def test_the_definition_offers_little_to_write(agent: Agent, make: Make) -> None:
    specs = {spec.name: spec for spec in make("def f(): ...\n", "f").specs}
    assert specs["read_current_docstring"].parameters["properties"] == {}
    assert specs["write_docstring"].parameters["required"] == ["summary"]
    assert [specs[name].effects for name in specs] == ["none", "none", "workspace"]
    assert agent.definition.commands == ()
    assert agent.definition.context == ("read_current_docstring",)


async def test_the_code_is_the_first_excerpt(make: Make) -> None:
    tools = make("import os\n\n\n@d\ndef f(a):\n    return a\n", "f")
    value = await _call(tools, "read_current_docstring")
    assert value["excerpts"][0] == {"label": "code", "text": "@d\ndef f(a):\n    return a", "start_line": 4}
    assert value["knowledge_delta"] == {"docstring_state": "missing", "docstring_problems": 1, "parameters": ["a"]}


LOAD = "def load_config(path: str, retries=3):\n    return open(path)\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"summary": ""}, "is empty"),
        ({"summary": " \n "}, "is empty"),
        ({"summary": "def load_config(path):"}, "is code"),
        ({"summary": "return open(path)"}, "is code"),
        ({"summary": "config = load(path)"}, "is code"),
        ({"summary": "load_config(path)"}, "is code"),
        ({"summary": "from os import path"}, "is code"),
        ({"summary": "```python"}, "is code"),
        ({"summary": '"""Load it."""'}, "is code"),
        ({"summary": '{"summary": "Load it."}'}, "is code"),
        ({"summary": "Load"}, "two words"),
        ({"summary": "load_config."}, "only repeats the name"),
        ({"summary": "Load config"}, "only repeats the name"),
        ({"summary": "Load the config."}, "only repeats the name"),
        ({"summary": "Load from `file_name` or so."}, "`file_name` is not in this code; its parameters: path, retries"),
        ({"summary": "Load it all.", "parameters": {"file": "x"}}, "`file` is not a parameter of `load_config`"),
        ({"summary": "x y " * 80}, "too long"),
    ],
)
async def test_a_poor_sentence_is_refused_and_changes_nothing(make: Make, args: dict[str, Any], said: str) -> None:
    tools = make(LOAD, "load_config")
    value = await _call(tools, "write_docstring", **args)
    assert value["outcome"] == "error"
    assert said in value["error"]
    assert value["candidate_actions"][0]["tool"] == "read_current_docstring"
    assert await _now(tools) == LOAD


LONG = (
    "The function `load_config` takes a path and opens the file there for reading. It returns the open file, which the "
    "caller must close. The number of retries is accepted but not used by the present version of the code at all."
)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (
            "One sentence: the function `load_config` in a.py, lines 1-2 returns an open file",
            "Returns an open file.",
        ),
        ("The function `load_config` opens the file at `path`.", "Opens the file at `path`."),
        ("This function opens a file.", "Opens a file."),
        ("Summary: Open the file at `path`.", "Open the file at `path`."),
        ("Open the file.\n\nArgs:\n    path: Where it is.\n\nReturns:\n    The file.", "Open the file."),
        ("The class of all files is opened.", "The class of all files is opened."),
        ("The function that opens files.", "The function that opens files."),
        (LONG, "Takes a path and opens the file there for reading."),
    ],
)
async def test_what_a_model_writes_around_its_sentence_is_left_out(make: Make, given: str, written: str) -> None:
    value = await _call(make(LOAD, "load_config"), "write_docstring", summary=given)
    assert value["outcome"] == "success", value["error"]
    assert value["result"]["docstring"].split("\n")[0] == written


async def test_descriptions_of_the_model_are_used(make: Make) -> None:
    tools = make(LOAD, "load_config")
    given = {"path": "where it lies", "retries": ""}
    value = await _call(tools, "write_docstring", summary="open the file", parameters=given, returns="An open file")
    assert value["result"]["docstring"] == (
        "Open the file.\n\nArgs:\n    path: Where it lies.\n    retries: The retries. Defaults to 3.\n\n"
        "Returns:\n    An open file."
    )
    assert value["candidate_actions"][0]["tool"] == "submit_result"


async def test_a_complete_docstring_leads_to_the_end(make: Make) -> None:
    value = await _call(make('def f(a):\n    """Add one."""\n', "f"), "read_current_docstring")
    assert value["summary"] == "The docstring of `f` is complete"
    assert [action["tool"] for action in value["candidate_actions"]] == ["submit_result"]


async def test_hostile_text_stays_text(make: Make) -> None:
    tools = make(LOAD, "load_config")
    words = {"path": '"""\nimport os\nos.system("x")\n"""\\'}
    await _call(tools, "write_docstring", summary='Say "hi" \\ there', parameters=words)
    text = await _now(tools)
    assert _without_docstrings(text) == _without_docstrings(LOAD)
    assert "import os" not in [line.strip() for line in text.splitlines()]


async def test_tabs_and_line_ends_are_kept(make: Make) -> None:
    tools = make(b"class A:\r\n\tdef f(self, a): return a\r\n", "A.f")
    value = await _call(tools, "read_current_docstring")
    await _call(tools, "write_docstring", **value["candidate_actions"][0]["args"])
    text = await _now(tools)
    assert text.count("\n") == text.count("\r\n")
    assert '\r\n\t\t"""' in text
