"""Retention is off unless you set it, and then the next run carries it out without touching what is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from projects import leave_out_plugins
from remora.app import Project, open_project
from remora.errors import ConfigError
from remora.events import NoticeEvent
from remora.trace import read_events


def opened(tmp_path: Path, **retention: Any) -> Project:
    root = tmp_path / "project"
    if not root.exists():
        root.mkdir()
        (root / "remora.yaml").touch()
        (root / "a.py").write_text("import os\n")
        leave_out_plugins(root)
    settings = {"server.server": "first-candidate"} | {f"retention.{name}": value for name, value in retention.items()}
    return open_project(root, settings=settings)


async def run(project: Project) -> set[str]:
    done = await project.runs.analyze([project.root / "a.py"], ["lint"])
    return {result.agent_id for result in done}


async def test_the_next_run_deletes_old_streams_and_keeps_its_own_and_open_ones(tmp_path: Path) -> None:
    project = opened(tmp_path)
    first = await run(project)
    await project.review.reject()
    second = await run(project)
    limited = opened(tmp_path, keep_last=0)
    third = await run(limited)
    left = {info.agent_id for info in limited.library.agents()}
    assert left == second | third
    assert not left & first
    assert limited.runs.notices[0].startswith("retention: deleted ")
    assert "; kept " in limited.runs.notices[0]
    assert limited.runs.notices[0].endswith(" of runs with changes that are neither accepted nor rejected")


async def test_what_was_deleted_is_recorded_in_the_stream_of_the_run(tmp_path: Path) -> None:
    await run(opened(tmp_path))
    project = opened(tmp_path, keep_last=0)
    await project.review.reject()
    await run(project)
    newest = project.library.runs()[-1]
    (notice,) = (event for event in read_events(newest) if isinstance(event, NoticeEvent))
    assert (notice.code, notice.message) == ("retention", project.runs.notices[0])
    assert not project.library.verify().damaged


async def test_without_the_setting_nothing_is_deleted(tmp_path: Path) -> None:
    project = opened(tmp_path)
    first = await run(project)
    await project.review.reject()
    assert first <= {info.agent_id for info in project.library.agents()}
    assert project.runs.notices == []


def test_a_repository_cannot_turn_retention_on(tmp_path: Path) -> None:
    (tmp_path / "remora.yaml").write_text("retention:\n  keep_last: 0\n")
    with pytest.raises(ConfigError, match="retention"):
        open_project(tmp_path).config  # noqa: B018
