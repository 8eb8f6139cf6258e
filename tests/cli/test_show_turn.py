"""`remora trace show AGENT --turn N`: both tracks of one turn in a terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from remora import TwoTrack
from remora.app import Viewing, open_project
from remora.cli import _render_turn
from remora.cli._render_turn import find_turn, one_turn
from remora.context.patterns import redact_values
from remora.errors import ConfigError

LOG = [f"line {n}: the cache of worker-{n} was rebuilt from /var/lib/store/{n}" for n in range(400)]


@pytest.fixture
async def project(tmp_path: Path) -> Path:
    """A project with one agent that read a long log in its first turn."""
    async with TwoTrack(goal="Find the worker that fails", budget=1000, state_dir=tmp_path / ".agentfs") as tt:
        for number in (1, 2):
            await tt.request()
            reply = await tt.response(
                {"role": "assistant", "content": "", "tool_calls": [_call("read_log", part=number)]}
            )
            await tt.call(reply[0], lambda part: "\n".join(LOG) + "\x1b[2J")
        await tt.request()
        await tt.response({"role": "assistant", "content": "It is worker-7"})
    return tmp_path


def _call(tool: str, **args: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": tool, "arguments": json.dumps(args)}}


@pytest.fixture
def show(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What a terminal of some width shows."""

    def run(turn: int, width: int, *, full: bool = False) -> list[str]:
        shown = io.StringIO()
        monkeypatch.setattr(_render_turn, "out", Console(file=shown, width=width, highlight=False, soft_wrap=True))
        viewing = Viewing(open_project(project))
        stream = next((project / ".agentfs" / "traces").glob("*.jsonl")).stem
        outline = viewing.open(stream)
        one_turn(viewing, outline, find_turn(outline, turn), redact_values, full=full)
        return shown.getvalue().splitlines()

    return run


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_both_tracks_are_there(
    show: Callable[..., list[str]], width: int
) -> None:
    lines = show(2, width)
    assert max(map(len, lines)) <= width
    assert any("SHORT TRACK" in line for line in lines)
    assert any("LONG TRACK" in line for line in lines)
    assert any("SHORT TRACK" in line and "LONG TRACK" in line for line in lines) == (width >= 120)


def test_the_budget_and_what_was_left_out_are_said(show: Callable[..., list[str]]) -> None:
    text = "\n".join(show(2, 80))
    assert " of 1,000 tokens" in text
    assert "left out: " in text


def test_new_items_and_lines_that_the_next_prompt_contains_are_marked(show: Callable[..., list[str]]) -> None:
    lines = show(2, 80)
    assert any(line.startswith("+ ") for line in lines)
    assert any(line.startswith("┃ line ") for line in lines)


def test_a_long_output_is_folded_with_a_count_and_whole_with_full(show: Callable[..., list[str]]) -> None:
    folded, full = show(1, 80), show(1, 80, full=True)
    assert any("more" in line and "lines" in line for line in folded)
    assert not any("worker-399" in line for line in folded)
    assert sum("was rebuilt from" in line for line in full) >= len(LOG)


def test_escapes_of_a_tool_do_not_reach_the_terminal(show: Callable[..., list[str]]) -> None:
    assert "\x1b" not in "\n".join(show(1, 80, full=True))


def test_a_turn_that_is_not_there_is_told_with_those_that_are(show: Callable[..., list[str]]) -> None:
    with pytest.raises(ConfigError, match="has no turn 9: expected 1 to 3"):
        show(9, 80)
    with pytest.raises(ConfigError, match="has no turn 0: a run begins with turn 1"):
        show(0, 80)


def test_the_events_of_a_turn_have_their_type_as_json(
    analyzed: Callable[[str], Any], remora_json: Callable[..., Any]
) -> None:
    agent = analyzed("shop/cart.py")["agents"][0]["agent_id"]
    one, whole = remora_json("trace", "show", agent, "--turn", "1"), remora_json("trace", "show", agent)
    assert one
    assert {event["turn"] for event in one} == {1}
    assert [event for event in whole if event.get("turn") == 1] == one
    assert whole[0]["type"] == "agent_start"
