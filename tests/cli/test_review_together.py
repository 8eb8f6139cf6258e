"""Several at once, and after a crash: what the app promises about accepts and restored files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from remora import workspaces
from remora.app import Project
from remora.config import Config

Json = Callable[..., Any]


def open_project(shop: Path) -> Project:
    app = Project(shop, shop / ".agentfs", Config())
    app.changes.settle()
    return app


def accepts(shop: Path) -> list[str]:
    lines = [line for run in (shop / ".agentfs/runs").glob("*.jsonl") for line in run.read_bytes().splitlines()]
    return [event["agent_id"] for event in map(json.loads, lines) if event["type"] == "workspace_accepted"]


async def together(shop: Path) -> list[Any]:
    return await asyncio.gather(*(open_project(shop).review.accept() for _ in range(3)), return_exceptions=True)


def test_accepts_at_the_same_time_wait_for_each_other(shop: Path, remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/cart.py")
    count = len([item for item in remora_json("diff") if not item["unsafe"]])
    done = asyncio.run(together(shop))
    assert sorted(len(each) for each in done) == [0, 0, count]
    assert len(accepts(shop)) == len(set(accepts(shop))) == count


def test_without_the_lock_they_are_caught(shop: Path, analyzed: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def never_locked(_: Path) -> Any:
        yield True

    analyzed("shop/cart.py")
    monkeypatch.setattr(workspaces, "locked", never_locked)
    done = asyncio.run(together(shop))
    wrong = [each for each in done if isinstance(each, BaseException)]
    assert wrong or len(accepts(shop)) != len(set(accepts(shop)))


def test_the_files_of_any_turn_come_back_from_the_stream(shop: Path, analyzed: Json) -> None:
    run = analyzed("shop/report.py")
    agent = max(run["agents"], key=lambda each: len(each["files"]))["agent_id"]
    upper = shop / ".agentfs/workspaces" / agent
    last = {path.relative_to(upper).as_posix(): path.read_bytes() for path in upper.rglob("*") if path.is_file()}
    app = open_project(shop)

    async def restored(turn: int | None) -> dict[str, bytes]:
        return await app.review.restore(agent, turn=turn)

    assert last
    assert asyncio.run(restored(None)) == last
    assert asyncio.run(restored(0)) == {}
    (upper / "junk").write_text("left by a crash")
    for path in last:
        (upper / path).write_text("half a wri")
    workspace = workspaces.OverlayWorkspace(shop, upper)
    asyncio.run(workspace.restore(asyncio.run(restored(None))))
    assert {
        path.relative_to(upper).as_posix(): path.read_bytes() for path in upper.rglob("*") if path.is_file()
    } == last


def test_a_change_that_was_cut_off_is_finished_recorded_and_told_by_the_next_command(
    shop: Path, remora: Any, remora_json: Json, analyzed: Json
) -> None:
    analyzed("shop/pricing.py")
    agent = remora_json("diff")[0]["agent_id"]
    app = open_project(shop)

    async def interrupted() -> None:
        async def lost(*_: Any) -> None:
            raise KeyboardInterrupt

        app.changes._record = lost  # type: ignore[assignment, method-assign]
        await app.review.accept(agent)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interrupted())
    assert app.changes.is_cut_off
    assert accepts(shop) == []
    assert "was cut off" in remora("diff", agent).stderr
    done = remora("accept", agent)
    assert "has been finished" in done.stderr
    assert accepts(shop) == [agent]
