from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import remora
from remora.app import Project
from remora.config import Config, config_values
from remora.context._summaries import BUILT_IN
from remora.context.summarizers import (
    FALLBACK,
    Imported,
    LinterSummarizer,
    Summarized,
    Summarizer,
    SummarizerRegistry,
    Unguarded,
    distill,
    is_built_in,
    summarize_guarded,
)
from remora.errors import ConfigError, DefinitionError
from remora.events import Call
from remora.sandbox import installed_summarizers
from remora.subagent import parse_definition

YAML = """
name: probe
goal: Look at {node}
system_prompt: Look.
tools: [{name: run_tests}, {name: look}]
summarizers: {run_tests: NAME}
"""


class Mine(Summarizer):
    def summarize(self, raw_result: Any) -> str:
        return f"mine: {raw_result}"


def test_every_built_in_summarizer_has_its_name() -> None:
    names = ["auto", "diff", "file", "json", "junit", "listing", "mypy", "pytest", "ruff", "text", "traceback"]
    assert sorted(BUILT_IN) == names
    assert all(SummarizerRegistry().get(name) is BUILT_IN[name] for name in names)


def test_a_summarizer_registered_in_python_is_known_by_its_name() -> None:
    registry = SummarizerRegistry()
    mine = Mine()
    registry.register("mine", mine)
    assert registry.for_agent({"look": "mine"})["look"] is mine


def test_a_built_in_name_cannot_be_taken() -> None:
    with pytest.raises(ConfigError, match="`ruff` is the name of a built-in summarizer"):
        SummarizerRegistry().register("ruff", Mine())


def test_installed_packages_are_asked_only_for_a_name_nobody_else_has() -> None:
    asked: list[str] = []

    def installed() -> dict[str, str]:
        asked.append("asked")
        return {"theirs": "no_such_package.module:Theirs"}

    registry = SummarizerRegistry(installed)
    registry.get("ruff")
    assert asked == []
    theirs = registry.get("theirs")
    assert isinstance(theirs, Imported)
    assert theirs.path == "no_such_package.module:Theirs"


def test_entry_points_of_installed_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[remora.summarizers]\ntheirs = theirs.module:Theirs\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_summarizers() == {"theirs": "theirs.module:Theirs"}


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r"`rufff` is not known: expected one of `auto`, `diff`.*`theirs`, `traceback`"
    ):
        SummarizerRegistry(lambda: {"theirs": "a:b"}).get("rufff")


def test_an_agent_names_its_summarizers() -> None:
    definition = parse_definition(YAML.replace("NAME", "pytest"), "subagent.yaml")
    chosen = SummarizerRegistry().for_agent(definition.summarizers)
    assert chosen["run_tests"] is BUILT_IN["pytest"]
    assert isinstance(chosen["run_linter"], LinterSummarizer)


def test_in_mode_fallback_names_are_checked_and_not_used() -> None:
    assert SummarizerRegistry().for_agent({"run_tests": "pytest"}, "fallback") == {}
    with pytest.raises(ConfigError, match="is not known"):
        SummarizerRegistry().for_agent({"run_tests": "nobody"}, "fallback")


def test_the_mode_is_a_setting() -> None:
    values = config_values("runner: {memory: {summarizer_mode: fallback}}", "remora.yaml", of_repository=True)
    assert Config.model_validate(values).runner.memory.summarizer_mode == "fallback"
    with pytest.raises(DefinitionError, match="summarizer_mode"):
        config_values("runner: {memory: {summarizer_mode: clever}}", "remora.yaml", of_repository=True)


@pytest.mark.parametrize("path", ["my_package.module:MyClass", "os.system", "a:b", "''"])
def test_an_import_path_in_a_definition_needs_trust(path: str) -> None:
    assert parse_definition(YAML.replace("NAME", path), "subagent.yaml").needs_trust() == ["$.summarizers.run_tests"]


def test_a_summarizer_for_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(DefinitionError, match="tool `no_tool` is used but not listed"):
        parse_definition(YAML.replace("run_tests: NAME", "no_tool: pytest"), "subagent.yaml")


def summarized(tool: str, value: Any, fallback: Summarizer | None = FALLBACK, **known: Summarizer) -> str:
    made = asyncio.run(summarize_guarded(tool, value, known, Unguarded(), fallback))
    action = distill(tool, value, made).delta.action
    assert action is not None
    return action.summary


def test_the_order_is_own_then_registered_then_generic() -> None:
    assert summarized("look", {"summary": "own", "stdout": "a"}, look=Mine()) == "own"
    assert summarized("look", {"result": "a"}, look=Mine()) == "mine: a"
    assert summarized("look", {"result": "a\nb"}) == "2 lines: a"
    assert summarized("look", {"result": "a\nb"}, fallback=None) == "Executed look"


@pytest.mark.parametrize("value", [{"found": 3}, {}, None, 3, {"result": {"found": 3}}])
def test_a_result_without_text_keeps_the_guides_line(value: Any) -> None:
    assert summarized("look", value) == "Executed look"


def test_a_subclass_of_a_built_in_one_is_not_built_in() -> None:
    class Sly(LinterSummarizer):
        pass

    assert is_built_in(LinterSummarizer())
    assert not is_built_in(Sly())
    assert not is_built_in(Imported("a:b"))


def test_excerpts_of_a_summarizer_reach_the_packet_and_misfits_are_told() -> None:
    made = Summarized("s", {}, [{"label": "a", "text": "x", "start_line": 3}])
    assert distill("look", "raw", made).delta.excerpts[0].start_line == 3
    assert distill("look", {"excerpts": []}, made).delta.excerpts == ()
    wrong = distill("look", "raw", Summarized("s", {}, [{"label": 1}])).delta
    assert wrong.excerpts == ()
    assert "excerpts of look were dropped" in wrong.diagnostics[0]


async def test_two_tracks_sum_up_plain_text_by_its_shape(tmp_path: Path) -> None:
    async with remora.TwoTrack(goal="g", state_dir=tmp_path) as tt:
        await tt.request()
        await tt.call(
            Call(call_id="1", tool="check", args={}), lambda: {"stdout": "Success: no issues found in 1 source file"}
        )
        packet = tt.packet
    assert packet.recent_actions[0].summary == "No type errors in 1 file"
    assert packet.knowledge["type_errors"].value == 0
    assert packet.excerpts == []


@pytest.mark.parametrize(
    ("name", "problem"), [("nobody", "`nobody` is not known"), ("local", "cannot run in a child process")]
)
def test_an_agent_with_an_unusable_summarizer_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, problem: str
) -> None:
    class Local(Mine):
        pass

    agent = tmp_path / "agents" / "probe"
    (agent / "tools").mkdir(parents=True)
    (agent / "subagent.yaml").write_text(YAML.replace("NAME", name))
    for tool in ("run_tests", "look"):
        (agent / "tools" / f"{tool}.pym").write_text("1\n")
    monkeypatch.setattr("remora.app._agents.bundled_agents", lambda: tmp_path / "agents")
    app = Project(tmp_path, tmp_path / ".agentfs", Config())
    app.agents.summarizers.register("local", Local())
    with pytest.raises(ConfigError, match=problem):
        app.runs.plan([tmp_path], ["probe"], "scripted")
