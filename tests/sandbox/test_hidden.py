"""Version control and our own state are not seen by tests, at any depth."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from remora.errors import ToolFailed
from remora.ports import Completed
from remora.sandbox import LocalSpawner
from remora.sandbox._hidden import MAX_HIDDEN, Hidden, TooManyHidden
from remora.sandbox._jail._view import HIDDEN, copy_view
from sandbox.boxes import KINDS, any_box, box, no_plugins

ARGV = ["pytest", "-q", "-s", "--no-header", "-p", "no:cacheprovider"]
SECRET = "canary-of-a-repository"
LOOK = """
import os
for folder, folders, files in os.walk('.'):
    for name in files:
        path = os.path.join(folder, name)
        if 'conftest' not in name and 'canary' in open(path, errors='replace').read():
            print('LEAK', path)
print('LOOKED')
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with repositories in it, each with something that nobody else should read."""
    root = tmp_path / "project"
    for place in (".git", "sub/.git", "vendor/deep/er/.git", "vendor/.hg", "old/.svn", "new/.jj", "sub/.agentfs"):
        (root / place).mkdir(parents=True)
        (root / place / "config").write_text(f"token = {SECRET}\n")
    (root / "module").mkdir()
    (root / "module" / ".git").write_text(f"gitdir: ../store/{SECRET}\n")
    (root / "store" / SECRET).mkdir(parents=True)
    (root / "store" / SECRET / "config").write_text(f"token = {SECRET}\n")
    (root / "sub" / "code.py").write_text("VALUE = 1\n")
    (root / "test_a.py").write_text("def test_a():\n    from sub import code\n    assert code.VALUE == 1\n")
    (root / "conftest.py").write_text(LOOK)
    (root / "pytest.ini").write_text(no_plugins())
    return root


@pytest.mark.parametrize("kind", KINDS)
async def test_a_repository_inside_the_project_cannot_be_read(kind: str, project: Path) -> None:
    done = await LocalSpawner(report=box(kind)).run(ARGV, cwd=project)
    assert b"LOOKED" in done.stdout
    assert b"LEAK" not in done.stdout, done.stdout.decode()
    assert b"1 passed" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
async def test_many_repositories_are_hidden(kind: str, project: Path) -> None:
    for number in range(300):
        folder = project / "many" / ("x" * 150) / f"{number:0150d}" / ".git"
        folder.mkdir(parents=True)
        (folder / "config").write_text(SECRET)
    done = await LocalSpawner(report=box(kind)).run(ARGV, cwd=project)
    assert b"LOOKED" in done.stdout
    assert b"LEAK" not in done.stdout, done.stdout.decode()[-2000:]


def test_a_copy_of_the_project_has_no_repository_in_it(project: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    copy_view(str(project), None, str(tmp_path / "copy"), sorted(Hidden(project).find()))
    assert [path for path in (tmp_path / "copy").rglob("*") if SECRET in str(path) or path.name in HIDDEN] == []
    assert (tmp_path / "copy" / "sub" / "code.py").exists()


class CreatesRepository(LocalSpawner):
    """Something else makes a repository in the project after it was looked through."""

    place: Path

    async def execute(self, argv: Sequence[str], **how: Any) -> Completed:
        self.place.mkdir(parents=True)
        (self.place / "config").write_text(SECRET)
        return await super().execute(argv, **how)


async def test_the_output_is_dropped_when_a_repository_appears_meanwhile(project: Path) -> None:
    spawner = CreatesRepository(report=any_box())
    spawner.place = project / "cloned" / ".git"
    with pytest.raises(ToolFailed, match=r"`cloned/.git` appeared in the project while `pytest` ran") as dropped:
        await spawner.run(ARGV, cwd=project)
    assert SECRET not in str(dropped.value)


async def test_a_project_of_too_many_repositories_is_refused(tmp_path: Path) -> None:
    for number in range(MAX_HIDDEN + 1):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / ".git").write_text("")
    with pytest.raises(TooManyHidden):
        Hidden(tmp_path).find()
    with pytest.raises(ToolFailed, match="more than 1,000 repositories"):
        await LocalSpawner(report=any_box()).run(ARGV, cwd=tmp_path)


def settle(root: Path) -> None:
    """Every folder's last change lies in the past."""
    for folder, _, _ in os.walk(root, topdown=False):
        os.utime(folder, (1_000_000_000, 1_000_000_000))


def test_folders_that_did_not_change_are_not_looked_into_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(project)
    hidden = Hidden(project)
    first = hidden.find()
    (project / "vendor" / "deep" / ".git").mkdir()
    looked: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(str(path)) or scandir(path))
    assert hidden.find() - first == {"vendor/deep/.git"}
    assert looked == [f"{project}/vendor/deep/"]


def test_what_is_found_again_is_what_a_new_walk_finds(tmp_path: Path) -> None:
    """After every one of 300 random changes."""
    dice = random.Random(8)
    hidden = Hidden(tmp_path)
    names = ["a", "b", "c", ".git", ".agentfs", ".Git"]
    for _ in range(300):
        path = tmp_path.joinpath(*(dice.choice(names) for _ in range(dice.randrange(1, 5))))
        if path.exists() and dice.random() < 0.5:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif not any(part.is_file() for part in (path, *path.parents)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("") if dice.random() < 0.3 and not path.exists() else path.mkdir(exist_ok=True)
        if dice.random() < 0.2:
            settle(tmp_path)
        assert hidden.find() == Hidden(tmp_path).find()


def test_a_link_to_a_folder_in_the_project_hides_that_folder(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".git").symlink_to("../store")
    (tmp_path / ".git").symlink_to("/nowhere")
    assert Hidden(tmp_path).find() == {".git", "sub/.git", "store"}
