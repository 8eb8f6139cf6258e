"""What scripts cannot do is known by trying it in the interpreter itself, so that a new one is noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from remora.errors import DefinitionError, ToolError
from remora.scripts import Script, ScriptPool, load
from remora.scripts._unsupported import MODULES, NO_BUILTINS, TYPING

CONSTRUCTS = {
    "del": "x = [1]\ndel x[0]\n1",
    "yield": "def f():\n    yield 1\n1",
    "async for": "async def f(y):\n    async for x in y: pass\n1",
    "async with": "async def f(y):\n    async with y: pass\n1",
    "async comprehension": "async def f(y):\n    return [x async for x in y]\n1",
    "except*": "try:\n    x = 1\nexcept* ValueError:\n    pass\n1",
    "inheritance": "class E(Exception): pass\n1",
    "metaclass": "class E(metaclass=int): pass\n1",
    "method decorator": "class A:\n    @property\n    def f(self): return 1\n1",
    "import *": "from json import *\n1",
    "relative import": "from . import x\n1",
    "TypedDict": "from typing import TypedDict\n1",
    "missing module": "import textwrap\n1",
    "missing module's name": "from io import StringIO\n1",
    "callable re.sub": "import re\nre.sub('a', lambda m: 'b', 'aa')",
    "globals": "globals()",
}


@pytest.mark.parametrize("text", CONSTRUCTS.values(), ids=CONSTRUCTS.keys())
async def test_what_the_interpreter_refuses_is_refused_at_load(tmp_path: Path, pool: ScriptPool, text: str) -> None:
    path = tmp_path / "tool.pym"
    path.write_text(text)
    with pytest.raises(DefinitionError):
        load(path)
    with pytest.raises(ToolError):
        await pool.run("tool.pym", text, inputs={}, externals={})


async def test_exactly_the_modules_we_name_can_be_imported(pool: ScriptPool) -> None:
    names = [name for name in sys.stdlib_module_names if not name.startswith("_")]
    assert {name for name in names if await _runs(pool, f"import {name}\n1")} == MODULES - {"os.path", "__future__"}
    assert await _runs(pool, "from __future__ import annotations\nimport os.path\n1")


async def test_the_names_we_call_missing_are_missing_and_no_others(pool: ScriptPool) -> None:
    assert [name for name in sorted(NO_BUILTINS - {"eval", "exec", "locals"}) if await _runs(pool, f"{name}\n1")] == []
    assert [name for name in sorted(TYPING) if not await _runs(pool, f"from typing import {name}\n1")] == []


async def test_a_name_of_ones_own_may_be_called_like_a_missing_one(script: Callable[..., Script]) -> None:
    assert await script("def vars(): return 3\nvars()").run() == 3


async def _runs(pool: ScriptPool, text: str) -> bool:
    try:
        await pool.run("tool.pym", text, inputs={}, externals={})
    except ToolError:
        return False
    return True
