from __future__ import annotations

import stat
from pathlib import Path

import pytest

from remora.errors import WorkspaceError
from remora.ports import Written
from remora.workspaces import OverlayWorkspace


@pytest.fixture
def workspace(project: Path) -> OverlayWorkspace:
    return OverlayWorkspace(project, project / ".agentfs/workspaces/AGENT")


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_reads_fall_through_and_writes_stay_apart(workspace: OverlayWorkspace, project: Path) -> None:
    before = _tree(project)
    assert await workspace.read("src/a.py") == b"one\ntwo\nthree\nfour\nfive\n"
    assert _tree(project) == before
    await workspace.write("src/a.py", b"new\r\n")
    await workspace.write("src/new/b.py", b"b")
    assert await workspace.read("src/a.py") == b"new\r\n"
    assert await workspace.exists("src/new/b.py")
    assert not await workspace.exists("src/new")
    assert (project / "src/a.py").read_bytes() == b"one\ntwo\nthree\nfour\nfive\n"
    assert not (project / "src/new").exists()


async def test_what_was_written_is_private(workspace: OverlayWorkspace, project: Path) -> None:
    await workspace.write("src/new/b.py", b"b")
    for path in (project / ".agentfs/workspaces/AGENT").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


async def test_a_folder_that_all_users_share_keeps_its_mode(project: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    await OverlayWorkspace(project, shared / "AGENT").write("src/b.py", b"b")
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    assert stat.S_IMODE((shared / "AGENT").stat().st_mode) == 0o700


async def test_changes_are_taken_once_with_what_was_there_before(workspace: OverlayWorkspace) -> None:
    await workspace.write("src/a.py", b"1")
    await workspace.write("src/a.py", b"2")
    await workspace.write("src/b.py", b"b")
    original = b"one\ntwo\nthree\nfour\nfive\n"
    assert workspace.take_changes() == (Written("src/a.py", original, b"2"), Written("src/b.py", None, b"b"))
    assert workspace.take_changes() == ()
    await workspace.write("src/a.py", b"3")
    await workspace.write("src/b.py", b"b")
    assert workspace.take_changes() == (Written("src/a.py", b"2", b"3"),)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", ".git/config", ".agentfs/x", "src/a.py/b", "a\0"])
async def test_a_path_that_leads_elsewhere_is_refused(workspace: OverlayWorkspace, path: str) -> None:
    with pytest.raises(WorkspaceError):
        await workspace.write(path, b"x")
    with pytest.raises((WorkspaceError, FileNotFoundError)):
        await workspace.read(path)
    assert workspace.take_changes() == ()


async def test_two_workspaces_do_not_see_each_other(project: Path) -> None:
    one = OverlayWorkspace(project, project / ".agentfs/workspaces/1")
    two = OverlayWorkspace(project, project / ".agentfs/workspaces/2")
    await one.write("src/a.py", b"one")
    assert await two.read("src/a.py") != b"one"


async def test_what_may_be_written_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    workspace = OverlayWorkspace(
        tmp_path / "project", tmp_path / "state" / "workspaces" / "01A", max_file_bytes=4, max_files=2
    )
    await workspace.write("a", b"1234")
    with pytest.raises(WorkspaceError, match="the limit is 4"):
        await workspace.write("a", b"12345")
    await workspace.write("b", b"")
    await workspace.write("a", b"4321")
    with pytest.raises(WorkspaceError, match="one changed file too many"):
        await workspace.write("c", b"")
    assert await workspace.files() == ["a", "b"]


async def test_all_files_together_are_bounded_with_what_was_there_before(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "old").write_bytes(b"12345678")
    workspace = OverlayWorkspace(tmp_path / "project", tmp_path / "state" / "workspaces" / "01A", max_total_bytes=10)
    await workspace.write("a", b"1234")
    with pytest.raises(
        WorkspaceError, match=r"`old` would exceed the total size of changed files: the limit is 10 bytes"
    ):
        await workspace.write("old", b"")
    with pytest.raises(WorkspaceError, match="the limit is 10"):
        await workspace.write("b", b"1234567")
    workspace.take_changes()
    await workspace.write("a", b"12345")
    assert [change.path for change in workspace.take_changes()] == ["a"]


async def test_a_file_too_large_to_be_written_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "huge").write_bytes(b"12345")
    upper = tmp_path / "state" / "workspaces" / "01A"
    workspace = OverlayWorkspace(tmp_path / "project", upper, max_file_bytes=4)
    for attempt in (workspace.read("huge"), workspace.write("huge", b"")):
        with pytest.raises(WorkspaceError, match=r"`huge` has 5 bytes: the limit is 4"):
            await attempt
