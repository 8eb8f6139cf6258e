"""One change of the project at a time, never over what someone saved, and able to go on after a kill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from remora.errors import WorkspaceConflict, WorkspaceError
from remora.workspaces import Change, Door, OverlayWorkspace, _swap, forget, load, locked, settle, take

BASE = b"one\ntwo\nthree\nfour\nfive\n"
SAVED = b"saved just now\n"


@pytest.fixture
def state(project: Path) -> Path:
    folder = project / ".agentfs"
    folder.mkdir(mode=0o700)
    return folder


def files(project: Path) -> dict[str, bytes]:
    found = [path for path in project.rglob("*") if path.is_file() and ".agentfs" not in path.parts]
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in found}


CHANGES = [Change("src/b.py", None, b"b\n"), Change("src/a.py", BASE, b"new\n")]


@pytest.mark.parametrize(
    ("method", "change"),
    [("swap", CHANGES[1]), ("move_in", Change("src/c.py", None, b"c\n")), ("move_out", Change("src/a.py", BASE, None))],
)
def test_a_save_between_the_look_and_the_rename_stays(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch, method: str, change: Change
) -> None:
    original: Callable[..., None] = getattr(Door, method)

    def saving_first(self: Door, path: str, staged: str) -> None:
        if path == change.path and not (project / "saved").exists():
            (project / path).write_bytes(SAVED)
            (project / "saved").touch()
        original(self, path, staged)

    monkeypatch.setattr(Door, method, saving_first)
    with pytest.raises(WorkspaceConflict):
        take(project, state, [CHANGES[0], change])
    (project / "saved").unlink()
    assert files(project) == {"src/a.py": BASE} | {change.path: SAVED}
    assert load(state) is None


def test_where_the_system_cannot_swap_names_the_result_is_the_same(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_swap, "_rename", lambda *_: False)
    take(project, state, [*CHANGES, Change("new/c.py", None, b"c")])
    forget(state)
    assert files(project) == {"src/a.py": b"new\n", "src/b.py": b"b\n", "new/c.py": b"c"}
    take(project, state, [Change("src/b.py", b"b\n", None)])
    assert files(project) == {"src/a.py": b"new\n", "new/c.py": b"c"}


def test_only_one_may_change_the_project(state: Path) -> None:
    with locked(state) as first, locked(state) as second:
        assert (first, second) == (True, False)
    with locked(state) as again:
        assert again


def test_the_journal_is_private_and_one_that_cannot_be_read_is_told(project: Path, state: Path) -> None:
    take(project, state, CHANGES)
    assert (state / "accept.json").stat().st_mode & 0o777 == 0o600
    for text in (b"", b"{}", b"[]", b'{"v": 2}', b"\xff"):
        (state / "accept.json").write_bytes(text)
        with pytest.raises(WorkspaceError, match="is not valid"):
            settle(project, state)


def test_what_came_between_phases_is_settled(project: Path, state: Path) -> None:
    take(project, state, CHANGES)
    journal = load(state)
    assert journal is not None
    assert journal.phase == "put"
    found = settle(project, state)
    assert found is not None
    assert found.taken is not None
    assert [change.path for change in found.taken.changes] == ["src/b.py", "src/a.py"]
    replace(journal, phase="staging").save(state)
    found = settle(project, state)
    assert found is not None
    assert found.taken is None
    assert load(state) is None
    assert settle(project, state) is None


def test_an_undo_removes_the_folders_that_were_made_unless_they_hold_more(project: Path, state: Path) -> None:
    made = take(project, state, [Change("x/y/z.py", None, b"z")]).made
    assert made == ("x", "x/y")
    (project / "x/mine.py").write_text("mine")
    take(project, state, [Change("x/y/z.py", b"z", None)], drop=made)
    assert not (project / "x/y").exists()
    assert (project / "x/mine.py").exists()


async def test_a_restored_workspace_holds_exactly_what_it_is_given(project: Path, state: Path) -> None:
    workspace = OverlayWorkspace(project, state / "workspaces/AGENT")
    await workspace.write("src/a.py", b"later")
    await workspace.write("junk/b.py", b"junk")
    (workspace.upper / "link").symlink_to("/etc")
    await workspace.restore({"src/a.py": b"then", "src/./c.py": b"c"})
    assert await workspace.files() == ["src/a.py", "src/c.py"]
    assert await workspace.read("src/a.py") == b"then"
    assert workspace.take_changes() == ()
    assert {path.name for path in workspace.upper.rglob("*")} == {"src", "a.py", "c.py"}
    assert all(
        path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600) for path in workspace.upper.rglob("*")
    )
    with pytest.raises(WorkspaceError):
        await workspace.restore({"../x": b""})


async def test_the_mode_of_a_change_is_that_of_the_projects_file(project: Path, state: Path) -> None:
    (project / "src/a.py").chmod(0o755)
    workspace = OverlayWorkspace(project, state / "workspaces/AGENT")
    await workspace.write("src/a.py", b"1")
    await workspace.write("src/new.py", b"2")
    assert [(change.path, change.mode) for change in workspace.take_changes()] == [
        ("src/a.py", 0o755),
        ("src/new.py", 0o644),
    ]


async def test_one_file_has_one_name_however_it_is_spelt(project: Path, state: Path) -> None:
    workspace = OverlayWorkspace(project, state / "workspaces/AGENT")
    await workspace.write("src/a.py", b"1")
    await workspace.write("./src//a.py", b"2")
    assert [change.path for change in workspace.take_changes()] == ["src/a.py"]


@pytest.mark.parametrize("after", [b"new\n", None])
def test_a_file_that_the_user_made_read_only_is_not_written(project: Path, state: Path, after: bytes | None) -> None:
    (project / "src/a.py").chmod(0o444)
    with pytest.raises(WorkspaceError, match=r"`src/a.py` is read-only\. Nothing was written.*chmod u\+w src/a.py"):
        take(project, state, [Change("src/b.py", None, b"b\n"), Change("src/a.py", BASE, after)])
    assert files(project) == {"src/a.py": BASE}
    assert (project / "src/a.py").stat().st_mode & 0o777 == 0o444
    assert load(state) is None
    (project / "src/a.py").chmod(0o644)
    take(project, state, [Change("src/a.py", BASE, after)])
    assert files(project) == ({} if after is None else {"src/a.py": after})


@pytest.mark.parametrize("path", ["src/a.py", "src/b.py", "src/new/b.py"])
def test_in_a_folder_that_the_user_made_read_only_nothing_is_written(project: Path, state: Path, path: str) -> None:
    (project / "src").chmod(0o555)
    base = BASE if path == "src/a.py" else None
    with pytest.raises(WorkspaceError, match=rf"`src` is read-only, so `{path}` cannot be written.*chmod u\+w src`"):
        take(project, state, [Change(path, base, b"new\n")])
    assert files(project) == {"src/a.py": BASE}
    (project / "src").chmod(0o755)
    take(project, state, [Change(path, base, b"new\n")])
    assert (project / path).read_bytes() == b"new\n"
