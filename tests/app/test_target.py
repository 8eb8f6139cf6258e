"""What an agent works on is its file as it was when the agent began, whenever the run was planned."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

import remora
from projects import leave_out_plugins
from remora.app import Project
from remora.events import AgentStartEvent
from remora.ports import AgentResult

SOURCE = "import os\n\n\ndef one():\n    import sys\n    return 1\n"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "off")
    root = tmp_path / "project"
    root.mkdir()
    (root / "remora.yaml").write_text("")
    leave_out_plugins(root)
    (root / "a.py").write_text(SOURCE)
    return remora.open_project(root, {"server.server": "scripted"})


def saved_meanwhile(app: Project, save: Callable[[Path], object]) -> AgentResult:
    """The result for the function, where its file is saved between the plan and the run."""

    async def run() -> list[AgentResult]:
        plan = app.runs.plan([app.root / "a.py"], ["lint"], lambda node: node.name == "one")
        assert pickle.loads(pickle.dumps(plan.jobs)) == plan.jobs  # noqa: S301 - our own, just made
        save(app.root / "a.py")
        return [result async for result in app.runs.run(plan)]

    (result,) = asyncio.run(run())
    return result


def started(app: Project, result: AgentResult) -> AgentStartEvent:
    first = next(iter(app.library.events(result.agent_id)))
    assert isinstance(first, AgentStartEvent)
    return first


def test_a_node_that_moved_since_the_plan_is_worked_on_where_it_is(app: Project) -> None:
    moved = "# mine\n# mine too\n" + SOURCE
    result = saved_meanwhile(app, lambda file: file.write_text(moved))
    node = started(app, result).node
    assert (node["lines"], node["owned"]) == ([6, 8], [[6, 8]])
    assert node["sha256"] == sha256(moved.encode()).hexdigest()
    assert result.verdict == "clean"
    assert not [each.conflict for each in asyncio.run(app.review.accept()) if each.conflict]
    assert (app.root / "a.py").read_text() == moved.replace("    import sys\n", "")


@pytest.mark.parametrize(
    ("save", "told"),
    [
        (lambda file: file.write_text("import os\n"), "`a.py:one` is no longer in its file"),
        (lambda file: file.write_bytes(SOURCE.encode() + b"# \xff\n"), "`a.py:one` is no longer in its file"),
        (lambda file: file.unlink(), "`a.py` can no longer be read"),
        (lambda file: (file.unlink(), file.mkdir()), "`a.py` can no longer be read"),
    ],
)
def test_a_node_that_is_gone_since_the_plan_is_not_worked_on(
    app: Project, save: Callable[[Path], object], told: str
) -> None:
    result = saved_meanwhile(app, save)
    assert (result.outcome, result.reason) == ("error", "TargetChanged")
    assert told in result.summary
    assert result.files == ()
    assert not [report for report in app.library.verify() if report.problem]


def test_a_file_that_begins_with_a_mark_is_the_same_file(app: Project) -> None:
    (app.root / "a.py").write_bytes(b"\xef\xbb\xbf" + SOURCE.encode())
    result = saved_meanwhile(app, lambda file: None)
    assert started(app, result).node["sha256"] == sha256((app.root / "a.py").read_bytes()).hexdigest()
