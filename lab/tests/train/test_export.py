"""Rows from traces: what proved right is exported as it was sent, and nothing else."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from remora.app import Project, open_project
from remora.config import Config, RunnerConfig, ServerConfig
from remora.errors import ConfigError, MissingExtra
from remora.events import (
    AgentEndEvent,
    AgentFinishedEvent,
    AgentStartEvent,
    Call,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    PacketDelta,
    SubmitResultEvent,
    ToolResultEvent,
    WorkspaceAcceptedEvent,
    WorkspaceRejectedEvent,
)
from remora.subagent import SUBMIT_RESULT
from remora_lab.cli._train import train
from remora_lab.train import export_rows, read_verdicts, rows_of_stream, run_training

SHOP = Path(__file__).parents[3] / "examples" / "shop"
LOOK = {"name": "look", "parameters": {"type": "object", "properties": {}}}


async def no_blobs(name: str) -> bytes:
    raise AssertionError(name)


def turn(number: int, call: Call, *, outcome: str = "success", told: tuple[str, ...] = ()) -> list[Event]:
    """The events of one turn with one call."""
    asked = ({"role": "system", "content": "s"}, {"role": "user", "content": f"turn {number}"})
    request = ModelRequestEvent(messages=asked, offered=("look", "submit_result"), renderer="json-2", turn=number)
    reply = ModelResponseEvent(calls=(call,), turn=number)
    if call.tool == "submit_result":
        return [request, reply, SubmitResultEvent(call_id=call.call_id, turn=number)]
    result = {"call_id": call.call_id, "tool": call.tool, "outcome": outcome, "delta": PacketDelta(diagnostics=told)}
    return [request, reply, ToolResultEvent.model_validate({**result, "turn": number})]


def stream(*turns: list[Event], outcome: str = "success") -> list[Event]:
    start = AgentStartEvent(agent_id="a", operation="lint", tools=(LOOK, SUBMIT_RESULT.model_dump()))
    end = AgentEndEvent.model_validate({"outcome": outcome})
    return [start, *(event for each in turns for event in each), end]


def call(number: int, tool: str = "look", **args: object) -> Call:
    return Call(call_id=f"c{number}", tool=tool, args=args)


async def test_calls_that_failed_or_repeated_themselves_are_left_out() -> None:
    events = stream(
        turn(1, call(1)),
        turn(2, call(2), outcome="error"),
        turn(3, call(3), told=("Same call, same result, 2 times: look {}",)),
        turn(4, call(4, "submit_result", summary="[secret:KEY] done")),
        turn(5, call(5, "unknown")),
        turn(6, call(6, "submit_result", summary="done")),
    )
    rows = await rows_of_stream(events, no_blobs)
    assert [(row.id, row.answer) for row in rows] == [
        ("a/1", '{"tool":"look","args":{}}'),
        ("a/6", '{"tool":"submit_result","args":{"summary":"done"}}'),
    ]
    assert await rows_of_stream(stream(turn(1, call(1)), outcome="partial"), no_blobs) == []
    assert await rows_of_stream(events[:-1], no_blobs) == []


def test_an_agent_proved_right_by_its_check_or_without_one_by_a_person() -> None:
    known = read_verdicts(
        [
            AgentFinishedEvent(agent_id="clean", check={"before": 2, "after": 0}),
            AgentFinishedEvent(agent_id="left", check={"before": 2, "after": 1}),
            AgentFinishedEvent(agent_id="unchecked"),
            AgentFinishedEvent(agent_id="taken"),
            WorkspaceAcceptedEvent(agent_id="taken"),
            WorkspaceAcceptedEvent(agent_id="left"),
            AgentFinishedEvent(agent_id="refused", check={"before": 2, "after": 0}),
            WorkspaceRejectedEvent(agent_id="refused"),
        ]
    )
    names = ("clean", "left", "unchecked", "taken", "refused")
    assert [name for name in names if known.good(name)] == ["clean", "taken"]


@pytest.fixture
async def project(tmp_path: Path) -> Project:
    """A project in which the lint agent has run on one file."""
    root = shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns(".agentfs"))
    config = Config(server=ServerConfig(server="first-candidate"), runner=RunnerConfig(by_rule=False))
    app = Project(root, root / ".agentfs", config)
    plan = app.runs.plan([root / "shop" / "report.py"], ["lint"])
    async for _ in app.runs.run(plan):
        pass
    return app


async def test_the_prompts_of_a_run_are_exported_as_they_were_sent(project: Project, tmp_path: Path) -> None:
    done = await export_rows(project, [project.library.runs()[-1].stem], tmp_path / "rows.jsonl")
    rows = [orjson.loads(line) for line in (tmp_path / "rows.jsonl").read_bytes().splitlines()]
    assert 0 < done.used <= done.streams
    assert len(rows) == done.counts.rows > 0
    first = rows[0]
    agent, _, number = first["id"].rpartition("/")
    (receipt,) = [
        event
        for event in project.library.events(agent)
        if isinstance(event, ModelRequestEvent) and str(event.turn) == number
    ]
    assert first["messages"][-1] == receipt.messages[-1]
    assert "Tools:" in first["messages"][0]["content"]
    assert orjson.loads(first["answer"])["tool"] in receipt.offered
    (one,) = {agent}
    only = await export_rows(project, [one], tmp_path / "one.jsonl")
    assert only.streams == 1


async def test_a_project_without_verified_agents_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="0 agents were looked at") as caught:
        await export_rows(open_project(tmp_path), [], tmp_path / "rows.jsonl")
    assert "--unproven" in str(caught.value.hint)


def test_the_command_line_writes_rows_of_made_up_agents(tmp_path: Path) -> None:
    out = tmp_path / "synthetic.jsonl"
    done = CliRunner().invoke(train, ["rows", "--synthetic", "20", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert orjson.loads(done.stdout)["rows"] == len(out.read_bytes().splitlines()) == 20


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_training_without_torch_names_the_extra(tmp_path: Path) -> None:
    for name in ("model.gguf", "rows.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(MissingExtra, match="torch"):
        run_training(tmp_path / "model.gguf", [tmp_path / "rows.jsonl"], tmp_path / "out")


def test_making_up_rows_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remora_lab.cli._train.ROWS_A_LINE", 10)
    wanted = ["rows", "--variety", "25", "--out", str(tmp_path / "r.jsonl"), "--chats", str(tmp_path / "c.jsonl")]
    done = CliRunner().invoke(train, wanted)
    told = [line for line in " ".join(done.stderr.split()).split(str(tmp_path)) if "of 25 made-up rows" in line]
    assert [line.strip(" /") for line in told] == [
        "r.jsonl: 10 of 25 made-up rows", "r.jsonl: 20 of 25 made-up rows",
        "c.jsonl: 10 of 25 made-up rows", "c.jsonl: 20 of 25 made-up rows",
    ]  # fmt: skip
