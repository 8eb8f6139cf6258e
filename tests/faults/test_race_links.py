"""Row 19: symbolic links, hard links and races in read, write, listing and accept. A real process does the swapping."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remora.errors import WorkspaceError
from remora.workspaces import Change, Door, OverlayWorkspace, forget, settle, take

SECRET = b"outside"
INSIDE = b"inside\n"

SWAPPER = """
import os, sys
root, outside = sys.argv[1:]
os.chdir(root)
while True:
    os.rename("src", "kept"); os.symlink(outside, "src"); os.unlink("src"); os.rename("kept", "src")
    os.rename("src/a.py", "src/kept"); os.symlink(outside + "/a.py", "src/a.py"); os.unlink("src/a.py")
    os.rename("src/kept", "src/a.py")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for folder in (root / "src", tmp_path / "outside", tmp_path / "state"):
        folder.mkdir(parents=True)
    (root / "src/a.py").write_bytes(INSIDE)
    (tmp_path / "outside/a.py").write_bytes(SECRET)
    (tmp_path / "outside/only.py").write_bytes(SECRET)
    return root


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """Meanwhile another process puts links in place of the folder and of the file, and takes them away again."""
    command = [sys.executable, "-c", SWAPPER, str(root), str(root.parent / "outside")]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def one_round(root: Path, number: int, leaks: list[str]) -> int:
    """Reads, writes, lists and accepts once. Gives how many of them came through."""
    state = root.parent / "state"
    workspace = OverlayWorkspace(root, state / "workspaces/AGENT")
    through = 0

    def attempt(what: str, work: Callable[[], object]) -> None:
        nonlocal through
        try:
            found = work()
        except (WorkspaceError, OSError):
            return
        through += 1
        if SECRET in repr(found).encode() or "only.py" in repr(found):
            leaks.append(what)

    attempt("read", lambda: asyncio.run(workspace.read("src/a.py")))
    attempt("list", lambda: asyncio.run(workspace.list_dir("src")))
    attempt("files", lambda: asyncio.run(workspace.files()))
    attempt("write", lambda: asyncio.run(workspace.write("src/a.py", b"%d" % number)))
    attempt("accept", lambda: _accept(root, state, number))
    outside = root.parent / "outside"
    if {path.name: path.read_bytes() for path in outside.iterdir()} != {"a.py": SECRET, "only.py": SECRET}:
        leaks.append("something outside was changed")
    return through


def _accept(root: Path, state: Path, number: int) -> None:
    try:
        take(
            root, state, [Change(f"src/new{number}.py", None, b"new\n"), Change("src/a.py", INSIDE, INSIDE + b"more\n")]
        )
        forget(state)
        take(root, state, [Change("src/a.py", INSIDE + b"more\n", INSIDE)])
    finally:
        settle(root, state)
        forget(state)


@pytest.mark.parametrize("seconds", [1.5, pytest.param(60, marks=pytest.mark.faults)])
def test_no_race_leads_outside(project: Path, seconds: float, record_property: Callable[[str, object], None]) -> None:
    leaks: list[str] = []
    rounds = through = 0
    with swapping(project):
        end = time.monotonic() + seconds
        while time.monotonic() < end or rounds < 20:
            through += one_round(project, rounds, leaks)
            rounds += 1
    record_property("row 19", f"{seconds:g} s race, {rounds} rounds, {through} came through: {len(leaks)} leaks")
    assert not leaks
    assert through, "nothing ever came through: the test tests nothing"


def test_looking_first_and_opening_then_is_caught(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake that the door exists for."""

    def read(self: Door, path: str, *, limit: int = 0) -> bytes:
        file = self.root / path
        if not file.resolve().is_relative_to(self.root):
            raise WorkspaceError("leads outside")
        return file.read_bytes()

    monkeypatch.setattr(Door, "read", read)
    with swapping(project):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if Door(project).read("src/a.py") == SECRET:
                    return
            except (WorkspaceError, OSError):
                continue
    pytest.fail("the seeded mistake was not seen")


def test_a_link_in_place_of_a_file_is_neither_read_nor_written_through(project: Path) -> None:
    state = project.parent / "state"
    (project / "src/link.py").symlink_to(project.parent / "outside/a.py")
    (project / "linked").symlink_to(project.parent / "outside")
    for path in ("src/link.py", "linked/a.py", "linked/new.py"):
        with pytest.raises((WorkspaceError, FileNotFoundError)):
            Door(project).read(path)
        with pytest.raises(WorkspaceError):
            take(project, state, [Change(path, None, b"evil"), Change("src/a.py", INSIDE, b"new")])
        forget(state)
    assert (project / "src/a.py").read_bytes() == INSIDE
    assert (project.parent / "outside/a.py").read_bytes() == SECRET


def test_an_accept_breaks_a_hard_link_instead_of_writing_through_it(project: Path) -> None:
    state, other = project.parent / "state", project.parent / "other.py"
    os.link(project / "src/a.py", other)
    take(project, state, [Change("src/a.py", INSIDE, b"new\n")])
    assert (project / "src/a.py").read_bytes() == b"new\n"
    assert other.read_bytes() == INSIDE


SAVER = """
import itertools, os, sys
file = sys.argv[1]
for number in itertools.count():
    new = file + ".tmp"
    with open(new, "wb") as out: out.write(b"saved %d\\n" % number)
    with open(file + ".log", "ab", buffering=0) as log: log.write(b"saved %d\\n" % number)
    os.rename(new, file)
    for _ in range(number % 997): pass
"""


@pytest.mark.parametrize("seconds", [1.0, pytest.param(30, marks=pytest.mark.faults)])
def test_what_an_editor_saves_during_an_accept_is_still_there(
    project: Path, seconds: float, record_property: Callable[[str, object], None]
) -> None:
    """An accept gives the file that it expected, or the editor's; after a refusal ours is never in its place."""
    state, file = project.parent / "state", project / "src/a.py"
    refused = taken = wrong = 0
    with subprocess.Popen([sys.executable, "-c", SAVER, str(file)]) as process:
        end = time.monotonic() + seconds
        while time.monotonic() < end or refused + taken < 20:
            before = file.read_bytes()
            try:
                done = take(project, state, [Change("src/a.py", before, b"ours, over " + before)])
            except WorkspaceError:
                refused += 1
                wrong += file.read_bytes().startswith(b"ours")
            else:
                taken += 1
                wrong += done.changes[0].base != before
            forget(state)
        process.kill()
    record_property("row 19", f"{taken} accepts, {refused} refused while an editor saved: {wrong} wrong")
    assert not wrong
    assert refused
