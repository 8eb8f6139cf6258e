"""A project may have come from somebody else, its state folder included: nothing in it is believed for lying there."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.warm import WarmCommand
from projects import copy_shop
from remora import workspaces
from remora.app import Project, open_project
from remora.errors import ConfigError
from remora.trace import claim
from remora.workspaces import _take

Remora = Callable[..., subprocess.CompletedProcess[str]]
COMMANDS = [("config",), ("trace", "ls"), ("diff",), ("accept",)]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A file of the user's that no project has any business with."""
    file = tmp_path / "home" / ".profile"
    file.parent.mkdir()
    file.write_text("export SAFE=1\n")
    return file


@pytest.fixture(scope="session")
def remora(warm: WarmCommand) -> Remora:
    """The real command, in a project of the test's choice."""
    return lambda project, *words: warm.run(words, project, dict(os.environ), "")


def encoded(text: str | None) -> str | None:
    return None if text is None else base64.b64encode(text.encode()).decode()


def plant_journal(project: Path, *, phase: str, path: str, base: str | None, after: str | None, staged: str) -> None:
    """What an attacker would put into a repository: the journal of an accept that never was."""
    state = project / ".agentfs"
    state.mkdir(mode=0o700, exist_ok=True)
    step = {"path": path, "mode": 0o644, "base": encoded(base), "after": encoded(after), "staged": staged}
    note = {"kind": "tool run"}
    journal = {"v": 1, "phase": phase, "steps": [step], "made": [], "drop": [], "note": note}
    (state / "accept.json").write_text(json.dumps(journal))


def files(project: Path) -> dict[str, bytes]:
    found = [path for path in project.rglob("*") if path.is_file() and ".agentfs" not in path.parts]
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_journal_that_came_with_a_repository_changes_no_file_inside_or_outside(
    remora: Remora, shop: Path, elsewhere: Path, command: tuple[str, ...]
) -> None:
    before = files(shop)
    plant_journal(shop, phase="staging", path="shop/cart.py", base="", after=None, staged=str(elsewhere))
    remora(shop, *command)
    climbing = f"../../home/{elsewhere.name}"
    plant_journal(shop, phase="putting", path="shop/cart.py", base=None, after="evil\n", staged=climbing)
    remora(shop, *command)
    was = (shop / "shop/cart.py").read_text()
    plant_journal(
        shop, phase="putting", path="shop/cart.py", base=was, after="evil\n", staged=".0123456789abcdef.remora"
    )
    (shop / "shop/.0123456789abcdef.remora").write_text("evil\n")
    remora(shop, *command)
    (shop / "shop/.0123456789abcdef.remora").unlink(missing_ok=True)
    assert elsewhere.read_text() == "export SAFE=1\n"
    assert files(shop) == before


@pytest.fixture
def foreign(shop: Path, runs: Callable[[str], Path]) -> Path:
    """A project that came with the state folder of somebody else, whose agent would change `shop/cart.py`."""
    shutil.copytree(runs("shop/cart.py") / ".agentfs", shop / ".agentfs")
    return shop


@pytest.fixture
def own(foreign: Path) -> Path:
    """The same, with a state folder of one's own."""
    claim(foreign / ".agentfs")
    return foreign


def test_runs_that_came_with_a_project_are_shown_and_never_acted_upon(remora: Remora, foreign: Path) -> None:
    before = files(foreign)
    state = {path: path.read_bytes() for path in (foreign / ".agentfs").rglob("*") if path.is_file()}
    shown = remora(foreign, "diff")
    assert "shop/cart.py" in shown.stdout
    assert "did not create this state folder" in shown.stderr
    assert "did not create this state folder" in remora(foreign, "trace", "ls").stderr
    for words in (
        ["accept"],
        ["reject"],
        ["undo"],
        ["resume"],
        ["analyze", "shop/cart.py"],
        ["hub", "index"],
        ["hub", "status"],
        ["hub", "stop"],
        ["trace", "prune", "--older-than", "0"],
        ["trace", "import", "README.md"],
    ):
        done = remora(foreign, *words)
        assert done.returncode != 0, words
        assert "ou did not create th" in done.stderr, (words, done.stderr)  # the folder, or this folder
        assert "Traceback" not in done.stderr
    assert files(foreign) == before
    assert {path: path.read_bytes() for path in (foreign / ".agentfs").rglob("*") if path.is_file()} == state


def test_a_state_folder_that_its_user_trusts_is_acted_upon_and_its_views_are_made_anew(
    remora: Remora, foreign: Path
) -> None:
    planted = foreign / ".agentfs" / "hub.db"
    planted.write_bytes(b"facts of somebody else")
    done = remora(foreign, "trust", ".agentfs")
    assert done.returncode == 0, done.stderr
    assert not planted.exists()
    assert remora(foreign, "accept").returncode == 0
    assert files(foreign) != {}
    assert remora(foreign, "undo").returncode == 0


def test_a_state_folder_that_was_moved_with_its_project_is_still_ones_own(remora: Remora, own: Path) -> None:
    moved = own.rename(own.with_name("moved"))
    assert remora(moved, "accept").returncode == 0


@pytest.mark.parametrize("command", [("trace", "ls"), ("accept",), ("analyze", "shop/cart.py", "-q")], ids=" ".join)
def test_a_state_folder_that_is_a_link_is_refused(
    remora: Remora, shop: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (shop / ".agentfs").symlink_to(target)
    done = remora(shop, *command)
    assert done.returncode == 3
    assert "is a link" in done.stderr
    assert list(target.iterdir()) == []


def test_links_inside_a_state_folder_are_refused_and_nothing_behind_them_is_written(
    remora: Remora, shop: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    for place in ("hub.log", "traces", "runs", "workspaces", "blobs/sha256/ab", "index.db", "traces/X.jsonl"):
        shutil.rmtree(shop / ".agentfs", ignore_errors=True)
        link = shop / ".agentfs" / place
        link.parent.mkdir(parents=True, mode=0o700)
        link.symlink_to(outside / "file" if "." in link.name else outside)
        for words in (["hub", "start"], ["trace", "prune", "--older-than", "0"]):
            done = remora(shop, *words)
            assert done.returncode != 0, (place, words)
            assert f"holds a link, `{place}`" in done.stderr, (place, words, done.stderr)
    assert (outside / "file").read_text() == "mine"
    assert [path.name for path in outside.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_state_folder_of_another_user_is_refused(remora: Remora, foreign: Path) -> None:
    os.chown(foreign / ".agentfs", 12345, 12345)
    done = remora(foreign, "trace", "ls")
    assert (done.returncode, "belongs to another user (uid 12345)" in done.stderr) == (3, True)


def test_a_state_folder_that_everybody_may_write_is_refused(remora: Remora, foreign: Path) -> None:
    (foreign / ".agentfs").chmod(0o777)
    assert "can be written by every user" in remora(foreign, "trace", "ls").stderr


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_state_folder_that_git_tracks_is_refused_also_when_it_is_ones_own(remora: Remora, own: Path) -> None:
    shop = own
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "-q"], cwd=shop, check=True)
    assert remora(shop, "trace", "ls").returncode == 0
    subprocess.run([*git, "add", "-f", ".agentfs"], cwd=shop, check=True)
    done = remora(shop, "accept")
    assert (done.returncode, "is tracked by git" in done.stderr) == (3, True)
    subprocess.run([*git, "rm", "-rq", "--cached", ".agentfs"], cwd=shop, check=True)
    assert remora(shop, "accept").returncode == 0


def test_settings_and_agents_are_listed_whatever_the_state_folder_is(remora: Remora, shop: Path) -> None:
    (shop / ".agentfs").symlink_to("/nowhere")
    assert remora(shop, "config").returncode == 0
    assert remora(shop, "agents").returncode == 0


def test_a_command_that_reads_from_elsewhere_leaves_a_half_done_accept_alone(
    remora: Remora, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, opened = own, open_project(own)
    half = cut_off_accept(opened, monkeypatch)
    other = tmp_path / "other"
    other.mkdir()
    (other / "remora.yaml").write_text("")
    for words in (["trace", "ls"], ["trace", "verify"], ["diff"], ["config"]):
        remora(other, *words, "--state-dir", str(shop / ".agentfs"))
        remora(shop, *words)
    assert workspaces.load(opened.journal_dir) == half
    assert "cut off" in remora(shop, "diff").stderr
    assert remora(shop, "accept").returncode == 0
    assert workspaces.load(opened.journal_dir) is None


def cut_off_accept(opened: Project, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The journal of an accept that was killed before its first file was in its place."""

    def killed(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(_take, "put", killed)
        patched.setattr(_take, "roll_back", lambda *_: [])
        patched.setattr(_take, "forget", lambda *_: None)
        asyncio.run(opened.review.accept())
    half = workspaces.load(opened.journal_dir)
    assert half is not None
    assert half.phase == "putting"
    return half


def test_a_journal_is_not_carried_out_on_another_folder_at_the_same_path(
    remora: Remora, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = own
    cut_off_accept(open_project(shop), monkeypatch)
    shop.rename(shop.with_name("old"))
    copy_shop(shop.parent / "shop")
    before = files(shop)
    assert remora(shop, "analyze", "shop/cart.py", "-q").returncode == 0
    assert files(shop) == before
    assert not open_project(shop).changes.is_cut_off


def test_a_home_that_others_could_write_is_refused(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "state"
    (home / "remora").mkdir(parents=True)
    (home / "remora").chmod(0o777)
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    with pytest.raises(ConfigError, match="could be written by others"):
        open_project(shop).journal_dir  # noqa: B018
