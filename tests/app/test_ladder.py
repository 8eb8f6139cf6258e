"""A run on a ladder of real servers: what is opened when, what is sent where, and what the user must name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import remora
from inference.fakes import FakeServer, answer, by_path, call_part, calls_natively, chooses, says
from inference.real import smollm2
from projects import leave_out_plugins
from remora.analysis import replay
from remora.app import Project
from remora.config import RungConfig, RunnerConfig, ServerConfig
from remora.errors import ConfigError, ServerRefused, TraceLocked
from remora.events import EscalationEvent, Event, ModelRequestEvent, NoticeEvent, PacketUpdateEvent
from remora.runner import FunctionGemmaRunner
from remora.subagent import SubagentDefinition
from remora.testing import make_ctx
from remora.trace import read_events


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "'off'")
    (tmp_path / "remora.yaml").touch()
    leave_out_plugins(tmp_path)
    (tmp_path / "a.py").write_text("import os\n")
    return tmp_path


def opened(root: Path, *rungs: Any, **settings: Any) -> Project:
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return remora.open_project(root, {"escalation": list(rungs), "server.timeout_s": 5.0, **given})


async def events_of(project: Project, operation: str = "lint") -> list[Event]:
    results = await project.runs.analyze([project.root / "a.py"], [operation])
    return list(read_events(project.state_dir / "traces" / f"{results[0].agent_id}.jsonl"))


def moves(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.direction, event.rule) for event in events if isinstance(event, EscalationEvent)]


def native(tool: str, arguments: str = "{}") -> Any:
    return calls_natively(call_part(tool, arguments))


SUBMITS = native("submit_result", '{"summary": "ok"}')


def plain(*replies: Any) -> FakeServer:
    """A server that knows nothing but chat, and plays these replies, the last one for ever."""
    left = list(replies)

    def complete(wire: Any) -> None:
        if is_probe(wire.request):
            native("ready", '{"text": "ready"}')(wire)
            return
        (left[0] if len(left) == 1 else left.pop(0))(wire)

    models = answer({"object": "list", "data": [{"id": "big"}]})
    return FakeServer(by_path(v1__models=models, v1__chat__completions=complete))


def is_probe(request: Any) -> bool:
    """Whether the request only finds out what the server can do."""
    return bool(request.body) and request.body["messages"][0]["content"] == "Say: ready"


def chats(fake: FakeServer) -> list[Any]:
    asked = [request for request in fake.asked if request.path.endswith("chat/completions")]
    return [request for request in asked if not is_probe(request)]


async def test_a_model_that_only_looks_is_replaced_until_the_check_is_better(root: Path) -> None:
    small = plain(*[native("run_linter")] * 3, SUBMITS)
    large = plain(native("apply_fix", '{"code": "F401"}'))
    with small, large:
        project = opened(root, f"{small.url}#big", f"{large.url}#big")
        events = await events_of(project)
    assert moves(events) == [("up", "repeats"), ("down", "done")]
    asked = [event for event in events if isinstance(event, ModelRequestEvent)]
    assert [event.rung for event in asked] == [f"{small.url}#big"] * 3 + [f"{large.url}#big", f"{small.url}#big"]
    up = next(event for event in events if isinstance(event, EscalationEvent))
    assert up.model["url"] == large.url
    handed = str(chats(large)[0].body["messages"])
    assert "unused-import" in handed  # the raw output of the linter, which no summary holds


async def test_a_server_that_is_never_needed_is_never_asked(root: Path) -> None:
    small = plain(native("apply_fix", '{"code": "F401"}'), SUBMITS)
    large = plain(says("never"))
    with small, large:
        await events_of(opened(root, f"{small.url}#big", f"{large.url}#big"))
    assert large.asked == []


async def test_an_unreachable_rung_is_recorded_and_the_run_goes_on(root: Path) -> None:
    looks = [native("run_linter")] * 4
    small = plain(*looks, SUBMITS)
    with small:
        project = opened(root, f"{small.url}#big", "http://127.0.0.1:9/v1#gone")
        events = await events_of(project)
    told = [event.message for event in events if isinstance(event, NoticeEvent) and event.code == "escalation"]
    assert len(told) == 1
    assert "`http://127.0.0.1:9/v1#gone` cannot be used" in told[0]
    assert events[-1].type == "agent_end"


async def test_a_key_goes_only_to_its_own_server(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGE_KEY", "sk-large-0123456789")
    small = plain(*[native("run_linter")] * 3, SUBMITS)
    large = plain(native("apply_fix", '{"code": "F401"}'))
    with small, large:
        project = opened(root, f"{small.url}#big", {"model": f"{large.url}#big", "api_key_env": "LARGE_KEY"})
        events = await events_of(project)
    assert moves(events)
    assert all("sk-large" in request.headers.get("authorization", "") for request in large.asked)
    assert not any("sk-large" in str(request.headers) for request in small.asked)
    assert "sk-large" not in str([event.body() for event in events])


async def test_a_run_never_costs_more_than_its_price_limit(root: Path) -> None:
    looks = [native("run_linter")] * 4
    small = plain(*looks, SUBMITS)
    large = plain(says("too dear"))
    with small, large:
        dear = {"model": f"{large.url}#big", "price_in": 1000, "price_out": 1000}
        await events_of(opened(root, f"{small.url}#big", dear, runner__escalation__max_price=0.5))
    assert chats(large) == []


def write_settings(root: Path, text: str) -> None:
    (root / "remora.yaml").write_text(text)


@pytest.mark.parametrize(
    "setting",
    [
        "escalation: [smollm2-135m, 'https://evil.example/v1#m']",
        "runner: {escalation: {max_decisions: 1000}}",
        "runner: {escalation: {max_run_decisions: 1000}}",
        "runner: {escalation: {max_price: 1000}}",
        "runner: {escalation: {max_moves: 1000}}",
    ],
)
def test_a_repository_can_name_no_rung_and_raise_no_limit(root: Path, setting: str) -> None:
    write_settings(root, setting)
    with pytest.raises(ConfigError, match="a repository may not set this"):
        remora.open_project(root)


def test_a_repository_can_name_rules(root: Path) -> None:
    write_settings(root, "runner: {escalation: {errors: 1, ask: true}}")
    assert remora.open_project(root).config.runner.escalation.errors == 1


@pytest.mark.parametrize(
    ("rungs", "message"),
    [
        (["first-candidate", "no-such-model"], "`no-such-model` is not a rung of a ladder"),
        (["first-candidate", "http://127.0.0.1:9/v1"], "names no model"),
        (["first-candidate", "https://me:secret@example.com/v1#m"], "contains a user name or a key"),
        (["first-candidate", "first-candidate"], "twice"),
        (["server", "scripted"], "twice"),
    ],
)
def test_a_ladder_that_cannot_work_is_refused_before_anything_runs(root: Path, rungs: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        opened(root, *rungs, server__server="scripted").runs.plan([root], ["lint"])
    assert "secret" not in str(refused.value)


def test_a_price_limit_needs_the_price_of_every_server(root: Path) -> None:
    project = opened(root, "first-candidate", "https://example.com/v1#m", runner__escalation__max_price=1.0)
    with pytest.raises(ConfigError, match="has no price"):
        project.runs.plan([root], ["lint"])


def test_a_ladder_needs_the_packet(root: Path) -> None:
    project = opened(root, "first-candidate", "random", runner__memory__enabled=False)
    with pytest.raises(ConfigError, match="needs the packet"):
        project.runs.plan([root], ["lint"])


async def test_an_agents_definition_may_name_rules(root: Path) -> None:
    folder = root / "agents" / "mine"
    bundled = Path(remora.__file__).parents[2] / "agents" / "lint"
    folder.parent.mkdir()
    shutil.copytree(bundled, folder)
    text = (folder / "subagent.yaml").read_text().replace("name: lint\n", "name: mine\n")
    (folder / "subagent.yaml").write_text(f"{text}\nescalation: {{repeats: 1}}\n")
    small = plain(native("run_linter"), SUBMITS)
    large = plain(native("apply_fix", '{"code": "F401"}'))
    with small, large:
        events = await events_of(opened(root, f"{small.url}#big", f"{large.url}#big"), "mine")
    assert moves(events) == [("up", "repeats"), ("down", "done")]


def test_a_definition_cannot_name_a_model(root: Path) -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        SubagentDefinition(
            name="a", goal="g", system_prompt="s", tools=[{"name": "t"}], escalation={"models": ["https://evil#m"]}
        )


async def test_a_resume_takes_no_remote_rung_from_a_stream(root: Path) -> None:
    small = plain(SUBMITS)
    with small:
        await events_of(opened(root, "first-candidate", f"{small.url}#big"))
    with pytest.raises(ConfigError, match="which is not yours by your own settings"):
        remora.open_project(root).runs.settings_of()
    same = opened(root, "first-candidate", f"{small.url}#big")
    assert same.runs.settings_of()["escalation"] is None


async def test_a_resume_takes_a_local_ladder_from_the_run(root: Path) -> None:
    await events_of(opened(root, "first-candidate", "ollama#qwen3:4b"))
    assert remora.open_project(root).runs.settings_of()["escalation"] == ["first-candidate", "ollama#qwen3:4b"]


async def test_the_specifications_runner_climbs_the_same_ladder(root: Path) -> None:
    small = plain(*[native("run_linter")] * 3, SUBMITS)
    large = plain(native("apply_fix", '{"code": "F401"}'))
    project = remora.open_project(root)
    definition = project.agents.load(["lint"])["lint"].definition
    (node,) = [node for node in project.discovery().find([root / "a.py"]) if node.node_id == "a.py"]
    with small, large:
        runner = FunctionGemmaRunner(
            definition=definition,
            node=node,
            ctx=make_ctx(operation="lint"),
            server_config=ServerConfig(server=small.url, model="big", timeout_s=5),
            runner_config=RunnerConfig(by_rule=False),
            root=root,
            state_dir=root / ".agentfs",
            escalation=(RungConfig(model=f"{large.url}#big"),),
        )
        result = await runner.run()
    assert [row.rung for row in result.decisions] == [f"{small.url}#big", f"{large.url}#big"]
    assert (result.verdict, len(chats(large))) == ("clean", 1)


async def stuck(root: Path) -> tuple[Project, str]:
    """A sealed run that fixed nothing."""
    small = plain(native("run_linter"), SUBMITS)
    with small:
        project = remora.open_project(root, {"server.server": small.url, "server.model": "big"})
        (result,) = await project.runs.analyze([root / "a.py"], ["lint"])
    return project, result.agent_id


async def test_an_answer_is_a_stream_with_a_parent_and_changes_no_sealed_run(root: Path) -> None:
    project, agent = await stuck(root)
    before = (project.state_dir / "traces" / f"{agent}.jsonl").read_bytes()
    large = plain(native("apply_fix", '{"code": "F401"}'))
    with large:
        got = await project.escalations.ask(agent, f"{large.url}#big")
    assert (got.tool, got.args, got.given_back) == ("apply_fix", {"code": "F401"}, False)
    events = list(read_events(project.state_dir / "traces" / f"{got.agent_id}.jsonl"))
    parent = events[0].parent  # type: ignore[attr-defined]
    assert (parent["agent_id"], parent["relation"]) == (agent, "escalation")
    assert events[-1].type == "agent_end"
    assert (project.state_dir / "traces" / f"{agent}.jsonl").read_bytes() == before
    document = chats(large)[0].body["messages"][-1]["content"]
    assert "Fix lint errors in a.py" in document
    assert not project.library.verify().damaged


async def test_a_sealed_run_is_run_again_with_the_answer(root: Path) -> None:
    project, agent = await stuck(root)
    large = plain(native("apply_fix", '{"code": "F401"}'))
    with large:
        got = await project.escalations.ask(agent, f"{large.url}#big")
    again = remora.open_project(root, {"server.server": "first-candidate"})
    plan = again.runs.plan([root / "a.py"], ["lint"], answer=got.agent_id)
    (result,) = [each async for each in again.runs.run(plan)]
    events = list(read_events(again.state_dir / "traces" / f"{result.agent_id}.jsonl"))
    assert events[0].parent == {"agent_id": got.agent_id, "relation": "escalation"}  # type: ignore[attr-defined]
    (update,) = [event for event in events if isinstance(event, PacketUpdateEvent)]
    assert update.source == f"escalation {got.agent_id}"
    assert result.verdict == "clean"


async def test_an_answer_for_other_code_is_refused(root: Path) -> None:
    project, agent = await stuck(root)
    large = plain(says("Look at the imports"))
    with large:
        got = await project.escalations.ask(agent, f"{large.url}#big")
    assert got.advice == "Look at the imports"
    (root / "b.py").write_text("import sys\n")
    with pytest.raises(ConfigError, match="which this run does not include"):
        project.runs.plan([root / "b.py"], ["lint"], answer=got.agent_id)
    with pytest.raises(ConfigError, match="is not an answer"):
        project.runs.plan([root / "a.py"], ["lint"], answer=agent)


def cut_before(file: Path, mark: bytes) -> None:
    """Cut a stream before the first line with `mark`, as a crash would."""
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: next(place for place, line in enumerate(lines) if mark in line)]))


async def test_an_interrupted_run_continues_with_the_answer(root: Path) -> None:
    project, agent = await stuck(root)
    file = project.state_dir / "traces" / f"{agent}.jsonl"
    cut_before(file, b'"turn":2')
    cut_before(next((project.state_dir / "runs").glob("*.jsonl")), b'"type":"agent_finished"')
    (project.state_dir / "heads.log").unlink()
    large = plain(chooses("answer", advice="Remove the unused import"))
    with large:
        asking = opened(root, "first-candidate", {"model": f"{large.url}#big", "mode": "json"})
        got = await asking.escalations.ask(agent, f"{large.url}#big")
    assert got.given_back
    assert isinstance(list(read_events(file))[-1], PacketUpdateEvent)
    small = plain(native("apply_fix", '{"code": "F401"}'), SUBMITS)
    with small:
        again = remora.open_project(root, {"server.server": small.url, "server.model": "big"})
        _plan, results = again.runs.resume()
        (result,) = [each async for each in results]
    assert (result.agent_id, result.verdict) == (agent, "clean")
    assert "Remove the unused import" in str(chats(small)[0].body["messages"])
    assert replay(list(read_events(file))).first_difference is None


async def test_an_agent_that_is_running_is_not_asked_about(root: Path) -> None:
    project, agent = await stuck(root)
    cut_before(project.state_dir / "traces" / f"{agent}.jsonl", b'"turn":2')
    (project.state_dir / "heads.log").unlink()
    large = plain(says("never"))
    with large:
        async with project.writer() as writer:
            await writer.reopen(f"traces/{agent}")
            with pytest.raises(TraceLocked):
                await project.escalations.ask(agent, f"{large.url}#big")
    assert chats(large) == []


@pytest.mark.faults
async def test_the_real_small_model_hands_its_stuck_step_on(root: Path) -> None:
    gguf = smollm2()
    project = opened(
        root,
        str(gguf),
        "first-candidate",
        runner__escalation__no_progress=1,
        runner__max_turns=3,
        server__deadline_s=600,
    )
    events = await events_of(project)
    assert moves(events)[:1] == [("up", "no_progress")]
    rungs = [event.rung for event in events if isinstance(event, ModelRequestEvent)]
    assert rungs[:2] == [str(gguf), "first-candidate"]


async def test_a_model_that_gives_no_answer_leaves_a_stream_that_says_so(root: Path) -> None:
    project, agent = await stuck(root)
    large = plain(answer({"error": {"message": "no such key"}}, 401))
    with large, pytest.raises(ServerRefused):
        await project.escalations.ask(agent, f"{large.url}#big")
    (asked,) = [row for row in project.library.agents() if row.operation == "escalation"]
    assert asked.outcome == "error"
