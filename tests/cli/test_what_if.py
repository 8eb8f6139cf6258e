"""`remora trace what-if`: recorded runs by other rules, from the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Remora = Callable[..., subprocess.CompletedProcess[str]]
SUMMARIZER = """
class Vague:
    def summarize(self, raw_result):
        return "Looked something up"
"""


def call(number: int, tool: str, **args: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(args)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": content}


@pytest.fixture
def imported(tmp_path: Path, remora: Remora) -> Path:
    """A project with one imported conversation, whose second call needs an id from a long list."""
    rooms = json.dumps({"rooms": [{"id": f"R-{number}", "floor": f"floor {number % 7}"} for number in range(100, 200)]})
    messages = [
        {"role": "system", "content": "You book rooms."},
        {"role": "user", "content": "A quiet room, please"},
        call(1, "search", city="Ulm"),
        result(1, rooms),
        call(2, "book", room="R-150"),
        result(2, "booked"),
    ]
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "remora.yaml").touch()
    (folder / "chats.jsonl").write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    assert remora("trace", "import", "chats.jsonl", cwd=folder).returncode == 0
    return folder


def test_todays_rules_change_nothing_in_runs_of_today(imported: Path, remora: Remora) -> None:
    done = remora("trace", "what-if", cwd=imported)
    assert done.returncode == 0, done.stderr
    assert "No prompt changes" in done.stdout


def test_the_bundled_agents_runs_are_compared_too(
    analyzed: Callable[[str], Any], remora_json: Callable[..., Any]
) -> None:
    analyzed("shop/cart.py")
    told = remora_json("trace", "what-if")
    assert told["total"]["prompts"] > 0
    assert told["total"]["changed"] == 0


def test_a_loss_beyond_the_limit_fails(imported: Path, remora: Remora) -> None:
    command = ("trace", "what-if", "--budget", "420")
    fine = remora(*command, cwd=imported)
    assert fine.returncode == 0, fine.stderr
    failed = remora(*command, "--max-changed", "0", cwd=imported)
    assert failed.returncode == 1
    assert "of the prompts change: expected at most 0.0%" in failed.stderr


def test_a_file_of_a_stream_and_a_summarizer_in_a_file_can_be_named(imported: Path, remora: Remora) -> None:
    (imported / "tools.py").write_text(SUMMARIZER, encoding="utf-8")
    (file,) = (imported / ".agentfs" / "traces").glob("*.jsonl")
    options = ("--summarizer", "search=tools.py:Vague", "--style", "json", "--diff")
    done = remora("trace", "what-if", str(file), *options, cwd=imported)
    assert done.returncode == 0, done.stderr
    assert "Looked something up" in done.stdout
    assert "lost: 150" in done.stdout


def test_nothing_is_written(imported: Path, remora: Remora) -> None:
    def files() -> dict[Path, bytes]:
        found = (imported / ".agentfs").rglob("*")
        return {path: path.read_bytes() for path in found if path.is_file() and "index" not in path.name}

    before = files()
    assert remora("trace", "what-if", "--budget", "500", cwd=imported).returncode == 0
    assert files() == before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--style", "poem"), "expected json, markdown, account"),
        (("--summarizer", "search"), "expected TOOL=NAME"),
        (("--summarizer", "search=no_such"), "is not known"),
        (("--summarizer", "search=missing.py:Name"), "missing.py"),
        (("missing.jsonl",), "expected the file of a stream"),
        (("chats.jsonl",), "was not compared"),
        (("ZZZZZZ",), "No stream has an id"),
        (("--budget", "5"), "too small"),
    ],
)
def test_a_mistake_is_a_sentence(args: tuple[str, ...], said: str, imported: Path, remora: Remora) -> None:
    done = remora("trace", "what-if", *args, cwd=imported)
    assert done.returncode in (1, 3)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
