"""Every turn is shown, every run says how it ended, and nothing is wider than the terminal."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

import remora as library
from cli.conftest import Remora
from remora.analysis import explain, summarize
from remora.app import open_project
from remora.cli import _console, _render, _render_run, _render_streams, _render_turns
from remora.cli._render_run import run_agents
from remora.errors import ConfigError
from remora.events import (
    AgentEndEvent,
    AgentFinishedEvent,
    Call,
    Event,
    ModelResponseEvent,
    NoticeEvent,
    RunEndEvent,
    RunStartEvent,
    SubmitResultEvent,
)
from remora.ports import Decision
from remora.trace import StreamInfo, read_events

Screen = Callable[[int], io.StringIO]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal of a given width; what is printed on it."""

    def of(width: int) -> io.StringIO:
        shown = io.StringIO()
        console = Console(file=shown, width=width, force_terminal=True, no_color=True, soft_wrap=True, highlight=False)
        for module in (_console, _render, _render_run, _render_streams, _render_turns):
            monkeypatch.setattr(module, "out", console)
        return shown

    return of


def plain(text: str) -> str:
    """What is printed, without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


async def a_run(folder: Path, *, stop: str = "") -> list[Event]:
    """A run with a tool nobody offered, a call whose result is missing, and a final answer."""
    tool = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
    track = library.TwoTrack(goal="Find the slowest test of a large project", tools=[tool], state_dir=folder)
    try:
        async with track:
            if stop:
                raise OSError(stop)
            await track.request()
            wrong = {"id": "1", "function": {"name": "fly", "arguments": "{}"}}
            await track.response({"choices": [{"message": {"role": "assistant", "tool_calls": [wrong]}}]})
            await track.request()
            (call,) = await track.response(Decision((Call(call_id="2", tool="look", args={"at": "a" * 200}),)))
            await track.call(call, lambda at: f"line 1 of {at}\nline 2")
            await track.request()
            (call,) = await track.response(Decision((Call(call_id="3", tool="look", args={"at": "b"}),)))
            await track.unanswered(call, "the log ends here")
            await track.request()
            await track.response(Decision((), "It is test_import, with 2.1 seconds."))
    except OSError:
        pass
    assert track.path is not None
    return list(read_events(track.path))


@pytest.mark.parametrize("width", [80, 100, 140])
async def test_every_turn_is_shown_and_no_line_is_wider_than_the_terminal(
    tmp_path: Path, screen: Screen, width: int
) -> None:
    shown = screen(width)
    _render_turns.both_tracks(summarize(await a_run(tmp_path)), {})
    text = shown.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "goal: Find the slowest test" in text
    assert "`fly`" in text or "fly" in text
    assert "no result is recorded" in text
    assert 'answered "It is test_import, with 2.1 seconds."' in text
    assert [row.turn for row in summarize(await a_run(tmp_path)).turns] == [1, 2, 3, 4]


async def test_a_run_that_ended_in_an_error_says_why(tmp_path: Path, screen: Screen) -> None:
    shown = screen(80)
    _render_turns.both_tracks(summarize(await a_run(tmp_path, stop="the disk is on fire")), {})
    assert "Ended as error: OSError: the disk is on fire" in shown.getvalue()
    assert "no turn was recorded" in shown.getvalue()


async def test_events_are_printed_as_json_and_never_as_python(tmp_path: Path, screen: Screen) -> None:
    shown = screen(80)
    events = await a_run(tmp_path)
    for event in events:
        _render_streams.event_line(event)
    text = shown.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "PacketDelta(" not in text
    assert "{'" not in text
    assert 'args={"at":' in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_line_of_a_sealed_result_fits_the_terminal(screen: Screen, width: int) -> None:
    shown = screen(width)
    submit = Call(call_id="1", tool="submit_result")
    done = SubmitResultEvent(turn=1, seq=16, call_id="1", result={"summary": "Wrote tests " * 20})
    events = [ModelResponseEvent(turn=1, seq=12, calls=(submit,)), done, AgentEndEvent(turn=1, seq=16)]
    _render_turns.both_tracks(summarize(events), {})
    assert "seq 16" in shown.getvalue()
    assert "sealed" in shown.getvalue()
    assert max(map(len, plain(shown.getvalue()).splitlines())) <= width


def test_an_error_breaks_between_words(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(60)
    monkeypatch.setattr(_console, "err", _console.out)
    with pytest.raises(typer.Exit), _console.errors_as_sentences():
        raise ConfigError("`--max-turns` should be a number, " + "and more words " * 5, hint="long " * 20)
    lines = plain(shown.getvalue()).splitlines()
    assert max(map(len, lines)) <= 60
    assert [line[:6] for line in lines] == ["error:", "  more", "hint: ", "  long"]


async def test_explain_prints_values_as_json(tmp_path: Path, screen: Screen) -> None:
    shown = screen(80)
    _render.explained(explain(await a_run(tmp_path), "recent_actions"), "")
    assert "{'" not in shown.getvalue()
    assert '"tool":"look"' in shown.getvalue()


def stream(**fields: Any) -> StreamInfo:
    agent = "0" * 19 + "ABCDEFG"
    defaults: dict[str, Any] = {"run_id": "", "operation": "", "node_id": "", "started": "2026-11-17T06:17:26Z"}
    counts: dict[str, Any] = {"events": 10, "bytes": 5000, "sealed": True, "outcome": "success", "problem": ""}
    return StreamInfo(stream_id=f"traces/{agent}", kind="traces", agent_id=agent, **defaults | counts | fields)


def test_streams_without_a_node_are_listed_by_their_name_and_goal(screen: Screen) -> None:
    shown = screen(80)
    rows = [
        stream(goal="Find the slowest test of a project that has very many of them indeed"),
        stream(name="Nightly", goal="Tidy up"),
    ]
    _render_streams.streams([*rows, stream(node_id="src/a.py:load", goal="Lint")])
    head, first, second, third = shown.getvalue().splitlines()
    assert max(map(len, shown.getvalue().splitlines())) <= 80
    assert head.split() == ["agent", "started", "operation", "what", "events", "outcome"]
    assert "Find the slowest test" in first
    assert "Nightly · Tidy up" in second
    assert "src/a.py:load" in third


def test_a_run_is_shown_as_a_table_of_its_agents(screen: Screen) -> None:
    shown = screen(80)
    began = RunStartEvent(ts="2026-11-17T10:00:00.000000Z", operations=("lint",), policy="first-candidate")
    done = RunEndEvent(ts="2026-11-17T10:01:00.000000Z", outcome="finished", counts={"success": 2, "error": 0})
    fixed = stream(
        node_id="src/a_module_with_a_long_name.py:load_everything", operation="lint", verdict="fixed", turns=3
    )
    rows = [fixed, stream(node_id="src/b.py", operation="lint", verdict="clean", turns=1, tokens=1234, changes=1)]
    run_agents("01RUN", [began, done], rows)
    head, titles, first, second, *steps = shown.getvalue().splitlines()
    assert "run 01RUN · lint · first-candidate · 2026-11-17 10:00:00 · finished (2 success)" in head
    assert titles.split() == ["agent", "operation", "what", "verdict", "turns", "tokens"]
    assert first.split()[1:] == ["lint", "src/a_module_with_a_long_name.py:lo…", "fixed", "3", "0"]
    assert max(map(len, (titles, first, second))) <= 80
    assert second.split()[3:] == ["clean", "1", "1,234"]
    assert [step.split("  ")[1] for step in steps[2:]] == [
        "remora diff 01RUN",
        "remora trace report 01RUN",
        "remora trace show 01RUN --events",
    ]


def test_a_run_on_a_cluster_is_shown_with_who_did_what_where(screen: Screen) -> None:
    shown = screen(80)
    placed = NoticeEvent(code="placement", message="ray: a:1 ran 2 agents, b:2 ran 1 agent")
    began, row = RunStartEvent(ts="2026-11-17T10:00:00.000000Z"), stream()
    run_agents("01RUN", [began, AgentFinishedEvent(agent_id=row.agent_id, worker="b:2"), placed], [row])
    assert "ray: a:1 ran 2 agents, b:2 ran 1 agent" in shown.getvalue()
    _, titles, first, *_ = shown.getvalue().splitlines()
    assert (titles.split()[-1], first.split()[-1]) == ("worker", "b:2")


def test_a_run_that_has_not_ended_and_has_no_agent_says_so(screen: Screen) -> None:
    shown = screen(80)
    run_agents("01RUN", [RunStartEvent(ts="2026-11-17T10:00:00.000000Z", operations=("lint",))], [])
    assert "not ended at 2026-11-17T10:00:00" in shown.getvalue()
    assert "The run has no agent" in shown.getvalue()


async def test_verify_names_the_streams_of_a_store_and_not_its_cache(tmp_path: Path, screen: Screen) -> None:
    events = await a_run(tmp_path)
    found = open_project(tmp_path, state_dir=tmp_path).library.verify()
    shown = screen(120)
    _render.verified(found, "postgres://ci@db/traces")
    assert str(tmp_path) not in shown.getvalue()
    assert f"traces/{events[0].agent_id}\n" in shown.getvalue()
    assert "In the store postgres://ci@db/traces" in shown.getvalue()


async def test_the_goal_and_the_title_of_a_log_are_in_the_list_of_streams(tmp_path: Path) -> None:
    session = [
        {"type": "summary", "summary": "A title", "leafUuid": "x"},
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Fix it"}},
        {"type": "assistant", "sessionId": "s", "message": {"id": "m", "role": "assistant", "content": "Done."}},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, session)))
    project = open_project(tmp_path)
    await project.streams.import_chats([tmp_path / "s.jsonl"])
    (info,) = project.library.agents()
    assert (info.name, info.goal) == ("A title", "Fix it")


def test_streams_are_listed_by_the_time_that_is_shown(shop: Path, remora: Remora) -> None:
    from remora.events import AgentStartEvent, encode

    folder = shop / ".agentfs" / "traces"
    remora("analyze", "shop/__init__.py", "-o", "lint", "--policy", "first-candidate", "-q")
    early = AgentStartEvent(seq=0, ts="2020-01-01T00:00:00.000000Z", agent_id="7" + "Z" * 25)
    (folder / f"{'7' + 'Z' * 25}.jsonl").write_bytes(encode(early) + b"\n")
    started = [row["started"] for row in json.loads(remora("trace", "ls", "--json").stdout)]
    assert started == sorted(started)
    assert started[0].startswith("2020")


def test_a_hint_names_ids_as_short_as_they_are_shown(remora: Remora, analyzed: Callable[[str], Any]) -> None:
    analyzed("shop/pricing.py")
    done = remora("trace", "show", "NOSUCHID")
    newest = done.stderr.split("The newest are ")[1]
    assert all(len(name.strip("` ,…\n")) <= 7 for name in newest.split(","))


def test_verify_explains_an_open_run(remora: Remora, analyzed: Callable[[str], Any]) -> None:
    analyzed("shop/pricing.py")
    done = remora("trace", "verify")
    assert "1 open run" in done.stdout
    assert "The stream of a run stays open after the run" in done.stdout


def test_the_diff_of_many_agents_is_one_patch_that_git_applies(shop: Path, remora: Remora) -> None:
    remora("analyze", "shop/cart.py", "-o", "lint,docstring", "--policy", "first-candidate", "-q")
    merged = remora("diff")
    assert merged.stdout.count("--- a/shop/cart.py") == 1
    assert remora("diff", "--by-agent").stdout.count("--- a/shop/cart.py") > 1
    applied = subprocess.run(["git", "apply", "-"], cwd=shop, input=merged.stdout, text=True, capture_output=True)  # noqa: S607
    assert applied.returncode == 0, applied.stderr


def test_nothing_is_to_be_accepted_where_nothing_changed(remora: Remora) -> None:
    shown = remora("analyze", "shop/__init__.py", "-o", "lint", "--policy", "first-candidate").stdout
    assert "No agent changed a file. Next:" in shown
    assert "remora accept" not in shown


def test_a_key_of_the_trace_store_is_read_as_the_specification_writes_it(
    remora: Remora, analyzed: Callable[[str], Any]
) -> None:
    analyzed("shop/pricing.py")
    keys = remora("trace", "get", "index:node:shop/pricing.py:format_price").stdout.split()
    assert keys
    entries = json.loads(remora("trace", "get", keys[-1], "--json").stdout)
    assert entries[0]["turn"] == int(keys[-1].rpartition(":")[2])
    assert entries[0]["parsed_output"] is not None
    assert "is not an index key" in remora("trace", "get", "index:colour:red").stderr


async def test_a_result_that_is_json_text_is_recorded_as_its_value_too(tmp_path: Path) -> None:
    async with library.TwoTrack(goal="g", state_dir=tmp_path) as track:
        for text in ('{"a": [1]}', "plain", "[1, 2]", "{broken", "[" + "1," * 20_000 + "1]"):
            await track.request()
            await track.call(Call(call_id="1", tool="t", args={}), lambda text=text: text)
    assert track.path is not None
    found = [event.parsed for event in read_events(track.path) if event.type == "tool_result"]  # type: ignore[attr-defined]
    assert found == [{"a": [1]}, None, [1, 2], None, None]
