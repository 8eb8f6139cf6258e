"""Nothing from a stream, a file name, an agent or a model can steer the terminal, whatever shows it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from cli.conftest import Remora
from remora.cli._console import json_text
from remora.context.text import visible

STEERING = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
BIDI = ["\u061c", "\u200e", "\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
INVISIBLE = ["\xad", "\u180e", "\u200b", "\u2028", "\u2029", "\u2060", "\ufeff", "\ufff9", "\U000e0041"]
HOSTILE = [*STEERING, *BIDI, *INVISIBLE]
"""All that moves, hides or turns around what stands on a terminal."""
OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours, and how a progress bar comes back to its line."""

YAML = """
name: show
goal: Look at {node}
system_prompt: Look.
targets: [file]
tools: [{name: look, effects: none}]
check: {tool: look, count: wrong, words: {was_clean: "VERDICT"}}
script: [look, submit_result]
"""
LOOK = '{"summary": "looked", "knowledge_delta": {"wrong": 0}}\n'


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: f"U+{ord(text):04X}")
def test_json_carries_it_as_an_escape_and_a_line_spells_it_out(text: str) -> None:
    value = {f"key {text}": [f"a{text}b", "\U0001f600 ä"]}
    shown = json_text(orjson.dumps(value))
    assert text not in shown
    assert json.loads(shown) == value
    assert "\U0001f600 ä" in shown
    assert text not in visible(f"a{text}b")


def on_a_terminal(folder: Path, *words: str, **variables: str) -> tuple[str, int]:
    """What the command sends to a terminal, and how it ends."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-c", "from remora.cli import main; main()", *words]
    env = {**os.environ, "TERM": "xterm-256color", "REMORA_CONFIG_DIR": str(folder / "own"), **variables}
    process = subprocess.Popen(argv, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # nobody holds the other end
            break
        shown += data
        if not data:
            break
    os.close(ours)
    return shown.decode("utf-8", "replace").replace("\r\n", "\n"), process.wait(60)


def hostile_in(shown: str) -> list[str]:
    left = OURS.sub("", shown).replace("\r", "")
    return [f"U+{ord(text):04X}" for text in HOSTILE if text in left]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "remora.yaml").touch()
    tools = tmp_path / "agents" / "show" / "tools"
    tools.mkdir(parents=True)
    verdict = r"\x1b]0;owned\x07\x9b2J\u202e [link=https://evil.example]clean[/link]"
    (tools.parent / "subagent.yaml").write_text(YAML.replace("VERDICT", verdict))
    (tools / "look.pym").write_text(LOOK)
    name = "a\x1b]0;owned\x07\x7f\x9b2J\u202e.py"
    (tmp_path / name).write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("analyze", ".", "-o", "show"),
        ("analyze", ".", "-o", "show", "--json"),
        ("--\x1b]0;owned\x07",),
        ("analyze", "\x1b]0;owned\x07\u202e"),
    ],
    ids=lambda words: visible(" ".join(words)),
)
def test_no_hostile_character_reaches_the_terminal(project: Path, words: tuple[str, ...]) -> None:
    shown, _ = on_a_terminal(project, *words)
    assert hostile_in(shown) == []
    assert "evil.example" not in "".join(OURS.findall(shown))
    assert "Traceback" not in shown


def test_streams_of_a_hostile_name_are_shown_without_its_effect(project: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", "from remora.cli import main; main()", "analyze", ".", "-o", "show", "--quiet"],
        cwd=project,
        check=True,
        capture_output=True,
        env={**os.environ, "REMORA_CONFIG_DIR": str(project / "own")},
    )
    (stream,) = [path.stem for path in (project / ".agentfs" / "traces").glob("*.jsonl")]
    for words in (("trace", "tail", stream, "--json"), ("trace", "ls", "--json")):
        shown, code = on_a_terminal(project, *words)
        assert (code, hostile_in(shown)) == (0, []), words


def test_every_text_can_be_written_whatever_the_locale(remora: Remora, shop: Path) -> None:
    (shop / "größe.py").write_text("import os\n")
    remora("analyze", "größe.py", "--policy", "scripted", "--quiet")
    command = [sys.executable, "-P", "-m", "remora", "diff", "-C", str(shop)]
    done = subprocess.run(command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert "größe.py" in done.stdout.decode("utf-8")
    shown, code = on_a_terminal(shop, "trace", "verify", PYTHONIOENCODING="latin-1")
    assert (code, "? sealed" in shown) == (0, True)


def test_a_command_whose_output_is_closed_works_all_the_same(remora: Remora, shop: Path) -> None:
    code = f"{sys.executable} -P -m remora analyze shop/pricing.py --policy scripted >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", code], cwd=shop, check=False).returncode == 0
    assert "shop/pricing.py" in remora("trace", "ls").stdout
    asked = f"{sys.executable} -P -m remora accept -i <&-"
    done = subprocess.run(["/bin/sh", "-c", asked], cwd=shop, check=False, capture_output=True, text=True)
    assert "Accept the changes" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
