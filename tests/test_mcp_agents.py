"""Agents whose tools are an MCP server's: trust, both tracks, crashes, Ctrl-C, keys and budgets, with real servers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import remora
from cli.conftest import PATIENT
from mcp_client.conftest import command, is_gone
from remora.context.projection import project as fold
from remora.errors import ConfigError, DefinitionError, MissingExtra
from remora.events import Event, ToolCallEvent, ToolResultEvent
from remora.ports import AgentResult

Write = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("SHOP_LOG", str(tmp_path / "orders"))
    (tmp_path / "own").mkdir(mode=0o700)
    root = tmp_path / "project"
    (root / "agents" / "buyer").mkdir(parents=True)
    (root / "remora.yaml").touch()
    (root / "a.py").write_text("def f():\n    return 1\n")
    return root


def write_agent(project: Path, *calls: dict[str, Any], server: dict[str, Any] | None = None, **more: Any) -> None:
    """An agent that makes these calls. Its tools are those it calls."""
    tools = dict.fromkeys(call["tool"] for call in calls)
    definition = {
        "name": "buyer",
        "goal": "Buy what {node} needs",
        "system_prompt": "Use the tools.",
        "tools": [{"name": name, "mcp": "shop"} for name in tools],
        "mcp": {"shop": server or {"command": command("stdio")}},
        "candidate_actions": list(calls),
        "script": ["candidates", *list(tools)[1:], "submit_result"],
        **more,
    }
    (project / "agents" / "buyer" / "subagent.yaml").write_text(yaml.safe_dump(definition))


def write_own_settings(project: Path, **server: Any) -> None:
    file = project.parent / "own" / "config.yaml"
    file.write_text(yaml.safe_dump({"mcp": {"shop": {"command": command("stdio"), **server}}}))


def run(project: Path, *, trusted: bool = True) -> tuple[AgentResult, list[Event]]:
    opened = remora.open_project(project, {"server.server": "scripted"})
    if trusted:
        opened.agents.trust(project / "agents")
    (result,) = asyncio.run(opened.runs.analyze([project / "a.py"], ["buyer"]))
    return result, list(opened.library.events(result.agent_id))


def results(events: list[Event]) -> list[ToolResultEvent]:
    return [event for event in events if isinstance(event, ToolResultEvent)]


def test_nothing_of_a_repository_runs_before_it_is_trusted(project: Path) -> None:
    marker = project.parent / "ran"
    write_agent(project, {"tool": "stock"}, server={"command": ["/bin/touch", str(marker)]})
    with pytest.raises(DefinitionError, match=r"\$.tools\[0\].mcp: needs trust") as caught:
        run(project, trusted=False)
    assert "$.mcp.shop: needs trust" in caught.value.message
    assert not marker.exists()


def test_a_repository_cannot_define_servers_in_its_settings(project: Path) -> None:
    (project / "remora.yaml").write_text("mcp: {shop: {url: 'https://shop.example/mcp', api_key_env: HOME}}\n")
    with pytest.raises(ConfigError, match=r"\$.mcp: a repository may not set this"):
        remora.open_project(project)


@pytest.mark.parametrize("extra", [{"env": ["HOME"]}, {"api_key_env": "HOME"}])
def test_a_definition_cannot_hand_keys_to_its_server(project: Path, extra: dict[str, Any]) -> None:
    write_agent(project, {"tool": "stock"}, server={"command": ["server"], **extra})
    with pytest.raises(DefinitionError, match=r"\$.mcp.shop\.\w+: unknown key"):
        run(project)


def test_outputs_become_evidence_and_never_knowledge_or_candidates(project: Path) -> None:
    write_agent(project, {"tool": "forge"})
    result, events = run(project)
    assert result.outcome == "success"
    types = [event.type for event in events]
    assert types.index("tool_call") < types.index("tool_result")
    (call,) = [event for event in events if isinstance(event, ToolCallEvent)]
    assert call.effects == "outside"
    (told,) = results(events)
    assert told.parsed["knowledge_delta"] == {"password": "hunter2"}
    packet = fold(events)
    assert "password" not in packet.knowledge
    assert not packet.candidate_actions
    assert "hunter2" in packet.model_dump_json(include={"evidence"})


def test_a_definitions_server_gets_the_trusted_files_and_no_keys(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-12345678")
    write_agent(project, {"tool": "environment"})
    (project / "agents" / "buyer" / "prices.txt").write_text("cup 3\n")
    told = json.loads(results(run(project)[1])[0].raw)
    assert "SHOP_API_KEY" not in told["names"]
    assert told["files"] == ["prices.txt", "subagent.yaml"]
    assert not Path(told["folder"]).exists()
    assert not Path(told["folder"]).is_relative_to(project)


def test_a_server_of_your_own_settings_gets_the_keys_you_name_and_they_are_never_recorded(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-12345678")
    write_own_settings(project, env=["SHOP_API_KEY"])
    call = {"tool": "key", "args": {"name": "SHOP_API_KEY"}}
    write_agent(project, call, {"tool": "environment"}, server={"command": ["/bin/false"]})
    first, second = results(run(project)[1])
    assert first.raw == "the key is [secret:SHOP_API_KEY]"
    assert json.loads(second.raw)["files"] == []
    assert b"sk-12345678" not in b"".join(path.read_bytes() for path in project.rglob("*.jsonl"))


def test_a_fixed_argument_is_neither_seen_nor_set_by_the_model(project: Path) -> None:
    tools = [{"name": "stock", "mcp": "shop", "fixed": {"item": "{project}"}}]
    write_agent(project, {"tool": "stock", "args": {"least": 5}}, tools=tools)
    _, events = run(project)
    start = events[0].model_dump()
    assert start["tools"][0]["parameters"]["properties"] == {"least": {"type": "integer"}}
    (told,) = results(events)
    assert told.parsed == {"item_number": len(str(project)), "in_stock": 17}
    tools = [{"name": "stock", "mcp": "shop", "fixed": {"itme": "cup"}}]
    write_agent(project, {"tool": "stock"}, tools=tools)
    with pytest.raises(ConfigError, match="no argument `itme` to fix: expected one of `item`, `least`"):
        run(project)


def test_an_agent_names_only_servers_that_exist(project: Path) -> None:
    write_agent(project, {"tool": "stock"}, mcp={})
    with pytest.raises(ConfigError, match="uses the MCP server `shop`, which is not defined: expected one of none"):
        run(project)


def test_tools_that_do_not_fit_the_budget_are_refused_before_the_run(project: Path) -> None:
    write_agent(project, {"tool": "stock"}, {"tool": "order"}, {"tool": "essay"})
    (project / "remora.yaml").write_text("runner: {memory: {packet_size_limit: 300}}\n")
    with pytest.raises(ConfigError, match="Agent `buyer`") as caught:
        run(project)
    assert "List fewer tools of MCP servers" in str(caught.value.hint)
    assert not (project / ".agentfs" / "traces").exists()


def test_without_the_sdk_the_extra_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_agent(project, {"tool": "stock"})
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtra) as caught:
        run(project)
    assert "remora-agents[mcp]" in str(caught.value.hint)


def start_and_wait_for_the_call(project: Path) -> subprocess.Popen[bytes]:
    """A real process in the middle of a call with an effect outside."""
    orders = project.parent / "orders"
    write_own_settings(project, env=["SHOP_LOG"])
    write_agent(project, {"tool": "order", "args": {"item": "slow"}}, {"tool": "child"})
    remora.open_project(project).agents.trust(project / "agents")
    argv = [sys.executable, "-c", PATIENT, "analyze", "a.py", "-o", "buyer", "--server", "scripted"]
    process = subprocess.Popen(argv, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not orders.exists() and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def servers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """The server's process ids: children that run `servers.py`."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"servers.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.faults
def test_a_call_that_was_killed_is_never_repeated(project: Path) -> None:
    process = start_and_wait_for_the_call(project)
    (server,) = servers_of(process)
    process.kill()
    process.communicate()
    os.kill(server, signal.SIGKILL)  # its input has ended, but it sleeps
    opened = remora.open_project(project, {"server.server": "scripted"})

    async def resume() -> list[AgentResult]:
        return [result async for result in opened.runs.resume()[1]]

    (result,) = asyncio.run(resume())
    first, *_ = results(list(opened.library.events(result.agent_id)))
    assert first.outcome == "unknown"
    assert (project.parent / "orders").read_text() == "slow 1\n"


def test_ctrl_c_ends_the_server_and_seals_the_stream(project: Path) -> None:
    process = start_and_wait_for_the_call(project)
    (server,) = servers_of(process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert is_gone(server)
    (stream,) = (project / ".agentfs" / "traces").glob("*.jsonl")
    assert json.loads(stream.read_bytes().splitlines()[-1])["data"]["reason"] == "cancelled"
