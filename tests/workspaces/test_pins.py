"""What an agent has read stays for it as it was, and is the base of what it writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remora.errors import WorkspaceError
from remora.ports import Written
from remora.workspaces import OverlayWorkspace, _pins

BASE = b"one\ntwo\nthree\nfour\nfive\n"
SAVED = b"saved\n"


@pytest.fixture
def workspace(project: Path) -> OverlayWorkspace:
    return OverlayWorkspace(project, project / ".agentfs/workspaces/AGENT")


async def test_a_file_that_was_read_stays_as_it_was(workspace: OverlayWorkspace, project: Path) -> None:
    assert await workspace.read("src/a.py") == BASE
    (project / "src/a.py").write_bytes(SAVED)
    assert await workspace.read("./src/a.py") == BASE
    assert workspace.look("src/a.py") == BASE
    (project / "src/a.py").unlink()
    assert await workspace.read("src/a.py") == BASE
    assert await workspace.exists("src/a.py")


async def test_a_save_between_read_and_write_is_not_the_base(workspace: OverlayWorkspace, project: Path) -> None:
    await workspace.read("src/a.py")
    (project / "src/a.py").write_bytes(SAVED)
    await workspace.write("src/a.py", b"new\n")
    assert workspace.take_changes() == (Written("src/a.py", BASE, b"new\n"),)


@pytest.mark.parametrize("how", ["exists", "read"])
async def test_a_file_that_was_not_there_stays_away(workspace: OverlayWorkspace, project: Path, how: str) -> None:
    if how == "exists":
        assert not await workspace.exists("src/new.py")
    else:
        with pytest.raises(FileNotFoundError):
            await workspace.read("src/new.py")
    (project / "src/new.py").write_bytes(SAVED)
    assert not await workspace.exists("src/new.py")
    with pytest.raises(FileNotFoundError):
        await workspace.read("src/new.py")
    await workspace.write("src/new.py", b"new\n")
    assert workspace.take_changes() == (Written("src/new.py", None, b"new\n"),)


@pytest.mark.parametrize("by", ["write", "rename", "old times"])
async def test_a_file_saved_after_the_agent_began_must_be_read_before_it_is_written(
    workspace: OverlayWorkspace, project: Path, by: str
) -> None:
    place = project / "src/a.py"
    if by == "rename":
        place.with_suffix(".saving").write_bytes(SAVED)
        place.with_suffix(".saving").replace(place)
    else:
        place.write_bytes(SAVED)
    if by == "old times":
        os.utime(place, (0, 0))
    for _ in range(2):
        with pytest.raises(WorkspaceError, match="read it first"):
            await workspace.write("src/a.py", b"new\n")
        # Reading and writing in one call: nobody has seen what was saved.
        await workspace.read("src/a.py")
        with pytest.raises(WorkspaceError, match="read it first"):
            await workspace.write("src/a.py", b"new\n")
        assert workspace.take_changes() == ()
    assert await workspace.read("src/a.py") == SAVED
    assert workspace.take_changes() == ()
    await workspace.write("src/a.py", b"new\n")
    assert workspace.take_changes() == (Written("src/a.py", SAVED, b"new\n"),)


async def test_a_file_saved_before_the_agent_began_may_be_overwritten(project: Path) -> None:
    for number in range(20):
        (project / "src/a.py").write_bytes(b"%d" % number)
        workspace = OverlayWorkspace(project, project / f".agentfs/workspaces/{number}")
        await workspace.write("src/a.py", b"new\n")
        assert workspace.take_changes() == (Written("src/a.py", b"%d" % number, b"new\n"),)


async def test_the_file_that_an_agent_is_given_may_be_written_whenever_it_was_saved(
    workspace: OverlayWorkspace, project: Path
) -> None:
    (project / "src/a.py").write_bytes(SAVED)
    assert await workspace.pin("src/a.py") == SAVED
    await workspace.write("src/a.py", b"new\n")
    assert workspace.take_changes() == (Written("src/a.py", SAVED, b"new\n"),)


async def test_an_agent_that_was_interrupted_may_not_change_what_was_saved_since_it_began(project: Path) -> None:
    began = (project / "src/a.py").stat().st_ctime_ns
    for name in ("b.py", "c.py"):
        (project / "src" / name).write_bytes(SAVED)
    workspace = OverlayWorkspace(project, project / ".agentfs/workspaces/AGENT")
    await workspace.restore({"src/c.py": b"mine\n"}, began_ns=began + 1)
    await workspace.read("src/b.py")
    workspace.take_changes()
    with pytest.raises(WorkspaceError, match="interrupted: it may not be changed"):
        await workspace.write("src/b.py", b"new\n")
    await workspace.write("src/a.py", b"new\n")
    await workspace.write("src/c.py", b"newer\n")
    assert workspace.take_changes() == (Written("src/a.py", BASE, b"new\n"), Written("src/c.py", b"mine\n", b"newer\n"))


async def test_searching_does_not_hold_files(workspace: OverlayWorkspace, project: Path) -> None:
    assert workspace.look("src/a.py") == BASE
    (project / "src/a.py").write_bytes(SAVED)
    assert workspace.look("src/a.py") == SAVED


async def test_commands_are_given_what_was_saved_since_as_the_agent_read_it(
    workspace: OverlayWorkspace, project: Path
) -> None:
    (project / "src/b.py").write_bytes(b"b\n")
    await workspace.read("src/a.py")
    await workspace.read("src/b.py")
    assert workspace.moved() == {}
    (project / "src/a.py").write_bytes(SAVED)
    assert workspace.moved() == {"src/a.py": BASE}
    (project / "src/b.py").unlink()
    (project / "src/b.py").symlink_to("a.py")
    assert workspace.moved() == {"src/a.py": BASE, "src/b.py": b"b\n"}
    await workspace.write("src/a.py", b"new\n")
    assert workspace.moved() == {"src/b.py": b"b\n"}


async def test_what_is_too_large_to_be_held_is_refused_once_it_was_saved(
    workspace: OverlayWorkspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pins, "MAX_PINNED", 30)
    (project / "src/b.py").write_bytes(b"b" * 20)
    await workspace.read("src/a.py")
    assert await workspace.read("src/b.py") == await workspace.read("src/b.py") == b"b" * 20
    assert workspace.take_changes() == ()
    (project / "src/b.py").write_bytes(SAVED)
    with pytest.raises(WorkspaceError, match="too large for its previous content to be kept"):
        await workspace.read("src/b.py")
    with pytest.raises(WorkspaceError, match="too large for its previous content to be kept"):
        await workspace.write("src/b.py", b"new\n")


async def test_how_many_files_may_be_read_is_bounded(
    workspace: OverlayWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pins, "MAX_PINS", 3)
    for number in range(3):
        assert not await workspace.exists(f"{number}.py")
    with pytest.raises(WorkspaceError, match="too many to read: the limit is 3"):
        await workspace.exists("3.py")
    assert not await workspace.exists("2.py")
