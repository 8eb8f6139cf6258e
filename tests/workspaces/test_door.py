from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remora.errors import WorkspaceError
from remora.workspaces import Door

HOSTILE = [
    "",
    "/",
    ".",
    "..",
    "../secret",
    "../../secret",
    "src/../../secret",
    "src/..",
    "/etc/passwd",
    "//etc/passwd",
    "src/a.py/",
    "src/\0a",
    "\0",
    "src/\ud800",
    "x" * 5000,
    "/".join(["d"] * 5000),
    ".git/config",
    "src/.git/hooks/pre-commit",
    ".GIT/config",
    ".agentfs/traces/x",
    ".AgentFS/x",
    "link/secret",
    "src/link",
    "src/loop",
    "src/pipe",
    "src/absolute",
]


@pytest.fixture
def trapped(project: Path) -> Path:
    """The project, with links and other traps laid out in it."""
    (project / "link").symlink_to("..")
    (project / "src/link").symlink_to("../../secret")
    (project / "src/absolute").symlink_to(project.parent / "secret")
    (project / "src/loop").symlink_to("loop")
    (project / ".git").mkdir()
    (project / ".git/config").write_text("secret")
    os.mkfifo(project / "src/pipe")
    return project


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: ascii(path)[:40])
def test_a_hostile_path_leads_nowhere(trapped: Path, path: str) -> None:
    door = Door(trapped)
    with pytest.raises((WorkspaceError, FileNotFoundError)):
        door.read(path)
    with pytest.raises(WorkspaceError):
        door.write(path, b"evil", mode=0o644)
    assert (trapped.parent / "secret").read_text() == "secret"
    assert (trapped / ".git/config").read_text() == "secret"
    assert not list(trapped.rglob("*.remora"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(["..", ".", "", "/", "a", "src", "link", "a.py", "\0", "…", "\n"]), max_size=8))
def test_no_path_whatever_writes_outside(trapped: Path, parts: list[str]) -> None:
    path = "/".join(parts)
    door = Door(trapped)
    with contextlib.suppress(WorkspaceError, OSError):
        door.write(path, b"evil", mode=0o600)
    outside = [entry for entry in trapped.parent.iterdir() if entry != trapped]
    assert [entry.name for entry in outside] == ["secret"]
    assert outside[0].read_text() == "secret"


def test_a_folder_swapped_for_a_link_meanwhile_is_not_followed(project: Path) -> None:
    """Every read gives the project's file or is refused, whoever moves the folder about."""
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("secret")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(project / "src", project / "kept")
            os.symlink(outside, project / "src")
            os.unlink(project / "src")
            os.rename(project / "kept", project / "src")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(3000):
            try:
                assert b"secret" not in Door(project).read("src/a.py")
            except (WorkspaceError, FileNotFoundError):
                continue
    finally:
        stop.set()
        swapping.join()


def test_a_write_never_goes_through_a_hard_link(project: Path) -> None:
    os.link(project.parent / "secret", project / "hard")
    door = Door(project)
    door.write("hard", b"evil", mode=0o644)
    assert (project.parent / "secret").read_text() == "secret"
    assert (project / "hard").read_text() == "evil"


def test_a_file_where_a_folder_must_be_is_told(project: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"`a\.py` is a file"):
        Door(project).stage("src/a.py/b.py", b"", mode=0o644)
    with pytest.raises(FileNotFoundError):
        Door(project).read("src/a.py/b.py")


def test_a_file_over_the_limit_is_not_read(project: Path) -> None:
    with pytest.raises(WorkspaceError, match="the limit is 3"):
        Door(project).read("src/a.py", limit=3)
