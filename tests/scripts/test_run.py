from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.errors import ToolArgumentsInvalid, ToolError, ToolFailed, ToolLimitExceeded
from remora.scripts import STRICT, Script, ScriptPool

HEADER = "from grail import Input, external\n"
FETCH = HEADER + "@external\nasync def fetch(what: str) -> str: ...\n"


async def test_the_last_expression_is_the_result(script: Callable[..., Script], pool: ScriptPool) -> None:
    async def fetch(what: str) -> str:
        return what * 2

    text = FETCH + 'n: int = Input("n", default=3)\nx = await fetch("ab")\n{"x": x, "n": n}\n'
    assert await script(text).run(externals={"fetch": fetch}, pool=pool) == {"x": "abab", "n": 3}
    assert await script(text).run({"n": 4}, {"fetch": fetch}) == {"x": "abab", "n": 4}


async def test_an_error_names_the_file_and_line_of_the_author(script: Callable[..., Script], pool: ScriptPool) -> None:
    with pytest.raises(ToolFailed, match=r"tool\.pym:4: ZeroDivisionError: division by zero"):
        await script(HEADER + 'x: int = Input("x", default=0)\n\ny = 1 / x\ny').run(pool=pool)


async def test_a_host_error_is_an_ordinary_one_inside(script: Callable[..., Script], pool: ScriptPool) -> None:
    async def fetch(what: str) -> str:
        raise FileNotFoundError(2, "No such file", what)

    text = FETCH + "try:\n    r = await fetch('q')\nexcept FileNotFoundError as error:\n    r = str(error)\nr"
    assert "No such file" in await script(text).run(externals={"fetch": fetch}, pool=pool)


async def test_wrong_inputs_are_all_listed_and_nothing_is_coerced(
    script: Callable[..., Script], pool: ScriptPool
) -> None:
    text = HEADER + 'a: int = Input("a")\nb: list[str] = Input("b")\nc: float = Input("c", default=1.0)\n1'
    with pytest.raises(ToolArgumentsInvalid) as caught:
        await script(text).run({"b": ["x", 1], "c": True, "d": 1}, pool=pool)
    assert caught.value.problems == (
        "`d` is not an argument: expected `a`, `b`, `c`",
        "`a` is missing",
        "`b`[1]: expected string, got integer",
        "`c`: expected number, got boolean",
    )


BOMBS = {
    "endless loop": "while True: pass",
    "loop that catches all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n1",
    "huge integer": "10 ** 10 ** 9",
    "huge text": "'a' * 10 ** 9",
    "huge list": "[0] * 10 ** 9",
    "growing list": "x = []\nwhile True: x.append('a' * 1000)\n1",
    "recursion": "def f(): return f()\nf()",
    "endless printing": "while True: print('x' * 1000)\n1",
    "format": "'{:>1000000000}'.format(1)",
    "nested shared lists": "x = [0] * 1000\nx = [x] * 1000\nx = [x] * 1000\nx",
    "shared dicts": "x = {}\nfor i in range(100): x = {'a': x, 'b': x}\nx",
    "repeated text": "x = 'a' * 3000000\n[x] * 1000",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
async def test_a_bomb_ends_as_a_tool_error(script: Callable[..., Script], pool: ScriptPool, bomb: str) -> None:
    with pytest.raises(ToolError):
        await script(bomb + "\n1" if bomb.endswith("pass") else bomb).run(limits=STRICT, pool=pool)
    assert await script("1 + 1").run(pool=pool) == 2


ESCAPES = (
    "open('/etc/passwd').read()",
    "import os\nos.environ['PATH']",
    "import os\nos.listdir('/')",
    "import pathlib\npathlib.Path('/etc/passwd').read_text()",
    "import subprocess\nsubprocess.run(['id'])",
    "import socket\n1",
    "import ctypes\n1",
    "__import__('os').system('id')",
    "().__class__.__bases__[0].__subclasses__()",
    "(lambda: 0).__globals__",
    "eval(\"open('/etc/passwd').read()\")",
)


@pytest.mark.parametrize("attempt", ESCAPES)
async def test_a_script_reaches_nothing_outside(script: Callable[..., Script], pool: ScriptPool, attempt: str) -> None:
    with pytest.raises(ToolError):
        await script(attempt).run(limits=STRICT, pool=pool)


@pytest.mark.parametrize(
    ("bomb", "limit"),
    [
        ("while True: pass\n1", "0.5 s"),
        ("x = 'a' * 10 ** 8\n1", "8 MB of memory"),
        (BOMBS["recursion"], "nested calls"),
    ],
)
async def test_the_limit_that_stopped_a_script_is_named(
    script: Callable[..., Script], pool: ScriptPool, bomb: str, limit: str
) -> None:
    with pytest.raises(ToolLimitExceeded, match=limit):
        await script(bomb).run(limits=STRICT, pool=pool)


VALUES = {
    "float('nan')": "not a JSON number",
    "[float('inf')]": r"\$\[0\]: inf",
    "{1: 2}": "key 1 is a `int`",
    "{(1, 2): 3}": "expected a string",
    "{'a': b'x'}": r"\$\.a: a `bytes`",
    "{1, 2}": "`set`",
    "2 ** 64": "64 bits",
    "x = []\nfor i in range(100): x = [x]\nx": "deeper than 64",
    "import datetime\ndatetime.date(2020, 1, 1)": "`date`",
}


@pytest.mark.parametrize(("text", "told"), VALUES.items())
async def test_a_value_that_json_cannot_hold_is_refused_with_its_place(
    script: Callable[..., Script], pool: ScriptPool, text: str, told: str
) -> None:
    with pytest.raises(ToolFailed, match=told):
        await script(text).run(pool=pool)


@pytest.mark.parametrize("value", [object(), "\ud800", float("nan"), {1: 2}, [b"x"], 2**70])
async def test_a_hostile_input_never_reaches_the_script(
    script: Callable[..., Script], pool: ScriptPool, value: Any
) -> None:
    with pytest.raises(ToolArgumentsInvalid):
        await script(HEADER + 'x: Any = Input("x")\n1').run({"x": value}, pool=pool)


@pytest.mark.parametrize("value", [object(), "\ud800", {1, 2}, [[[]]] * 10, Exception("x")])
async def test_what_a_host_function_returns_ends_typed(
    script: Callable[..., Script], pool: ScriptPool, value: Any
) -> None:
    async def fetch(what: str) -> Any:
        return value

    with contextlib.suppress(ToolError):
        await script(FETCH + "x = await fetch('a')\nlen([x])").run(externals={"fetch": fetch}, pool=pool)
    assert await script("1").run(pool=pool) == 1


async def test_prints_are_kept_within_a_bound_also_of_a_script_that_failed(pool: ScriptPool) -> None:
    done = await pool.run("a.pym", "print('hello')\n1", inputs={}, externals={})
    assert done.prints == "hello\n"
    with pytest.raises(ToolFailed) as caught:
        await pool.run("a.pym", "print('before')\n1 / 0", inputs={}, externals={})
    assert caught.value.prints == "before\n"
    source = "for i in range(1500): print('x' * 1000)\n1"
    assert len((await pool.run("a.pym", source, inputs={}, externals={})).prints) < 1_100_000


async def test_cancelling_stops_the_host_call_and_leaves_no_task(
    script: Callable[..., Script], pool: ScriptPool
) -> None:
    begun = asyncio.Event()
    stopped = asyncio.Event()

    async def fetch(what: str) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return what

    text = FETCH + "while True:\n    try:\n        await fetch('a')\n    except Exception: pass\n1"
    running = asyncio.ensure_future(script(text).run(externals={"fetch": fetch}, limits=STRICT, pool=pool))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stopped.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_host_call_that_nobody_awaits_ends_with_its_script(
    script: Callable[..., Script], pool: ScriptPool
) -> None:
    async def fetch(what: str) -> str:
        if what == "bad":
            raise ValueError("bad")
        await asyncio.Event().wait()
        return what

    text = FETCH + "import asyncio\nawait asyncio.gather(fetch('slow'), fetch('bad'))"
    with pytest.raises(ToolFailed, match="ValueError: bad"):
        await script(text).run(externals={"fetch": fetch}, pool=pool)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_process_that_ran_scripts_ends_cleanly() -> None:
    """Without the pause at closing, Monty 1.4 aborts up to one process in three at exit (fewer when busy)."""
    code = """
import asyncio
from remora.scripts import ScriptPool
async def main():
    begun = asyncio.Event()
    async def fetch():
        begun.set()
        await asyncio.Event().wait()
    async with ScriptPool(max_processes=1) as pool:
        task = asyncio.ensure_future(pool.run("a.pym", "await fetch()", inputs={}, externals={"fetch": fetch}))
        await begun.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
asyncio.run(main())
"""
    for _ in range(6):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
async def test_a_worker_that_stands_still_is_killed_and_replaced(pool: ScriptPool) -> None:
    async def fetch() -> str:
        for pid in _own_workers():
            os.kill(pid, signal.SIGSTOP)
            while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                pass
        return "stopped"

    with pytest.raises(ToolLimitExceeded):
        await pool.run("a.pym", "await fetch()\n1", inputs={}, externals={"fetch": fetch}, limits=STRICT)
    assert (await pool.run("a.pym", "2", inputs={}, externals={})).value == 2


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
async def test_no_key_of_ours_is_in_a_workers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-8f2b77")
    async with ScriptPool(max_processes=1) as fresh:
        await fresh.run("a.pym", "1", inputs={}, externals={})
        workers = _own_workers()
        assert workers
        for pid in workers:
            assert b"canary" not in Path(f"/proc/{pid}/environ").read_bytes()


def _own_workers() -> list[int]:
    me = os.getpid()
    threads = Path(f"/proc/{me}/task").glob("*/children")
    mine = {int(pid) for thread in threads for pid in thread.read_text().split()}
    return [pid for pid in mine if b"monty" in Path(f"/proc/{pid}/cmdline").read_bytes()]
