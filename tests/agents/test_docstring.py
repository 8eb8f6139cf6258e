"""The docstring agent's tools, on files like those people write."""

from __future__ import annotations

import ast
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
Make = Callable[..., ScriptTools]


@pytest.fixture(scope="module")
def agent() -> Agent:
    return load_agent(AGENTS, "docstring")


@pytest_asyncio.fixture
async def make(agent: Agent, tmp_path: Path) -> AsyncIterator[Make]:
    """The agent's real tools for a node of `a.py`, which has the given text."""
    async with ScriptPool(max_processes=2) as pool:

        def made(source: str | bytes, name: str, others: str = "") -> ScriptTools:
            file = tmp_path / "p/a.py"
            file.parent.mkdir(exist_ok=True)
            (file.parent / "others.py").write_text(others)
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


def test_the_definition_offers_little_to_write(agent: Agent, make: Make) -> None:
    specs = {spec.name: spec for spec in make("def f(): ...\n", "f").specs}
    assert specs["read_current_docstring"].parameters["properties"] == {}
    assert specs["write_docstring"].parameters["required"] == ["summary"]
    assert [specs[name].effects for name in specs] == ["none", "none", "workspace"]
    assert agent.definition.commands == ()
    assert agent.definition.context == ("read_current_docstring",)


JOB = """class Job:
    def monday(self):
        if self.interval != 1:
            raise IntervalError("only for weekly jobs")
        self.start_day = "monday"
        return self.weeks

    def seconds(self):
        self.unit = "seconds"
        return self

    def second(self):
        if self.interval != 1:
            raise IntervalError("use seconds")
        return self.seconds

    def interval_of(self):
        return self.interval
"""


def _four(text: str) -> str:
    return "\n\n".join(text.replace("one", name) for name in ("one", "two", "three", "four"))


GOOGLE = _four('def one(a):\n    """Do it.\n\n    Args:\n        a: First.\n    """\n')
SPHINX = _four('def one(a):\n    """Do it.\n\n    :param a: First.\n    """\n')
NUMPY = _four('def one(a):\n    """Do it.\n\n    Parameters\n    ----------\n    a\n        First.\n    """\n')
PLAIN = _four('def one(a):\n    """Return ``a`` twice."""\n')
THIRD = _four('def one(a):\n    """Returns ``a`` twice."""\n')


@pytest.mark.parametrize(
    ("others", "name", "written"),
    [
        (
            THIRD,
            "Job.monday",
            'Sets ``self.start_day`` to ``"monday"`` and returns ``self.weeks``.\n\n'
            "Raises ``IntervalError`` if ``self.interval`` is not 1.",
        ),
        (
            GOOGLE,
            "Job.monday",
            'Set `self.start_day` to `"monday"` and return `self.weeks`.\n\n'
            "Raises:\n    IntervalError: If `self.interval` is not 1.",
        ),
        (SPHINX, "Job.second", "Same as `self.seconds`.\n\n:raises IntervalError: If `self.interval` is not 1."),
        (
            NUMPY,
            "Job.second",
            "Same as `self.seconds`.\n\nRaises\n------\nIntervalError\n    If `self.interval` is not 1.",
        ),
        (
            PLAIN,
            "Job.second",
            "Same as ``self.seconds``. Raise ``IntervalError`` if ``self.interval`` is not 1.",
        ),
    ],
)
async def test_what_the_code_proves_is_written_in_the_style_of_the_project(
    make: Make, others: str, name: str, written: str
) -> None:
    tools = make(JOB, name, others)
    value = await _call(tools, "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == "missing"
    (action,) = value["candidate_actions"]
    after = await _call(tools, action["tool"], **action["args"])
    assert after["result"]["docstring"] == written
    assert after["knowledge_delta"]["docstring_problems"] == 0
    assert _without_docstrings(await _now(tools)) == _without_docstrings(JOB)


UNDOCUMENTED = "".join(f"def f{number}(a):\n    return a\n\n\n" for number in range(5))


@pytest.mark.parametrize(
    ("source", "name", "others", "reason"),
    [
        (JOB, "Job.interval_of", GOOGLE, "nothing to add beyond its name"),
        ("def _load(a):\n    a.b = 1\n    return a\n", "_load", "", "it is private"),
        ("class A:\n    def __len__(self):\n        return 1\n", "A.__len__", "", "special method"),
        ("def f():\n    def g(a):\n        a.b = 1\n        return 1\n    return g\n", "f.g", "", "inside a function"),
        ("class A(dict):\n    def pop(self, k):\n        raise TypeError('no')\n", "A.pop", "", "`dict.pop`"),
        ("class A(B):\n    def go(self):\n        raise TypeError('no')\n", "A.go", "", "`B.go`"),
        (
            "from others import B\n\n\nclass A(B):\n    def go(self):\n        raise TypeError('no')\n",
            "A.go",
            "class B:\n    def go(self):\n        pass\n",
            "`B.go`",
        ),
        ("def test_it():\n    x = 1\n    assert x\n", "test_it", "", "part of the tests"),
        ("def f(a): ...\n", "f", "", "it has no body"),
        (JOB, "Job.seconds", GOOGLE, "nothing to add beyond its name"),
        (JOB, "Job.monday", UNDOCUMENTED, "only 0 of 9 functions of this project have a docstring"),
    ],
)
async def test_code_that_needs_no_docstring_is_left_alone_and_the_reason_is_told(
    make: Make, source: str, name: str, others: str, reason: str
) -> None:
    tools = make(source, name, others)
    value = await _call(tools, "read_current_docstring")
    assert value["knowledge_delta"]["docstring_problems"] == 0
    assert reason in value["summary"]
    assert [action["tool"] for action in value["candidate_actions"]] == ["submit_result"]
    refused = await _call(tools, "write_docstring", summary="Remember the values that callers gave to it.")
    assert refused["outcome"] == "error"
    assert await _now(tools) == source


RENAMED = """def f(values, exceptions):
    '''Try it.

    Args:
        values: All of them.
        excs: To catch.
    '''
"""
GONE = """def f(a):
    '''Try it.

    :param a: First.
    :param parser: Once
        used.
    :type parser: P
    :return: It.
    '''
"""
RAISED = """def f(a):
    '''Try it.

    Raises:
        KeyError: If unknown.
    '''
    if a < 0:
        raise ValueError(a)
    raise KeyError(a)
"""
DESCRIBED = """def {name}(a, width):
    '''Do it.

    Args:
        a: Any.
        width (int): Columns
            of text.
    '''


"""
BESIDE = """def f(b, width, c):
    '''Do it.

    Args:
        b: First.
        c: Last.
    '''
"""
ELSEWHERE = "".join(DESCRIBED.format(name=name) for name in ("one", "two", "three")) + BESIDE
SPACED = """def f(a):
    '''Do it.

    Args:

      a: First.

      b: Once used.

    '''
    return a
"""
ALIGNED = """def f(values, exceptions):
    '''Try it.

    Args:
        values: All of them.
        excs: To catch,
              and to forget.
    '''
"""
REPAIRS = {
    "a parameter whose description is aligned": (
        ALIGNED,
        "        excs: To catch,\n              and",
        "        exceptions: To catch,\n                    and",
    ),
    "an entry between blank lines that is gone": (SPACED, "      b: Once used.\n\n", ""),
    "a parameter that was renamed": (RENAMED, "        excs:", "        exceptions:"),
    "a parameter that is gone": (GONE, "    :param parser: Once\n        used.\n    :type parser: P\n", ""),
    "an error that is missing among others": (
        RAISED,
        "        KeyError: If unknown.",
        "        KeyError: If unknown.\n        ValueError: If `a` is negative.",
    ),
    "a parameter that three others of the file describe": (
        ELSEWHERE,
        "        b: First.\n",
        "        b: First.\n        width (int): Columns of text.\n",
    ),
}


@pytest.mark.parametrize("what", REPAIRS)
async def test_only_the_wrong_lines_of_a_docstring_change(make: Make, what: str) -> None:
    source, old, new = REPAIRS[what]
    tools = make(source, "f")
    value = await _call(tools, "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == "outdated"
    (action,) = value["candidate_actions"]
    after = await _call(tools, action["tool"], **action["args"])
    assert after["summary"].startswith("Repaired the docstring of `f`")
    assert await _now(tools) == source.replace(old, new)


async def test_a_list_that_would_stay_incomplete_is_not_half_completed(make: Make) -> None:
    source = ELSEWHERE.replace("c):", "depth, c):")
    value = await _call(make(source, "f"), "read_current_docstring")
    assert value["candidate_actions"] == []
    assert value["result"]["problems"] == ["`width` is not described", "`depth` is not described"]


@pytest.mark.parametrize(
    "source",
    [
        DESCRIBED.format(name="one") + DESCRIBED.format(name="two") + BESIDE,
        ELSEWHERE.replace("c: Last.", "c: Last.\n        columns: Of text.").replace("c):", "c, **more):"),
    ],
)
async def test_one_name_that_may_mean_two_things_is_described_nowhere_else(make: Make, source: str) -> None:
    value = await _call(make(source, "f"), "read_current_docstring")
    assert [action["tool"] for action in value["candidate_actions"]] in ([], ["submit_result"])


@pytest.mark.parametrize(
    "source",
    [
        'def f(a, **options):\n    """Try it.\n\n    :param a: First.\n    :param indent: Of options.\n    """\n',
        'def f(a, b, c):\n    """Try it.\n\n    :param a: The only one worth a word.\n    """\n',
        'def f(a):\n    """Try it."""\n    raise ValueError\n',
        'def f(a):\n    """Try it.\n\n    :raises IOError: If not a.\n    """\n    if not a:\n'
        "        raise OSError(a)\n    return a + 1\n",
        '@timed\ndef f(a):\n    """Try it.\n\n    :param a: One.\n    :param timeout: Seconds.\n    """\n',
        'def f(a, _b):\n    """Try it.\n\n    Args:\n        a: One.\n        b: Another.\n    """\n',
    ],
)
async def test_a_docstring_that_nothing_contradicts_is_complete(make: Make, source: str) -> None:
    value = await _call(make(source, "f"), "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == "complete"


@pytest.mark.parametrize(
    ("old", "new", "is_renamed"),
    [
        ("timestmap", "timestamp", True),
        ("excs", "exceptions", True),
        ("file", "file_name", True),
        ("parser", "params", False),
        ("data", "a", False),
    ],
)
async def test_only_names_that_are_alike_are_one_parameter(make: Make, old: str, new: str, is_renamed: bool) -> None:
    source = f'def f(left, {new}):\n    """Try it.\n\n    :param left: One.\n    :param {old}: Other.\n    """\n'
    value = await _call(make(source, "f"), "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == ("outdated" if is_renamed else "unclear")


async def test_many_that_became_one_are_left_to_a_person(make: Make) -> None:
    source = (
        'def f(matcher):\n    """Try it.\n\n    Args:\n        *matchers (M): All to add.\n    """\n    g(matcher)\n'
    )
    assert (await _call(make(source, "f"), "read_current_docstring"))["result"]["problems"] == []
    assert (await _call(make(source.replace("*", ""), "f"), "read_current_docstring"))["result"]["problems"] != []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("x, y", "`left` is no parameter, and `x` is not described"),
        ("left, width", "`right` is no parameter, and `width` is not described"),
    ],
)
async def test_a_parameter_that_is_gone_beside_one_that_is_missing_is_left_to_a_person(
    make: Make, names: str, said: str
) -> None:
    source = f'def f({names}):\n    """Try it.\n\n    :param left: One.\n    :param right: Other.\n    """\n'
    tools = make(source, "f")
    value = await _call(tools, "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == "unclear"
    assert value["knowledge_delta"]["docstring_problems"] == 1
    assert said in value["summary"]
    assert "renamed" in value["summary"]
    assert [action["tool"] for action in value["candidate_actions"]] == ["submit_result"]
    assert await _now(tools) == source


async def test_a_question_whose_answer_is_its_only_line_needs_no_docstring(make: Make) -> None:
    value = await _call(
        make("def is_sequence(x):\n    return hasattr(x, '__iter__')\n", "is_sequence"), "read_current_docstring"
    )
    assert value["knowledge_delta"]["docstring_state"] == "not needed"


async def test_a_sentence_that_a_class_is_a_subclass_is_refused(make: Make) -> None:
    tools = make("class Field(Text):\n    def make(self):\n        return short_uuid()\n", "Field")
    value = await _call(tools, "write_docstring", summary="Is a subclass of `Text` that makes short UUIDs")
    assert "says what its objects are or do" in value["error"]


async def test_a_model_sees_docstrings_of_the_same_file_the_most_alike_first(make: Make) -> None:
    others = "".join(f'def {name}(a):\n    """{text}"""\n    return a\n\n\n' for name, text in SENTENCES.items())
    tools = make(f"{others}def load_user(a):\n    b = a.read()\n    return b.strip() or a.name\n", "load_user")
    shown = (await _call(tools, "read_current_docstring"))["excerpts"][-1]
    assert shown["label"] == "docstrings of others in this file"
    assert shown["text"] == "load_shop: Read a shop from its file.\nsave: Write what is open."


async def test_what_only_makes_an_error_is_not_named_as_one(make: Make) -> None:
    code = (
        "import ctypes\n\n\ndef check(value):\n    if value == 0:\n        raise ctypes.WinError()\n    return value\n"
    )
    value = await _call(make(code, "check"), "read_current_docstring")
    assert value["knowledge_delta"]["raises"] == []
    assert value["candidate_actions"] == []


SENTENCES = {
    "save": "Write what is open.",
    "load_shop": "Read a shop from its file. It may be gone.",
    "_hidden": "Do something else entirely.",
    "go": "no sentence",
}


async def test_the_code_is_the_first_excerpt(make: Make) -> None:
    code = "@d\ndef f(a):\n    b = a.read()\n    if not b:\n        raise ValueError(b)\n    return b.strip()"
    tools = make(f"import os\n\n\n{code}\n", "f", "print(f('x'))\n")
    value = await _call(tools, "read_current_docstring")
    assert value["excerpts"][0] == {"label": "code", "text": code, "start_line": 4}
    assert value["excerpts"][1]["text"] == "print(f('x'))"
    known = {"docstring_state": "missing", "docstring_problems": 1, "parameters": ["a"], "by_rule": False, "raises": []}
    assert value["knowledge_delta"] == known
    assert value["candidate_actions"] == []


LOAD = """def load_config(path: str, retries=3):
    if retries < 0:
        raise ValueError(retries)
    for attempt in range(retries):
        handle = open(path)
        if handle.readable():
            return handle
    return None
"""


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
        ({"summary": "Config is loaded from there."}, "begin with a verb"),
        ({"summary": "Load a helper config somewhere else."}, "say nothing: `helper`"),
        ({"summary": "Open the file, or raise KeyError."}, "`KeyError` is not raised"),
        ({"summary": "Open the file and return self."}, "does not return `self`"),
        ({"summary": "Yield the readable handles of files."}, "yields nothing"),
        ({"summary": "Connect the billing database to customers."}, "Sentence refused: Nothing in the code is about"),
        ({"summary": "Reader of the open handle."}, "begin with a verb"),
        ({"summary": "Load the given values from the default position."}, "nothing that only this code shows"),
        ({"summary": "Send the billing mails to customers."}, "Sentence refused: Nothing in the code is about"),
        ({"summary": "Load from `file_name` or so."}, "`file_name` is not in this code; its parameters: path, retries"),
        ({"summary": "Load it all.", "parameters": {"file": "x"}}, "`file` is not a parameter of `load_config`"),
        ({"summary": "x y " * 80}, "too long"),
        ({"summary": "Open the readable handle and sort its lines."}, "Nothing in the code shows `sort`"),
        ({"summary": "Open the readable handle for a random attempt."}, "Nothing in the code shows `random`"),
        ({"summary": "Open the readable handle recursively in range."}, "Nothing in the code shows `recursive`"),
        ({"summary": "Open the readable handle within 5 attempts of range."}, "The number 5 is not in the code"),
    ],
)
async def test_a_poor_sentence_is_refused_and_changes_nothing(make: Make, args: dict[str, Any], said: str) -> None:
    tools = make(LOAD, "load_config")
    value = await _call(tools, "write_docstring", **args)
    assert value["outcome"] == "error"
    assert said in value["error"]
    assert value["candidate_actions"][0]["tool"] == "submit_result"
    assert await _now(tools) == LOAD


async def test_a_text_that_the_code_shows_to_others_is_no_docstring(make: Make) -> None:
    code = (
        "def make_parser(words):\n"
        '    parser = Parser(description="Format FILE by OPTIONS")\n'
        "    for word in words:\n        parser.add(word)\n    return parser\n"
    )
    value = await _call(make(code, "make_parser"), "write_docstring", summary="Format FILE by OPTIONS.")
    assert "a text that the code shows to others" in value["error"]


LONG = (
    "The function `load_config` takes a path and opens a readable handle there. It returns the open file, which the "
    "caller must close. The number of retries is accepted but not used by the present version of the code at all."
)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (
            "One sentence: the function `load_config` in a.py, lines 1-2 returns an open readable handle",
            "Return an open readable handle.",
        ),
        ("The function `load_config` opens a readable handle at `path`.", "Open a readable handle at `path`."),
        ("Summary: Open a readable handle at `path`.", "Open a readable handle at `path`."),
        ("Open a readable handle.\n\nArgs:\n    path: Where it is.\n\nReturns:\n    It.", "Open a readable handle."),
        (LONG, "Takes a path and opens a readable handle there."),
    ],
)
async def test_what_a_model_writes_around_its_sentence_is_left_out(make: Make, given: str, written: str) -> None:
    value = await _call(make(LOAD, "load_config"), "write_docstring", summary=given)
    assert value["outcome"] == "success", value["error"]
    assert (
        value["result"]["docstring"]
        .replace("\n\n", " ")
        .startswith(f"{written} Raise `ValueError` if `retries` is negative.")
    )


FILL = """def fill(rows, extra=None):
    if extra is None:
        return None
    for record in extra:
        if record:
            rows.append(record)
    return rows
"""
UNDESCRIBED = """def f(a, b, handle):
    '''Try it.

    :param a: First.
    :param b: Second.
    '''
    handle.close()
"""


async def test_the_facts_of_the_code_follow_the_sentence_of_the_model(make: Make) -> None:
    tools = make(FILL, "fill", GOOGLE)
    value = await _call(tools, "write_docstring", summary="appends every true record of extra")
    assert value["result"]["docstring"] == (
        "Append every true record of extra.\n\nChange `rows` in place. Return None if `extra` is None."
    )


async def test_a_parameter_that_nobody_describes_is_described_by_the_model(make: Make) -> None:
    tools = make(UNDESCRIBED, "f")
    first = await _call(tools, "read_current_docstring")
    assert first["candidate_actions"] == []
    assert "`handle` is not described" in first["summary"]
    value = await _call(tools, "write_docstring", summary="Try it.", parameters={"handle": "closed at the end"})
    assert value["outcome"] == "success", value["error"]
    assert "    :param b: Second.\n    :param handle: Closed at the end.\n" in await _now(tools)


async def test_a_class_is_documented_in_words_of_its_code(make: Make) -> None:
    source = (
        "class Ledger:\n    def book(self, amount):\n        self.entries.append(amount)\n        return self.entries\n"
    )
    tools = make(source, "Ledger", GOOGLE)
    refused = await _call(tools, "write_docstring", summary="A ledger.")
    assert "only repeats the name" in refused["error"]
    value = await _call(tools, "write_docstring", summary="A list of entries, each booked as it comes.")
    assert value["result"]["docstring"] == "A list of entries, each booked as it comes."


async def test_a_complete_docstring_leads_to_the_end(make: Make) -> None:
    value = await _call(make('def f(a):\n    """Add one."""\n', "f"), "read_current_docstring")
    assert value["summary"] == "The docstring is complete"
    assert [action["tool"] for action in value["candidate_actions"]] == ["submit_result"]


async def test_hostile_text_stays_text(make: Make) -> None:
    tools = make(LOAD, "load_config")
    await _call(tools, "write_docstring", summary='Open "readable" handles \\ there')
    text = await _now(tools)
    assert "readable" in text
    assert _without_docstrings(text) == _without_docstrings(LOAD)


async def test_tabs_and_line_ends_are_kept(make: Make) -> None:
    source = b"class A:\r\n\tdef f(self, a):\r\n\t\tif a < 0:\r\n\t\t\traise ValueError\r\n\t\treturn self.b\r\n"
    tools = make(source, "A.f")
    value = await _call(tools, "read_current_docstring")
    await _call(tools, "write_docstring", **value["candidate_actions"][0]["args"])
    text = await _now(tools)
    assert text.count("\n") == text.count("\r\n")
    assert '\r\n\t\t"""' in text


async def test_a_parameter_that_must_be_none_is_not_described(make: Make) -> None:
    refusing = ELSEWHERE.rstrip() + "\n    assert width is None\n    return b\n"
    value = await _call(make(refusing, "f"), "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == "complete"
    taking = refusing.replace("return b", "return b * width")
    assert (await _call(make(taking, "f"), "read_current_docstring"))["candidate_actions"] != []


async def test_assignments_between_attributes_are_not_told_once_more(make: Make) -> None:
    source = (
        "class Reader:\n    def consume(self, kind):\n        self.token = self.peek\n"
        "        self.peek = self.step()\n        if self.token != kind:\n            raise ValueError(kind)\n"
    )
    value = await _call(make(source, "Reader.consume", GOOGLE), "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == "missing"
    assert value["candidate_actions"] == []


async def test_the_second_function_of_a_name_is_left_alone(make: Make) -> None:
    one = 'def f(new_name):\n    """Try it.\n\n    :param name: It.\n    """\n    return new_name\n\n\n'
    states = [
        (await _call(make(one * 2, name), "read_current_docstring"))["knowledge_delta"]["docstring_state"]
        for name in ("f", "f#2")
    ]
    assert states == ["outdated", "complete"]


PICK = '''"""Choose the port of a server."""


def choose(obj, callback=None):
    if ismethod(obj):
        return WeakMethod(obj, callback)
    env = read(obj)
    return ref(env, callback, 2)
'''


@pytest.mark.parametrize(
    "said",
    [
        "Return a weak reference to `obj`, or a weak method if `obj` is a method.",  # `ref` is short for reference
        "Return a reference to the environment of `obj`.",  # `env` is short for environment
        "Return a weak method for the port of a server.",  # other lines of the file speak of ports and servers
        "Call `callback` for `obj` unless `obj` is a method.",  # it says in which case
    ],
)
async def test_words_that_the_file_uses_or_shortens_are_not_strange(make: Make, said: str) -> None:
    value = await _call(make(PICK, "choose"), "write_docstring", summary=said)
    assert value["outcome"] == "success", value["error"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Return a weak invoice for the customer of the day.", "Nothing in the code is about"),
        ("Check if the object is a method.", "says nothing that only this code shows"),
        ("Return one of 48 weak methods.", "The number 48 is not in the code"),
    ],
)
async def test_words_that_are_nowhere_in_the_file_are_strange(make: Make, said: str, why: str) -> None:
    value = await _call(make(PICK, "choose"), "write_docstring", summary=said)
    assert why in value["error"]


async def test_a_function_that_only_passes_on_to_one_of_its_name_is_left_alone(make: Make) -> None:
    passed = "def valid_words(words, dialect=None):\n    {}\n    return _valid_words(words, dialect.size)\n"
    short = make(passed.format("dialect = dialect or DEFAULT"), "valid_words")
    value = await _call(short, "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == "not needed"
    more = "\n    ".join(["words = list(words)", "words.sort()", "check(words)"])
    value = await _call(make(passed.format(more), "valid_words"), "read_current_docstring")
    assert value["knowledge_delta"]["docstring_state"] == "missing"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Return a weak method of `obj`, handling every other object too.", "Return a weak method of `obj`."),
        ("Return a weak method of `obj`, including its environment.", "Return a weak method of `obj`."),
        ("Return a weak method, with `callback` for the environment.", "Return a weak method."),
        ("Return a weak method of `obj`, or a reference if it is no method.", None),
        ("Read the environment of `obj`, and return a weak reference to it.", None),
    ],
)
async def test_what_a_sentence_lists_or_handles_besides_is_left_out_and_steps_and_cases_stay(
    make: Make, said: str, written: str | None
) -> None:
    value = await _call(make(PICK, "choose"), "write_docstring", summary=said)
    assert value["result"]["docstring"] == (written or said), value["error"]


async def test_a_sentence_about_code_that_returns_a_function_says_so(make: Make) -> None:
    code = "def convert(rules):\n    table = dict(rules)\n\n    def apply(text):\n        return table[text]\n"
    code += "\n    return apply\n"
    tools = make(code, "convert")
    value = await _call(tools, "write_docstring", summary="Apply a table of rules to the text.")
    assert "returns a function" in value["error"]
    value = await _call(tools, "write_docstring", summary="Return a function that looks a text up in a table.")
    assert value["outcome"] == "success", value["error"]
