"""Row 30: a summarizer that raises, hangs, floods or dies is really stopped, and the run goes on."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import remora
from remora.context.summarizers import Imported, LinterSummarizer, Summarizer, Unguarded
from remora.errors import ConfigError
from remora.events import Call
from remora.sandbox import SummaryChild
from remora.trace import verify

MODULE = '''
import os, re, signal, subprocess, sys, time
from remora.context.summarizers import Summarizer


class Good(Summarizer):
    def __init__(self, word="seen"):
        self.word = word

    def summarize(self, raw_result):
        print("not part of the answer")
        return f"{self.word} {len(raw_result)}"

    def extract_knowledge(self, raw_result):
        return {"size": len(raw_result), "odd": {1, 2}}

    def extract_excerpts(self, raw_result):
        return [{"label": "head", "text": raw_result[:3], "start_line": 4}]


class Raises(Summarizer):
    def summarize(self, raw_result):
        raise ValueError("no")


class HoldsTheLock(Summarizer):
    def summarize(self, raw_result):
        return str(re.match("(a+)+$", "a" * 60 + "b"))


class Floods(Summarizer):
    def summarize(self, raw_result):
        return "x" * 10_000_000


class Dies(Summarizer):
    def summarize(self, raw_result):
        os.kill(os.getpid(), signal.SIGSEGV)


class Exits(Summarizer):
    def summarize(self, raw_result):
        os._exit(3)


class Tells(Summarizer):
    def summarize(self, raw_result):
        return ",".join(sorted(os.environ)) + " " + os.getcwd()


class Shouts(Summarizer):
    """Finds the pipe to the parent and writes a length of its own into it."""

    def summarize(self, raw_result):
        for descriptor in range(3, 20):
            try:
                os.write(descriptor, b"\\xff" * 4096)
            except OSError:
                pass
        return "never read"


class LeavesOneBehind(Summarizer):
    """Starts a process that leaves the group and keeps the pipe open."""

    def summarize(self, raw_result):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(6)"], close_fds=False, start_new_session=True)
        time.sleep(60)
'''


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "bad_summarizers.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("bad_summarizers")
    sys.modules.pop("bad_summarizers")


@pytest.fixture
async def guard() -> AsyncIterator[SummaryChild]:
    async with SummaryChild(limit_s=1.0) as child:
        yield child


async def test_what_a_summarizer_makes_comes_back_whole(guard: SummaryChild, bad: ModuleType) -> None:
    made = await guard.run(bad.Good("counted"), "abcdef")
    assert made.summary == "counted 6"
    assert made.knowledge == {"size": 6, "odd": "{1, 2}"}
    assert made.excerpts == ({"label": "head", "text": "abc", "start_line": 4},)
    assert made.problems == ("returned knowledge that is not JSON, kept as text: odd",)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Raises", "failed: ValueError"),
        ("HoldsTheLock", "was stopped: it took longer than 1 s"),
        ("Floods", "returned 10000064 bytes: the limit is 65536"),
        ("Dies", "was stopped: its process was ended by signal 11"),
        ("Exits", "was stopped: its process ended with status 3"),
        ("LeavesOneBehind", "was stopped: it took longer than 1 s"),
    ],
)
async def test_a_bad_summarizer_is_stopped_and_the_next_one_runs(
    guard: SummaryChild, bad: ModuleType, name: str, problem: str
) -> None:
    began = time.monotonic()
    made = await guard.run(getattr(bad, name)(), "raw")
    assert (made.summary, made.knowledge, made.problems) == ("", {}, (problem,))
    assert (await guard.run(bad.Good(), "raw")).summary == "seen 3"
    assert time.monotonic() - began < 20


async def test_a_summarizer_cannot_make_its_parent_read_more_than_the_limit(
    guard: SummaryChild, bad: ModuleType
) -> None:
    made = await guard.run(bad.Shouts(), "raw")
    assert made.summary == ""
    assert made.problems[0].startswith("was stopped: it returned 4294967295 bytes")


async def test_the_child_has_nothing_of_our_environment(
    guard: SummaryChild, bad: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-8f2b77")
    assert (await guard.run(bad.Tells(), "")).summary == "HOME,LANG,LC_ALL,PATH /"


async def test_one_child_serves_many_calls(guard: SummaryChild, bad: ModuleType) -> None:
    await guard.run(bad.Good(), "a")
    pid = _child_of(guard)
    made = await asyncio.gather(*(guard.run(bad.Good(str(n)), "x" * 300_000) for n in range(8)))
    assert [item.summary for item in made] == [f"{n} 300000" for n in range(8)]
    assert _child_of(guard) == pid


async def test_a_summarizer_named_by_its_path_is_imported_only_in_the_child(
    guard: SummaryChild, tmp_path: Path
) -> None:
    sys.path.insert(0, str(tmp_path))
    try:
        (tmp_path / "only_there.py").write_text("class Mine:\n    def summarize(self, raw):\n        return 'mine'\n")
        made = await guard.run(Imported("only_there:Mine"), 1)
    finally:
        sys.path.remove(str(tmp_path))
    assert (made.summary, made.problems) == ("mine", ())
    assert "only_there" not in sys.modules


async def test_a_path_that_leads_nowhere_is_a_problem_and_not_the_end(guard: SummaryChild) -> None:
    made = await guard.run(Imported("no_such_module_at_all:Mine"), 1)
    assert made.problems == ("failed: ModuleNotFoundError: No module named 'no_such_module_at_all'",)


async def test_a_raw_result_that_cannot_be_sent_is_a_problem(guard: SummaryChild, bad: ModuleType) -> None:
    made = await guard.run(bad.Good(), (n for n in range(3)))
    assert made.problems == ("could not be called: TypeError",)


async def test_a_cancelled_run_leaves_no_child(guard: SummaryChild, bad: ModuleType) -> None:
    await guard.run(bad.Good(), "a")
    pid = _child_of(guard)
    run = asyncio.ensure_future(guard.run(bad.HoldsTheLock(), "a"))
    await asyncio.sleep(0.3)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not _is_alive(pid)
    assert (await guard.run(bad.Good(), "a")).summary == "seen 1"


async def test_a_closed_guard_leaves_no_child(bad: ModuleType) -> None:
    async with SummaryChild() as guard:
        await guard.run(bad.Good(), "a")
        pid = _child_of(guard)
        assert _is_alive(pid)
    assert not _is_alive(pid)


def test_a_local_class_is_refused_when_it_is_registered() -> None:
    class Local(Summarizer):
        def summarize(self, raw_result: Any) -> str:
            return ""

    with pytest.raises(ConfigError, match=r"`.*Local` of `lint` cannot run in a child process: it cannot be pickled"):
        SummaryChild().check("lint", Local())


def test_a_class_of_the_started_script_is_refused(bad: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad.Good, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Good", bad.Good, raising=False)
    with pytest.raises(ConfigError, match="it is defined in the script that was started"):
        SummaryChild().check("lint", bad.Good())


async def test_two_tracks_refuse_at_once_what_their_guard_could_never_run(tmp_path: Path) -> None:
    class Local(LinterSummarizer):
        pass

    with pytest.raises(ConfigError, match="cannot run in a child process"):
        remora.TwoTrack(goal="g", summarizers={"lint": Local()}, state_dir=tmp_path)
    remora.TwoTrack(goal="g", summarizers={"lint": Local()}, state_dir=tmp_path, guard=Unguarded())


@pytest.mark.parametrize("name", ["Raises", "HoldsTheLock", "Floods", "Dies"])
async def test_the_run_goes_on_with_the_generic_line_and_says_why(
    tmp_path: Path, bad: ModuleType, name: str, record_property: Callable[[str, object], None]
) -> None:
    guard = SummaryChild(limit_s=0.5)
    settings: dict[str, Any] = {"state_dir": tmp_path, "summarizers": {"look": getattr(bad, name)()}, "guard": guard}
    async with guard, remora.TwoTrack(goal="g", **settings) as tt:
        await tt.request()
        await tt.call(Call(call_id="1", tool="look", args={}), lambda: "one\ntwo\n")
        await tt.call(Call(call_id="2", tool="look", args={}), lambda: {"found": 1})
        packet = tt.packet
    assert [action.summary for action in packet.recent_actions] == ["2 lines: one", "Executed look"]
    assert [line for line in packet.diagnostics if line.startswith("Summarizer of look ")]
    assert verify(tt.path).status == "sealed"
    record_property("row 30", f"a summarizer that is called {name}: stopped, generic line, run sealed")


def _child_of(guard: SummaryChild) -> int:
    process = guard._pipe._process
    assert process is not None
    return process.pid


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
