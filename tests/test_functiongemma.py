"""The specification's runner, as its own test uses it, and with the real tools of a bundled agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
