"""Runs as users have them: rules decide what needs no decision, and agents of one run build on each other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from projects import leave_out_plugins
from remora.app import Project, open_project
from remora.errors import ConfigError
from remora.events import AgentScheduledEvent, AgentStartEvent, ModelRequestEvent
from remora.orchestrator import FIRST
from remora.ports import AgentResult
from remora.trace import read_events

SOURCE = '''import json, os


def load(path):
    if path == None:
        return f"nothing"
    return json.loads(path)


def twice(number):
    """Return the number twice."""
    return number * 2
'''
SAFE = SOURCE.replace("import json, os", "import json")
"""The `f` of a text without values stays: no linter is set up, so it is a matter of taste."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_rule: None) -> Project:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "'off'")
    root = tmp_path / "project"
    root.mkdir()
    (root / "remora.yaml").touch()
    leave_out_plugins(root)
    (root / "load.py").write_text(SOURCE)
    return open_project(root, settings={"server.server": "first-candidate"})


def analyze(project: Project, *operations: str) -> list[AgentResult]:
    return asyncio.run(project.runs.analyze([project.root / "load.py"], operations))


def test_a_file_is_fixed_safely_as_one_change_and_nobody_is_asked(project: Project) -> None:
    results = analyze(project, "lint")
    (first,) = [result for result in results if result.stage == FIRST]
    assert (first.verdict, first.check["before"], first.check["after"]) == ("partial", 2, 1)
    assert first.why.endswith("decided by rule")
    assert [(result.node_id, result.verdict) for result in results if result.verdict == "unsafe"] == [
        ("load.py:load", "unsafe")
    ]
    streams = [list(read_events(path)) for path in (project.state_dir / "traces").glob("*.jsonl")]
    assert not [event for stream in streams for event in stream if isinstance(event, ModelRequestEvent)]


def test_unsafe_fixes_are_shown_and_accepted_only_by_name(project: Project) -> None:
    results = analyze(project, "lint")
    (unsafe,) = [result for result in results if result.verdict == "unsafe"]
    assert unsafe.agent_id in {diff.summary.agent_id for diff in asyncio.run(project.review.diff())}
    asyncio.run(project.review.accept())
    assert (project.root / "load.py").read_text() == SAFE
    assert "may alter behaviour" in project.changes.notices[-1]
    (taken,) = asyncio.run(project.review.accept(unsafe.agent_id))
    assert not taken.conflict
    assert (project.root / "load.py").read_text() == SAFE.replace("path == None", "path is None")


def test_an_unsafe_fix_needs_the_safe_ones_that_it_builds_on(project: Project) -> None:
    (unsafe,) = [result for result in analyze(project, "lint") if result.verdict == "unsafe"]
    (refused,) = asyncio.run(project.review.accept(unsafe.agent_id))
    assert "builds on changes of other agents that are not accepted" in refused.conflict


def test_two_operations_of_one_run_do_not_conflict(project: Project) -> None:
    results = analyze(project, "lint", "docstring")
    taken = asyncio.run(project.review.accept())
    assert not [each.conflict for each in taken if each.conflict]
    text = (project.root / "load.py").read_text()
    assert "import json\n" in text
    written = [result for result in results if result.operation == "docstring" and result.files]
    assert len(taken) == 1 + len(written)
    (run,) = project.library.runs()
    scheduled = [event for event in read_events(run) if isinstance(event, AgentScheduledEvent)]
    again = [event for event in scheduled if event.over and event.operation == "docstring"]
    assert again
    assert not any(event.after for event in again), "it can be accepted without the lint fixes"


def test_another_operations_changes_can_be_accepted_alone(project: Project) -> None:
    written = [each for each in analyze(project, "lint", "docstring") if each.operation == "docstring" and each.files]
    for each in written:
        (taken,) = asyncio.run(project.review.accept(each.agent_id))
        assert not taken.conflict
    assert "import json, os" in (project.root / "load.py").read_text()


def test_a_file_without_problems_is_checked_once_for_all_of_its_functions(project: Project) -> None:
    (project.root / "load.py").write_text(SAFE.replace("path == None", "path is None"))
    results = analyze(project, "lint")
    (first,) = [result for result in results if result.stage == FIRST]
    for result in results:
        events = list(read_events(project.state_dir / "traces" / f"{result.agent_id}.jsonl"))
        assert isinstance(events[0], AgentStartEvent)
        assert events[0].check == ({} if result is first else {"before": 0, "by": first.agent_id})
        assert ("tool_result" in {event.type for event in events}) == (result is first)
        said = "No lint errors" if result is first else "nothing to do"
        assert (result.verdict, result.why) == ("clean", f"{said}, decided by rule")
    assert not project.library.verify().damaged


def test_code_that_needs_nothing_has_the_checks_own_reason(project: Project) -> None:
    (project.root / "load.py").write_text("def _load(path):\n    return path\n")
    (result,) = analyze(project, "docstring")
    assert result.why == "Left without a docstring: it is private, decided by rule"


def test_one_function_can_be_named(project: Project) -> None:
    plan = project.runs.plan([Path(f"{project.root / 'load.py'}:twice")], ["lint"])
    assert [job.node.node_id for job in plan.jobs] == ["load.py:twice"]
    with pytest.raises(ConfigError, match=r"There is no `thrice` in .*: it has `load`, `twice`"):
        project.runs.plan([Path(f"{project.root / 'load.py'}:thrice")], ["lint"])


def test_an_interrupted_run_goes_on_with_the_same_stages(project: Project) -> None:
    whole = analyze(project, "lint")
    (run,) = project.library.runs()
    lines = run.read_bytes().splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if b'"agent_finished"' in line)
    run.write_bytes(b"".join(lines[:place]))  # killed before the first agent's end was recorded
    (project.state_dir / "heads.log").unlink()
    first = min(result.agent_id for result in whole)
    for path in (project.state_dir / "traces").glob("*.jsonl"):
        if path.stem != first:
            path.unlink()

    async def resume() -> list[AgentResult]:
        return [result async for result in project.runs.resume()[1]]

    again = {result.agent_id: result for result in asyncio.run(resume())}
    assert {key: (each.verdict, each.files) for key, each in again.items()} == {
        result.agent_id: (result.verdict, result.files) for result in whole
    }
