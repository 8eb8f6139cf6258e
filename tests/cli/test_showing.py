"""What looks like a secret is redacted in what every reading command shows, and shown when asked for."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Remora = Callable[..., subprocess.CompletedProcess[str]]

TOKEN = "ghp_abcdefghij1234567890ABCDEFGH"
PASSWORD = "correct-horse-battery-7"
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowSecretBody12345678\n" * 20 + "-----END RSA PRIVATE KEY-----"
SECRETS = (TOKEN[4:], PASSWORD, "MIIEowSecretBody12345678")
RESULT = f'deploy host\npostgres://admin:{PASSWORD}@db/x\n{KEY}\npassword = "{PASSWORD}"\nafterwards ' + "x " * 3000


@pytest.fixture
def agent(remora: Remora, shop: Path, tmp_path: Path) -> Iterator[str]:
    """An imported conversation with secrets in everything that is said, called and returned."""
    log = tmp_path / "chat.jsonl"
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "deploy", "arguments": json.dumps({"token": TOKEN, "where": f"x {TOKEN}"})},
    }
    messages = [
        {"role": "user", "content": f"Deploy with {TOKEN} now"},
        {"role": "assistant", "content": f"I use {TOKEN}", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": RESULT},
        {"role": "assistant", "content": f"Done with {TOKEN} and {KEY}"},
    ]
    log.write_text(json.dumps({"messages": messages}))
    done = remora("trace", "import", str(log), "--packets", "--json")
    assert done.returncode == 0, done.stderr
    assert_redacted(done)
    yield json.loads(done.stdout)["streams"][0]["agent_id"]


def assert_redacted(done: subprocess.CompletedProcess[str]) -> None:
    assert [secret for secret in SECRETS if secret in done.stdout + done.stderr] == []


SHOWING = {
    "ls": ["ls"],
    "ls --json": ["ls", "--json"],
    "show": ["show", "AGENT"],
    "show --json": ["show", "AGENT", "--json"],
    "show --events": ["show", "AGENT", "--events"],
    "show --turn": ["show", "AGENT", "--turn", "1"],
    "show --turn --full": ["show", "AGENT", "--turn", "1", "--full"],
    "show --turn 2 --full": ["show", "AGENT", "--turn", "2", "--full"],
    "show --turn --events": ["show", "AGENT", "--turn", "1", "--events"],
    "show --turn --json": ["show", "AGENT", "--turn", "1", "--json"],
    "tail": ["tail", "AGENT"],
    "tail --json": ["tail", "AGENT", "--json"],
    "search": ["search", "deploy"],
    "search near": ["search", "afterwards"],
    "search --json": ["search", "deploy", "--json"],
    "get": ["get", "KEY"],
    "get --json": ["get", "KEY", "--json"],
    "replay": ["replay", "AGENT"],
    "replay --json": ["replay", "AGENT", "--json"],
    "explain": ["explain", "evidence", "AGENT"],
    "explain --json": ["explain", "recent_actions", "AGENT", "--json"],
    "transcript": ["transcript", "AGENT"],
    "transcript --full": ["transcript", "AGENT", "--full"],
    "transcript --json": ["transcript", "AGENT", "--json"],
    "escalate": ["escalate", "AGENT"],
    "escalate --json": ["escalate", "AGENT", "--json"],
    "what-if": ["what-if", "AGENT", "--style", "chat", "--diff"],
    "report": ["report", "AGENT"],
    "diff": ["diff", "AGENT", "AGENT"],
    "tokens": ["tokens", "AGENT"],
    "verify": ["verify"],
}


def words_of(name: str, agent: str, remora: Remora) -> list[str]:
    words = [agent if word == "AGENT" else word for word in SHOWING[name]]
    if "KEY" in words:
        words[words.index("KEY")] = json.loads(remora("trace", "search", "afterwards", "--json").stdout)[0]["key"]
    return ["trace", *words]


def around(secret: str, text: str) -> str:
    """The text around the secret; empty if it is not there."""
    at = text.find(secret)
    return text[max(at - 60, 0) : at + 60] if at >= 0 else ""


def test_no_reading_command_shows_what_looks_like_a_secret(remora: Remora, agent: str) -> None:
    leaks = {}
    for name in SHOWING:
        done = remora(*words_of(name, agent, remora))
        assert done.returncode in (0, 1), (name, done.stderr)
        found = [near for secret in SECRETS if (near := around(secret, done.stdout + done.stderr))]
        leaks |= {name: found} if found else {}
    assert leaks == {}


def test_a_tool_whose_name_looks_like_a_secret_is_redacted_too(remora: Remora, shop: Path, tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": f"use {TOKEN}", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
    ]
    log = tmp_path / "named.jsonl"
    log.write_text(json.dumps({"messages": messages}))
    agent = json.loads(remora("trace", "import", str(log), "--json").stdout)["streams"][0]["agent_id"]
    for command in (["transcript"], ["show"], ["show", "--events"], ["tail"], ["tokens"], ["report"]):
        for form in ([], ["--format", "json"] if command == ["report"] else ["--json"]):
            assert_redacted(remora("trace", *command, agent, *form))


@pytest.mark.parametrize("name", ["show --json", "tail --json", "transcript --full", "show --turn --full"])
def test_with_the_flag_everything_is_shown_as_recorded(remora: Remora, agent: str, name: str) -> None:
    redacted = remora(*words_of(name, agent, remora))
    assert "look like secrets are redacted: `--show-secrets` shows them" in redacted.stderr
    shown = remora(*words_of(name, agent, remora), "--show-secrets")
    assert TOKEN in shown.stdout
    assert "redacted" not in shown.stderr


def test_a_tail_with_the_flag_is_the_stream_byte_for_byte(remora: Remora, shop: Path, agent: str) -> None:
    (stream,) = (shop / ".agentfs" / "traces").glob("*.jsonl")
    assert remora("trace", "tail", agent, "--json", "--show-secrets").stdout == stream.read_text()


def test_redacting_changes_no_digest_and_no_proof(remora: Remora, agent: str) -> None:
    shown = json.loads(remora("trace", "replay", agent, "--json").stdout)
    exact = json.loads(remora("trace", "replay", agent, "--json", "--show-secrets").stdout)
    assert shown["first_difference"] is exact["first_difference"] is None
    assert shown["receipts"] == exact["receipts"] > 0
    assert remora("trace", "verify").returncode == 0


@pytest.fixture
def leaking(remora: Remora, shop: Path) -> Path:
    """A file with a token beside what agents change."""
    source = shop / "shop" / "pricing.py"
    source.write_text(f"import os\nKEY = '{TOKEN}'\n" + source.read_text())
    done = remora("analyze", "shop/pricing.py")
    assert done.returncode == 0, done.stderr
    assert_redacted(done)
    return source


def test_a_patch_in_a_pipe_is_exact_and_applies(remora: Remora, shop: Path, leaking: Path) -> None:
    patch = remora("diff").stdout
    assert TOKEN in patch
    assert TOKEN in json.loads(remora("diff", "--json").stdout)[0]["diff"]
    subprocess.run(["git", "apply", "-"], cwd=shop, input=patch, text=True, check=True)  # noqa: S607 (any git)
    assert TOKEN in leaking.read_text()


def on_a_terminal(folder: Path, *words: str) -> str:
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-c", "from remora.cli import main; main()", *words]
    process = subprocess.Popen(argv, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=dict(os.environ))
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # nobody holds the other end
            break
        shown += data
    os.close(ours)
    assert process.wait(60) == 0, shown
    return shown.decode()


def test_a_patch_on_a_terminal_is_redacted(shop: Path, leaking: Path) -> None:
    shown = on_a_terminal(shop, "diff")
    assert TOKEN not in shown
    assert "[redacted:github-token]" in shown
    assert "--show-secrets" in shown
    assert TOKEN in on_a_terminal(shop, "diff", "--show-secrets")


def test_every_command_that_reads_streams_has_the_flag(remora: Remora) -> None:
    without: list[Any] = []
    for words in (["trace", name.split()[0]] for name in SHOWING):
        if words[1] in ("report", "diff", "tokens", "verify"):
            continue  # reports and comparisons are redacted always; the others show no text
        help_text = remora(*words, "--help").stdout
        without += [] if "--show-secrets" in help_text else [words]
    assert without == []
