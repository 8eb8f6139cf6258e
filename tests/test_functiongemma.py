"""The specification's runner, as its own test uses it, and with the real tools of a bundled agent."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

import remora
from remora.errors import ConfigError
from remora.events import ModelRequestEvent, ModelResponseEvent
from remora.runner import AgentError, FunctionGemmaRunner
from remora.testing import (
    make_ctx,
    make_definition,
    make_node,
    make_runner_config,
    make_server_config,
    patch_openai,
    tool_call_message,
)
from remora.trace import read_events, user_state_home
from sandbox.boxes import no_plugins


def runner(**changes: Any) -> FunctionGemmaRunner:
    parts = {
        "definition": make_definition(),
        "node": make_node(),
        "ctx": make_ctx(),
        "server_config": make_server_config(),
        "runner_config": make_runner_config(),
    }
    return FunctionGemmaRunner(**(parts | changes))


class Executor:
    """Gives the contract, as a script would."""

    async def execute(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {
            "result": {"errors": []},
            "summary": "No errors found",
            "knowledge_delta": {"lint_errors": 0},
            "outcome": "success",
        }


async def test_the_context_manager_follows_the_tool_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = patch_openai(
        monkeypatch,
        responses=[tool_call_message("run_linter", {}), tool_call_message("submit_result", {"summary": "Done"})],
    )
    agent = runner(grail_executor=Executor())
    result = await agent.run()
    packet = agent.context_manager.packet
    assert (result.outcome, result.summary, packet.turn, agent.turn_count) == ("success", "Done", 2, 2)
    assert [action.summary for action in packet.recent_actions] == ["No errors found"]
    assert packet.knowledge["lint_errors"].value == 0
    assert "No errors found" in asked[1]["messages"][-1]["content"]
    assert [message["role"] for message in agent.messages] == ["user", "assistant", "tool", "assistant"]


async def test_without_an_executor_the_real_tools_of_that_agent_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "remora.yaml").touch()
    (tmp_path / "cart.py").write_text("import os\n")
    node = make_node("import os\n", file_path="cart.py", name="cart.py", node_id="cart.py", node_type="file")
    patch_openai(
        monkeypatch,
        responses=[tool_call_message("run_linter", {}), tool_call_message("submit_result", {"summary": "Done"})],
    )
    agent = runner(node=node, root=tmp_path, state_dir=tmp_path / ".agentfs")
    await agent.run()
    assert agent.context_manager.packet.knowledge["lint_errors_remaining"].value == 1
    assert (tmp_path / ".agentfs" / "traces" / "01TESTAGENT.jsonl").exists()


async def test_no_result_is_an_agent_error_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_openai(monkeypatch, responses=[tool_call_message("run_linter", {})] * 3)
    with pytest.raises(AgentError) as caught:
        await runner(grail_executor=Executor(), definition=make_definition(max_turns=3)).run()
    assert caught.value.code == "max_turns"


BUNDLED = ("lint", "docstring", "sample_data", pytest.param("test", marks=pytest.mark.faults))


@pytest.mark.parametrize("name", BUNDLED)
async def test_it_runs_every_bundled_agent_with_its_defaults_as_analyze_does(
    name: str, tmp_path: Path, by_rule: None
) -> None:
    (tmp_path / "remora.yaml").touch()
    (tmp_path / "pytest.ini").write_text(no_plugins("xdist"))
    (tmp_path / "cart.py").write_text("import os\n\n\ndef total(prices):\n    return sum(prices)\n")
    project = remora.open_project(tmp_path, {"server.server": "first-candidate", "runner.max_turns": 3})
    job = project.runs.plan([tmp_path / "cart.py"], [name]).jobs[0]
    results = await project.runs.analyze([tmp_path], [name])
    analyzed = next(one for one in results if one.node_id == job.node.node_id)
    agent = runner(
        definition=project.agents.load([name])[name].definition,
        node=job.node,
        ctx=make_ctx("01SAME", operation=name, node_id="elsewhere.py:other"),
        server_config=make_server_config(server="first-candidate"),
        runner_config=make_runner_config(max_turns=3),
        root=tmp_path,
        state_dir=tmp_path / ".agentfs",
    )
    with contextlib.suppress(AgentError):
        await agent.run()
    mine, theirs = (turns_of(tmp_path, agent_id) for agent_id in ("01SAME", analyzed.agent_id))
    assert mine == theirs
    assert mine
    assert agent.context_manager.packet.node_id == job.node.node_id


def turns_of(root: Path, agent_id: str) -> list[object]:
    """Every prompt, and every decision of a model or a rule."""
    found: list[object] = []
    for event in read_events(root / ".agentfs" / "traces" / f"{agent_id}.jsonl"):
        if isinstance(event, ModelRequestEvent):
            found.append(event.prompt_sha256)
        elif isinstance(event, ModelResponseEvent):
            found.append((event.rule, [(call.tool, call.args) for call in event.calls]))
    return found


async def test_the_projects_secrets_never_reach_its_stream(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "hunter2-hunter2")

    class Leaks:
        async def execute(self, *_: Any) -> dict[str, Any]:
            return {"summary": "the key is hunter2-hunter2"}

    (tmp_path / "remora.yaml").touch()
    patch_openai(
        monkeypatch,
        responses=[tool_call_message("run_linter", {}), tool_call_message("submit_result", {"summary": "Done"})],
    )
    await runner(grail_executor=Leaks(), root=tmp_path, state_dir=tmp_path / ".agentfs").run()
    assert b"hunter2" not in (tmp_path / ".agentfs" / "traces" / "01TESTAGENT.jsonl").read_bytes()


async def test_what_is_not_kept_leaves_no_record_of_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (tmp_path / "remora.yaml").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("home")))  # other tests use the common one
    patch_openai(monkeypatch, responses=[tool_call_message("submit_result", {"summary": "Done"})])
    before = states()
    await runner(grail_executor=Executor(), root=tmp_path).run()
    assert states() == before
    assert [path.name for path in tmp_path.iterdir()] == ["remora.yaml"]


def states() -> set[Path]:
    return set((user_state_home() / "states").glob("*.json"))


async def test_an_agent_without_scripts_needs_an_executor(tmp_path: Path) -> None:
    (tmp_path / "remora.yaml").touch()
    with pytest.raises(ConfigError, match="no agent `unheard`"):
        await runner(definition=make_definition(name="unheard"), root=tmp_path).run()
