"""What has no safe fix is offered as a suggestion, where one can be computed; none is offered that does not hold."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.ports import ToolOutput
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
RULES = 'target-version = "py311"\nlint.select = ["B", "C4", "E", "EM", "ERA", "F", "PLW", "RET", "SIM", "T20", "UP"]\n'


@pytest.fixture
def tools(lint_tools: Make, tmp_path: Path) -> Make:
    """The lint agent's real tools, on a file as it was at first, with many rules on."""

    def make(data: bytes, *owned: tuple[int, int]) -> ScriptTools:
        shutil.rmtree(tmp_path / ".agentfs", ignore_errors=True)
        (tmp_path / "ruff.toml").write_text(RULES)
        return lint_tools(data, *owned)

    return make


async def call(tools: ScriptTools, name: str, **args: Any) -> dict[str, Any]:
    value: dict[str, Any] = (await tools.call(name, args)).value
    return value


def now(folder: Path) -> bytes:
    upper = folder / ".agentfs/workspaces/AGENT/a.py"
    return (upper if upper.exists() else folder / "a.py").read_bytes()


def offered(value: dict[str, Any]) -> list[str]:
    """The codes for which something is suggested: before the end, and nowhere else."""
    *steps, end = value["candidate_actions"]
    assert end["tool"] == "submit_result"
    assert {step["tool"] for step in steps} <= {"apply_fix"}
    assert not any("safe fix" in step["reason"] for step in steps)
    return [step["args"]["code"] for step in steps]


def runs(output: ToolOutput) -> int:
    return sum(name == "ruff stdout" for name, _ in output.outputs)


OFFERS = {
    "B006": (
        'def f(x=[]):\n    """Doc."""\n    return x\n',
        'def f(x=None):\n    """Doc."""\n    if x is None:\n        x = []\n    return x\n',
    ),
    "B007": (
        "def f(xs):\n    for n, x in enumerate(xs):\n        xs.add(x)\n",
        "def f(xs):\n    for _n, x in enumerate(xs):\n        xs.add(x)\n",
    ),
    "B011": (
        "def f():\n    assert False\n",
        "def f():\n    raise AssertionError()\n",
    ),
    "B018": ("def f(x):\n    x\n    return x\n", "def f(x):\n    return x\n"),
    "C408, in a nested function with tabs": (
        "def f():\n\tdef g():\n\t\treturn dict()\n\treturn g\n",
        "def f():\n\tdef g():\n\t\treturn {}\n\treturn g\n",
    ),
    "C414, beside words that are not ASCII": (
        "def f(é):\n    return 'ñ😀', sorted(list(é)), '日本'\n",
        "def f(é):\n    return 'ñ😀', sorted(é), '日本'\n",
    ),
    "B904": (
        "def f(x):\n    try:\n        return x[0]\n    except KeyError:\n        if x:\n            raise ValueError(\n"
        "                x\n            )  # no\n        return 1\n",
        "def f(x):\n    try:\n        return x[0]\n    except KeyError as error:\n        if x:\n"
        "            raise ValueError(\n                x\n            ) from error  # no\n        return 1\n",
    ),
    "B904, whose error has a name": (
        "def f(x):\n    error = x\n    try:\n        f(error)\n    except (KeyError, OSError) as e:\n"
        "        raise ValueError(e)\n",
        "def f(x):\n    error = x\n    try:\n        f(error)\n    except (KeyError, OSError) as e:\n"
        "        raise ValueError(e) from e\n",
    ),
    "B904, where a name is taken": (
        "def f(x):\n    error = x\n    try:\n        f(error)\n    except KeyError :\n        raise ValueError\n",
        "def f(x):\n    error = x\n    try:\n        f(error)\n    except KeyError as problem :\n"
        "        raise ValueError from problem\n",
    ),
    "E402": (
        "import os\n\nPAGE = 24\nNAME: str = 'a'  # why\nimport sys\n\nprint = os, sys\n",
        "import os\nimport sys\n\nPAGE = 24\nNAME: str = 'a'  # why\n\nprint = os, sys\n",
    ),
    "E721": (
        "def f(x):\n    return type(x) == str and x == 'a'\n",
        "def f(x):\n    return type(x) is str and x == 'a'\n",
    ),
    "E721, the other way": (
        "def f(x, y):\n    return x == 'type' or type(x) != type(y)\n",
        "def f(x, y):\n    return x == 'type' or type(x) is not type(y)\n",
    ),
    "E741, named after what it goes through": (
        "def f(self):\n    # l is one\n    return {l.x: 'l' for l in self.my_orders if l.l != '''l'''}\n",
        "def f(self):\n    # l is one\n    return {order.x: 'l' for order in self.my_orders if order.l != '''l'''}\n",
    ),
    "E741, of lines": (
        "def f(é, text):\n\tfor l in text.splitlines():\n\t\té.append(f'{é}') or é.append(l)\n\treturn é\n",
        "def f(é, text):\n\tfor line in text.splitlines():\n\t\té.append(f'{é}') or é.append(line)\n\treturn é\n",
    ),
    "B904, below a comment at the side": (
        "def f():\n    try:\n        f()\n    except OSError as e:\n        try:\n            f(e)\n"
        "        except KeyError:\n        # why\n            raise ValueError\n",
        "def f():\n    try:\n        f()\n    except OSError as e:\n        try:\n            f(e)\n"
        "        except KeyError as error:\n        # why\n            raise ValueError from error\n",
    ),
    "E701, with a step of two": (
        "def f(x):\n  if x: return 1  # one\n  return 2\n",
        "def f(x):\n  if x:\n    return 1  # one\n  return 2\n",
    ),
    "E701, whose body goes on": (
        "def f(y):\n    for x in y: f(\n        x)\n",
        "def f(y):\n    for x in y:\n        f(\n        x)\n",
    ),
    "E711, after a byte order mark and with no last newline": (
        "\ufeffx = 1\ny = x == None",
        "\ufeffx = 1\ny = x is None",
    ),
    "EM102, under a decorator": (
        "@staticmethod\ndef f(x):\n    raise ValueError(f'no {x}')\n",
        "@staticmethod\ndef f(x):\n    msg = f'no {x}'\n    raise ValueError(msg)\n",
    ),
    "ERA001": ("def f(x):\n    # x = sorted(x)\n    return x\n", "def f(x):\n    return x\n"),
    "F841": ("def f(x):\n    y = [1]\n    return x\n", "def f(x):\n    return x\n"),
    "PLW0127, under a long header": (
        "def f(\n    x,\n):\n    x = x\n    return x + 1\n",
        "def f(\n    x,\n):\n    return x + 1\n",
    ),
    "RET504": (
        "def f(x):\n    y = x + 1\n    return y\n",
        "def f(x):\n    return x + 1\n",
    ),
    "SIM102, with line ends of Windows": (
        "def f(x, y):\r\n    if x:\r\n        if y:\r\n            f(y, x)\r\n",
        "def f(x, y):\r\n    if x and y:\r\n        f(y, x)\r\n",
    ),
    "SIM210": (
        "def f(x):\n    return True if x == 1 else False\n",
        "def f(x):\n    return x == 1\n",
    ),
    "T201": ("def f(x):\n    print(x)\n    return x\n", "def f(x):\n    return x\n"),
    "UP031, whose suggestion has a safe fix of its own": (
        "def f(x):\n    return 'a %s' % (x,)\n",
        "def f(x):\n    return f'a {x}'\n",
    ),
}


@pytest.mark.parametrize(("name", "data", "after"), [(name, *texts) for name, texts in OFFERS.items()], ids=OFFERS)
async def test_a_suggestion_is_offered_by_its_code_and_taken(
    tools: Make, tmp_path: Path, name: str, data: str, after: str
) -> None:
    made, code = tools(data.encode(), (1, 99)), name.split(",")[0].split()[0]
    value = await call(made, "run_linter")
    assert offered(value) == value["knowledge_delta"]["fixable_codes"] == [code]
    assert "left without a safe fix" in value["candidate_actions"][-1]["args"]["summary"]
    taken = await call(made, "apply_fix", code=code)
    assert (taken["error"], taken["outcome"]) == (None, "success")
    assert taken["summary"] == f"Fixed 1 {code} as suggested, no errors left"
    assert now(tmp_path) == after.encode()


async def test_a_reason_says_whose_suggestion_it_is(tools: Make) -> None:
    value = await call(tools(b"def f(x):\n    x\n    y = x == None\n    return y\n"), "run_linter")
    assert [step["reason"] for step in value["candidate_actions"]] == [
        "The line does nothing",
        "ruff suggests it; may change behaviour",
        "ruff suggests it; may change behaviour",
        "Nothing has a safe fix",
    ]


NOT_OFFERED = {
    "a name that only a plain word could replace": (b"def f(x):\n    l = x\n    f(l)\n    return l\n", (1, 99)),
    "a name whose singular Python uses already": (b"def f(ints):\n    for l in ints:\n        f(l)\n", (1, 99)),
    "a parameter, which callers may name": (b"def f(\n    l,\n):\n    return l\n", (1, 99)),
    "a name within a formatted text": (b"def f(x):\n    l = x\n    f(l)\n    return f'{l}'\n", (1, 99)),
    "a name that is an argument too": (b"def f(x):\n    l = x\n    f(l)\n    return f(l=l)\n", (1, 99)),
    "a name of the module": (b"l = 1\n", (1, 99)),
    "a name of the module, in a function": (b"def f():\n    global l  # noqa: PLW0603\n    l = 1\n", (1, 99)),
    "an attribute of a class": (b"class C:\n    l = 1\n", (1, 99)),
    "a name in more lines than an edit may have": (
        b"def f(x):\n    l = x\n" + b"    f(x)\n" * 40 + b"    f(l)\n",
        (1, 99),
    ),
    "what was caught without a type": (
        b"def f():\n    try:\n        f()\n    except:  # noqa: E722\n        raise KeyError\n",
        (1, 99),
    ),
    "a variable of a lambda": (b"def f(x):\n    return sorted(x, key=lambda l: l[0])\n", (1, 99)),
    "a parameter after brackets": (b"def f(x=max(1, 2), *, l: int = 3):\n    return x\n", (1, 99)),
    "a parameter of a function inside": (
        b"def f(x):\n    l = x\n\n    def g(y=(), *, l: int):\n        return y\n\n    return g, l\n",
        (1, 99),
    ),
    "an attribute of a class inside": (
        b"def f(x):\n    l = x\n\n    class C:\n        l = 2\n\n    return C.l, l\n",
        (1, 99),
    ),
    "a name that is looked up": (b"def f(x):\n    l = x\n    return '{l}'.format(**locals()), l\n", (1, 99)),
    "a name in a question": (b"def f(x):\n    l = x\n    return x.query('a > @l'), l\n", (1, 99)),
    "quotes within a formatted text": (b'def f(x):\n    l = x\n    return f"{x["l"]}", l\n', (1, 99)),
    "an error that was given another value": (
        b"def f():\n    try:\n        f()\n    except OSError as e:\n        e = str(e)\n        raise ValueError(e)\n",
        (1, 99),
    ),
    "an error that another handler has taken away": (
        b"def f():\n    try:\n        f()\n    except OSError as e:\n        try:\n            f(e)\n"
        b"        except KeyError as e:\n            f(e)\n        raise ValueError\n",
        (1, 99),
    ),
    "an error raised again": (
        b"def f():\n    try:\n        f()\n    except OSError as e:\n        raise e.with_traceback(None)\n",
        (1, 99),
    ),
    "a column compared with a type": (b"def f(x):\n    return x.y[x.dtypes == object]\n", (1, 99)),
    "a type compared with a text": (b"def f(x):\n    return type(x) == 'int'\n", (1, 99)),
    "an import of a name that stood for something else": (
        b"import os\nrun = None\nfrom core import run\nprint = run, os\n",
        (1, 99),
    ),
    "an import of everything": (b"import os\nDEBUG = False\nfrom settings import *  # noqa: F403\nx = os\n", (1, 99)),
    "an import that may import this": (b"import os\nVERSION = '1'\nfrom .core import run\nx = os, run\n", (1, 99)),
    "an import below a value that was looked up": (b"import os\nx = os.environ['A']\nimport sys\ny = sys\n", (1, 99)),
    "an import with a comment of its own": (b"import os\nx = 1\n# Needs x.\nimport sys\ny = sys, os\n", (1, 99)),
    "an import in a text": (
        b"DOC = '''\nimport foo\na = 1'''\nimport plug  # noqa: F401\n",
        (1, 99),
    ),
    "a chain of comparisons": (b"def f(x):\n    return type(x) == type(f) == type(x)\n", (1, 99)),
    "an import that what stands above may change": (
        b"import os\nos.path = 1\nimport sys\nprint = os, sys\n",
        (1, 99),
    ),
    "an import after a call": (b"import os\nx = os.getcwd()\nimport sys\nprint = sys, x\n", (1, 99)),
    "an edit that begins in another node's lines": (b"def f(x=[]):\n    y = 1\n    return x, y\n", (1, 1)),
    "more lines than an edit may have": (b"x = dict(\n" + b"    # why\n" * 40 + b"    a=1,\n)\n", (1, 99)),
    "the only statement of a block": (b"def f(x):\n    if x:\n        x\n    return x\n", (1, 99)),
    "a name tried for being there": (
        b"def f():\n    try:\n        f.g()\n        f\n    except NameError:\n        return 1\n    return 2\n",
        (1, 99),
    ),
    "an attribute, which may do something": (b"def f(x):\n    x.y\n    return x\n", (1, 99)),
    "an attribute of a module": (b"x = 1\nx = x\n", (1, 99)),
    "half of an assignment": (b"def f(x, y):\n    x, y = x, 1\n    return x, y\n", (1, 99)),
    "two statements in a line": (b"def f(x):\n    x; f(x)  # noqa: E702\n    return x\n", (1, 99)),
    "what would be left without effect": (b"def f(x, y):\n    Both = x[y]\n    return x\n", (1, 99)),
    "a second name for an object, which keeps it alive": (b"def f(x):\n    held = x.y\n    return 1\n", (1, 99)),
    "a name that would get an underscore": (b"def f(x):\n    first, last = x.first, 2\n    return x\n", (1, 99)),
    "a sum of calls": (b"def f(x):\n    both = x() - x()\n    return x\n", (1, 99)),
    "no longer Python": (b"def f(:\n    x\n", (1, 99)),
}


@pytest.mark.parametrize(("data", "owned"), NOT_OFFERED.values(), ids=NOT_OFFERED.keys())
async def test_what_is_not_sure_or_too_long_is_not_offered(tools: Make, data: bytes, owned: tuple[int, int]) -> None:
    value = await call(tools(data, owned), "run_linter")
    assert value["result"]["errors"]
    assert offered(value) == []


async def test_after_a_refused_edit_what_can_be_mended_is_offered_still(tools: Make) -> None:
    made = tools(b"def f(x):\n    return x == None\n")
    refused = await call(made, "edit_lines", first=2, last=2, text="return x != None")
    assert refused["outcome"] == "error"
    assert offered(refused) == ["E711"]
    stuck = await call(tools(b"l = 1\nprint = l\n"), "edit_lines", first=1, last=1, text="I = 1\n")
    assert stuck["outcome"] == "error"
    assert stuck["candidate_actions"][0]["tool"] == "submit_result"


async def test_a_code_without_any_fix_is_refused_and_not_offered_again(tools: Make) -> None:
    value = await call(tools(b"def f(l):\n    return l == None\n"), "apply_fix", code="E741")
    assert value["error"].startswith("No fix for E741: ")
    assert offered(value) == ["E711"]


async def test_safe_fixes_come_before_suggestions(tools: Make) -> None:
    made = tools(b"def f(x):\n    import os\n    return x == None\n")
    assert [step["args"] for step in (await call(made, "run_linter"))["candidate_actions"]] == [{"code": "F401"}]
    assert offered(await call(made, "apply_fix", code="F401")) == ["E711"]


BLOCKS = (
    "y = dict(a=x)",
    "if x == None: return 1",
    "print('é😀', x)",
    "x",
    "x = x",
    "if x:\n    if y:\n        x = list(y)",
    "for n, y in enumerate(x):\n    x = sorted(list(y))",
    "# y = sorted(x)",
    "y = '%s!' % (x,)",
    "y = [l for l in x if type(l) == int]",
    "try:\n    y = x[0]\nexcept KeyError:\n    raise ValueError(x)",
    "if not x:\n    raise ValueError(f'no {x}')",
    "def g(z=[]):\n    w = z\n    return w",
    "@f\ndef h(z=dict()):\n    outcome = z + 1\n    return outcome",
    "y = True if x == 1 else False",
    "try:\n    y\n    x = y\nexcept KeyError:\n    print(x)",
    "assert False, x",
)


def many(*seeds: int) -> list[Any]:
    """Seeds for the long runs."""
    return [pytest.param(seed, marks=pytest.mark.faults) for seed in seeds]


def drawn(seed: int) -> bytes:
    """A function of some blocks at some depth, with one or the other kind of indentation and line end."""
    draw = random.Random(seed)
    lines = ["def f(x, y):"]
    for block in draw.sample(BLOCKS, 6):
        deeper = draw.random() < 0.3 and not block.startswith("#")
        lines += ["    if f:"] if deeper else []
        lines += [("        " if deeper else "    ") + line for line in block.split("\n")]
    text = "\n".join([*lines, "    return y", ""])
    text = text.replace("    ", "\t") if draw.random() < 0.3 else text
    return (text.replace("\n", "\r\n") if draw.random() < 0.3 else text).encode()


async def test_whoever_reads_on_keeps_what_was_offered(tools: Make) -> None:
    made = tools(b"def f(x):\n    y = x + 1\n    return y\n")
    assert offered(await call(made, "read_file", line=2)) == offered(await call(made, "run_linter"))


@pytest.mark.parametrize("seed", [4, *many(0, 1, 2, 3, 5)])
async def test_nothing_is_offered_that_is_refused_or_touches_other_lines(
    tools: Make, tmp_path: Path, seed: int
) -> None:
    data = drawn(seed)
    count = data.count(b"\n")
    for owned in ((1, count), (count // 3, 2 * count // 3)):
        output = await tools(data, owned).call("run_linter", {})
        if "safe fix" in output.value["candidate_actions"][0]["reason"]:
            continue
        codes = offered(output.value)
        assert len(codes) <= 4
        assert runs(output) <= 13
        for code in codes:
            taken = await call(tools(data, owned), "apply_fix", code=code)
            assert taken["error"] is None
            assert now(tmp_path) != data
            was, then = data.splitlines(keepends=True), now(tmp_path).splitlines(keepends=True)
            assert then[: owned[0] - 1] == was[: owned[0] - 1]
            assert then[len(then) - (len(was) - owned[1]) :] == was[owned[1] :]


@pytest.mark.parametrize("seed", [6, *many(7, 8, 9)])
async def test_following_the_candidates_ends_with_nothing_that_could_be_mended(tools: Make, seed: int) -> None:
    made = tools(drawn(seed))
    value = await call(made, "run_linter")
    left = [len(value["result"]["errors"])]
    while (step := value["candidate_actions"][0])["tool"] != "submit_result":
        value = await call(made, step["tool"], **step["args"])
        assert value["error"] is None
        left.append(len(value["result"]["errors"]))
    assert left == sorted(left, reverse=True)
    assert left[-1] < left[0]
