"""What one run of a script may hold and write through its host functions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from remora.errors import ToolFailed
from remora.ports import Completed
from remora.scripts import PERMISSIVE, ScriptPool
from remora.scripts import _calls as calls
from remora.scripts._calls import MAX_ANSWERS, MAX_ARGUMENTS, MAX_CONCURRENT
from remora.scripts._host import MAX_COMMANDS, MAX_HELD
from remora.scripts._host_code import MAX_TOKENS
from remora.scripts._host_files import MAX_WRITTEN
from remora.scripts._values import measure
from scripts.test_host import make

MB = 1024 * 1024


class Talks:
    """A spawner that starts nothing; every program says the same."""

    async def run(
        self, argv: Sequence[str], *, cwd: Path, stdin: bytes = b"", limit_s: float = 30.0, over: Path | None = None
    ) -> Completed:
        return Completed(tuple(argv), 0, b"x" * MB + argv[1].encode(), b"")


async def test_all_that_one_run_writes_is_bounded(tmp_path: Path) -> None:
    write = make(tmp_path).functions()["write_file"]
    for _ in range(MAX_WRITTEN // (4 * MB)):
        await write("a", "x" * 4 * MB)
    with pytest.raises(OSError, match="a script can write 67,108,864 bytes in total per run"):
        await write("a", "x")


async def test_outputs_of_commands_beyond_a_bound_are_not_held_and_none_is_lost(tmp_path: Path) -> None:
    host = make(tmp_path, Talks())
    for number in range(20):
        await host.run_command(["ruff", str(number)])
    held = [data for _, data in host.outputs if isinstance(data, bytes)]
    assert sum(map(len, held)) <= MAX_HELD
    said = [b"".join([data] if isinstance(data, bytes) else data) for _, data in host.outputs]
    assert said == [b"x" * MB + str(number).encode() for number in range(20)]


async def test_the_commands_of_one_run_are_counted(tmp_path: Path) -> None:
    host = make(tmp_path)
    for _ in range(MAX_COMMANDS):
        await host.run_command(["ruff"])
    with pytest.raises(OSError, match="the limit is 200 per run"):
        await host.run_command(["ruff"])


async def test_code_of_too_many_words_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n" * (MAX_TOKENS // 3 + 1))
    (tmp_path / "b.py").write_text("def f():\n    pass\n")
    functions = make(tmp_path).functions()
    with pytest.raises(OSError, match="80,000 tokens"):
        await functions["node_facts"]("a.py", "f")
    with pytest.raises(OSError, match="80,000 tokens"):
        await functions["edit_node"]("b.py", "body", "(" * MAX_TOKENS, "f")


async def run(source: str, **externals: Any) -> Any:
    async with ScriptPool(max_processes=1) as pool:
        return (await pool.run("a.pym", source, inputs={}, externals=externals, limits=PERMISSIVE)).value


async def test_host_calls_take_turns() -> None:
    now, most = 0, 0

    async def host() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    assert await run("import asyncio\nlen(await asyncio.gather(*[host() for i in range(100)]))", host=host) == 100
    assert most <= MAX_CONCURRENT


async def test_what_waits_for_its_turn_is_bounded() -> None:
    opened = asyncio.Event()

    async def host(text: str) -> int:
        await opened.wait()
        return len(text)

    wrapped = calls.HostCalls().wrap({"host": host})["host"]
    waiting = [asyncio.ensure_future(wrapped("x" * MB)) for _ in range(20)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    opened.set()
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert 0 < ended.count(MB) <= MAX_ARGUMENTS // MB
    refused = {str(each) for each in ended if each != MB}
    assert refused == {
        f"too much at once: the arguments of host calls in flight are limited to {MAX_ARGUMENTS:,} bytes"
    }


async def test_what_host_functions_give_in_one_run_is_bounded() -> None:
    async def host() -> str:
        return "x" * 4_000_000

    with pytest.raises(ToolFailed, match=f"host functions may return {MAX_ANSWERS:,} bytes to a script in one run"):
        await run("while True: await host()\n1", host=host)
    assert await run("for i in range(6): x = await host()\nlen(x)", host=host) == 4_000_000


async def test_a_failed_call_holds_nothing_of_its_arguments() -> None:
    """An error keeps the frames it came through, and Monty keeps the error until the script waits for it."""

    async def host(text: str) -> None:
        raise OSError(f"no: {len(text)}")

    wrapped = calls.HostCalls().wrap({"host": host})["host"]
    with pytest.raises(OSError, match="no: 1000") as failed:
        await wrapped("x" * 1000)
    trace, frames = failed.value.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    own = [frame for frame in frames if frame.f_code.co_filename == calls.__file__]
    assert own
    assert not any("x" * 1000 in str(value) for frame in own for value in frame.f_locals.values())
    assert failed.value.__cause__ is failed.value.__context__ is None


def test_a_value_weighs_about_what_it_takes() -> None:
    assert measure("x" * 1000) >= 1000
    assert measure("\U0001f600" * 1000) >= 4000
    assert measure({"a" * 1000: ["b" * 1000, 1, None]}) >= 2000
