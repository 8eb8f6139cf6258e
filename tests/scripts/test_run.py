from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic_monty
import pytest

from remora.errors import ToolArgumentsInvalid, ToolFailed, ToolLimitExceeded
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


@pytest.mark.parametrize(
    ("bomb", "limit"),
    [
        ("while True: pass\n1", "0.5 s"),
        ("x = 'a' * 10 ** 8\n1", "8 MB of memory"),
        ("def f(): return f()\nf()", "nested calls"),
        ("def f():\n    while True: pass\nf()", "0.5 s"),
        ("for i in range(2000): await fetch('a')\n1", "1000 host calls"),
    ],
)
async def test_the_limit_that_stopped_a_script_is_named(
    script: Callable[..., Script], pool: ScriptPool, bomb: str, limit: str
) -> None:
    async def fetch(what: str) -> str:
        return what

    with pytest.raises(ToolLimitExceeded, match=limit):
        await script(FETCH + bomb).run(externals={"fetch": fetch}, limits=STRICT, pool=pool)
    assert await script("1 + 1").run(pool=pool) == 2


VALUES = {
    "float('nan')": "not a JSON number",
    "[float('inf')]": r"\$\[0\]: inf",
    "{1: 2}": "key 1 is a `int`",
    "{(1, 2): 3}": "expected text",
    "{'a': b'x'}": r"\$\.a: a `bytes`",
    "{1, 2}": "`set`",
    "2 ** 64": "64 bits",
    "x = []\nfor i in range(100): x = [x]\nx": "deeper than 64",
    "import datetime\ndatetime.date(2020, 1, 1)": r"`datetime\.date`",
}


@pytest.mark.parametrize(("text", "told"), VALUES.items())
async def test_a_value_that_json_cannot_hold_is_refused_with_its_place(
    script: Callable[..., Script], pool: ScriptPool, text: str, told: str
) -> None:
    with pytest.raises(ToolFailed, match=told):
        await script(text).run(pool=pool)


MANY = {
    "[{'n': 2 ** 64 if i == 900 else i} for i in range(1000)]": r"\$\[900\]\.n: an integer of more than 64 bits",
    "[{i if i == 900 else 'n': i} for i in range(1000)]": r"\$\[900\]: a key is a `int`",
    "[{'n': b'x' if i == 900 else i} for i in range(1000)]": r"\$\[900\]\.n: a `bytes`",
    "[float('nan') if i == 900 else i for i in range(1000)]": r"\$\[900\]: nan",
    "x = list(range(1000))\nfor i in range(64): x = [x]\nx": "deeper than 64",
    "[0] * 100_000": "larger than 4 MB",
    "['a' * 5000] * 900": "larger than 4 MB",
}


@pytest.mark.parametrize(("text", "told"), MANY.items())
async def test_one_wrong_part_among_many_is_found(
    script: Callable[..., Script], pool: ScriptPool, text: str, told: str
) -> None:
    with pytest.raises(ToolFailed, match=told):
        await script(text).run(pool=pool)


async def test_a_result_of_many_parts_arrives_as_it_was(script: Callable[..., Script], pool: ScriptPool) -> None:
    text = "[{'line': i, 'code': 'é,[{' * 3, 'at': (1.5, None, True)} for i in range(2000)]"
    expected = [{"line": i, "code": "é,[{" * 3, "at": [1.5, None, True]} for i in range(2000)]
    assert await script(text).run(pool=pool) == expected


async def test_what_json_would_turn_into_text_is_refused_before_a_host_function_gets_it(
    script: Callable[..., Script], pool: ScriptPool
) -> None:
    async def fetch(what: Any) -> None:
        raise AssertionError

    text = "try:\n    r = await fetch([{i: i} for i in range(1000)])\nexcept TypeError as error:\n    r = str(error)\nr"
    assert "`int`" in await script(FETCH + text).run(externals={"fetch": fetch}, pool=pool)


@pytest.mark.parametrize("value", [object(), "\ud800", float("nan"), {1: 2}, [b"x"], 2**70])
async def test_a_hostile_input_never_reaches_the_script(
    script: Callable[..., Script], pool: ScriptPool, value: Any
) -> None:
    with pytest.raises(ToolArgumentsInvalid):
        await script(HEADER + 'x: Any = Input("x")\n1').run({"x": value}, pool=pool)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (object(), "`object`"),
        ("\ud800", "surrogate"),
        ({1, 2}, "`set`"),
        ({1: 2}, "`int`"),
        (Exception("x"), "not a JSON"),
    ],
)
async def test_what_a_host_function_must_not_return_is_a_value_error_inside(
    script: Callable[..., Script], pool: ScriptPool, value: Any, told: str
) -> None:
    async def fetch(what: str) -> Any:
        return value

    text = FETCH + "try:\n    r = await fetch('a')\nexcept ValueError as error:\n    r = str(error)\nr"
    assert told in await script(text).run(externals={"fetch": fetch}, pool=pool)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("{1}", "`set`"),
        ("{1: 2}", "key 1"),
        ("fetch", "not a JSON"),
        ("2 ** 70", "64 bits"),
        ("['a' * 90000] * 90", "4 MB"),
    ],
)
async def test_a_host_function_is_not_called_with_what_json_cannot_hold(
    script: Callable[..., Script], pool: ScriptPool, value: str, told: str
) -> None:
    calls: list[Any] = []

    async def fetch(what: Any) -> None:
        calls.append(what)

    text = FETCH + f"try:\n    r = await fetch({value})\nexcept TypeError as error:\n    r = str(error)\nr"
    assert told in await script(text).run(externals={"fetch": fetch}, pool=pool)
    assert calls == []


@pytest.mark.parametrize(
    "error", [KeyError("k"), PermissionError("p"), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), TimeoutError("t")]
)
async def test_a_host_exception_keeps_its_class_and_words(
    script: Callable[..., Script], pool: ScriptPool, error: Exception
) -> None:
    async def fetch(what: str) -> str:
        raise error

    name = type(error).__name__
    text = FETCH + f"try:\n    r = await fetch('q')\nexcept {name} as error:\n    r = '{name} ' + str(error)\nr"
    assert await script(text).run(externals={"fetch": fetch}, pool=pool) == f"{name} {error}"


async def test_an_own_exception_class_of_the_host_is_its_nearest_builtin_inside(
    script: Callable[..., Script], pool: ScriptPool
) -> None:
    class TooSlow(ValueError):
        pass

    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def fetch(what: str) -> str:
        raise TooSlow("slow") if what == "slow" else Silent

    text = FETCH + "try:\n    r = await fetch('slow')\nexcept ValueError as error:\n    r = str(error)\nr"
    assert await script(text).run(externals={"fetch": fetch}, pool=pool) == "slow"
    with pytest.raises(ToolFailed, match="`Silent`, which has no text"):
        await script(FETCH + "await fetch('silent')").run(externals={"fetch": fetch}, pool=pool)


async def test_the_text_of_a_scripts_error_is_cut_and_does_not_outlive_the_call(pool: ScriptPool) -> None:
    gc.collect()  # what an earlier test left is not ours
    gc.disable()  # what only a collection would free counts as kept
    try:
        for source in ("raise ValueError('x' * 2_000_000)", "{}['x' * 2_000_000]"):
            with pytest.raises(ToolFailed) as caught:
                await pool.run("a.pym", source, inputs={}, externals={})
            assert len(str(caught.value)) < 1100
            assert "a.pym:1: " in str(caught.value)
            del caught
            async with asyncio.timeout(20):
                # What a thread of the library drops without the interpreter's lock is let go with its next call.
                while any(isinstance(each, pydantic_monty.MontyError) for each in gc.get_objects()):
                    await pool.run("b.pym", "1", inputs={}, externals={})
    finally:
        gc.enable()


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
import gc
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
    return [pid for pid in mine if Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].endswith(b"/monty")]
