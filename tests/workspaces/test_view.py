"""Which files an agent is shown: the project's own code as git sees it, and what the agent wrote."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from remora.discovery import TreeSitterDiscovery
from remora.errors import WorkspaceError
from remora.workspaces import OverlayWorkspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path in ("a.py", "b.log", "src/c.py", "src/gen/d.py", "src/gen/keep.py", "build/e.py", "env/pyvenv.cfg"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x = 1\n")
    (root / ".gitignore").write_text("*.log\n")
    (root / "src/.gitignore").write_text("gen/*\n!gen/keep.py\n")
    return root


def open_workspace(root: Path, name: str = "AGENT") -> OverlayWorkspace:
    return OverlayWorkspace(root, root / ".agentfs/workspaces" / name)


async def test_ignored_files_are_not_shown_and_own_files_are(root: Path) -> None:
    workspace = open_workspace(root)
    await workspace.write("out.log", b"mine")
    await workspace.write("new/f.py", b"mine")
    assert await workspace.files() == [
        ".gitignore", "a.py", "new/f.py", "out.log", "src/.gitignore", "src/c.py", "src/gen/keep.py",
    ]  # fmt: skip
    assert await workspace.files("src") == ["src/.gitignore", "src/c.py", "src/gen/keep.py"]
    assert await workspace.files("./src/c.py") == ["src/c.py"]


async def test_a_folder_is_listed_with_what_was_written_into_it(root: Path) -> None:
    workspace = open_workspace(root)
    await workspace.write("src/z/new.py", b"mine")
    assert await workspace.list_dir() == [".gitignore", "a.py", "src/"]
    assert await workspace.list_dir(".") == await workspace.list_dir("")
    assert await workspace.list_dir("src/") == [".gitignore", "c.py", "gen/", "z/"]
    assert await workspace.list_dir("src/z") == ["new.py"]
    with pytest.raises(FileNotFoundError):
        await workspace.list_dir("nowhere")
    with pytest.raises(FileNotFoundError):
        await workspace.files("nowhere")
    with pytest.raises(WorkspaceError, match="is a file"):
        await workspace.list_dir("a.py")


@pytest.mark.parametrize("path", ["..", "/", "/etc", "src/../..", ".git", ".agentfs", "out", "a\0"])
async def test_no_folder_outside_is_listed(root: Path, path: str) -> None:
    (root / ".git").mkdir()
    (root / "out").symlink_to("/etc", target_is_directory=True)
    workspace = open_workspace(root)
    with pytest.raises((WorkspaceError, FileNotFoundError)):
        await workspace.list_dir(path)
    with pytest.raises((WorkspaceError, FileNotFoundError)):
        await workspace.files(path)
    assert not [name for name in await workspace.files() if name.startswith("out")]


async def test_a_folder_that_is_named_is_shown_even_if_it_is_ignored(root: Path) -> None:
    assert await open_workspace(root).files("build") == ["build/e.py"]
    assert await open_workspace(root).list_dir("build") == ["e.py"]


async def test_rules_of_the_checkout_alone_hold_and_a_file_of_rules_goes_before_them(root: Path) -> None:
    (root / ".git/info").mkdir(parents=True)
    (root / ".git/info/exclude").write_text("a.py\nc.py\n")
    (root / "src/.gitignore").write_text("!c.py\n")
    shown = await open_workspace(root).files()
    assert "a.py" not in shown
    assert "src/c.py" in shown


async def test_a_link_or_a_pipe_in_place_of_rules_is_no_rule_and_holds_nobody(root: Path) -> None:
    (root / "src/.gitignore").unlink()
    os.mkfifo(root / "src/.gitignore")
    (root / "rules").write_text("*.py\n")
    (root / ".gitignore").unlink()
    (root / ".gitignore").symlink_to("rules")
    assert "a.py" in await open_workspace(root).files()
    assert TreeSitterDiscovery(root).find([root])


async def test_state_that_lies_elsewhere_in_the_project_is_not_shown(root: Path) -> None:
    workspace = OverlayWorkspace(root, root / "state/workspaces/AGENT")
    await workspace.write("new.py", b"x")
    assert [name for name in await workspace.files() if "state" in name] == []
    assert "state/" not in await workspace.list_dir()


async def test_a_file_that_waits_for_its_place_is_not_shown(root: Path) -> None:
    (root / ".0123456789abcdef.remora").write_text("half")
    assert ".0123456789abcdef.remora" not in await open_workspace(root).files()


def test_discovery_and_workspaces_hide_the_same(root: Path) -> None:
    found = {node.file_path.as_posix() for node in TreeSitterDiscovery(root).find([root])}
    assert found == {"a.py", "src/c.py", "src/gen/keep.py"}
    assert {node.file_path.as_posix() for node in TreeSitterDiscovery(root).find([root / "build"])} == {"build/e.py"}


NAMES = ["a.py", "b.py", "c.txt", "x", "y"]
# Without `!x/` after `x/*`, which takes back nothing for git and everything below `x` for the library.
RULES = [
    "*.py", "a.py", "!a.py", "x/", "/x", "x/*", "!x/a.py", "**/y", "y/**", "x/**/a.py", "/y/b.py", "!*", "[ab].py",
    "# a.py", "", "  ", "\\!a.py", "?.py", "*", "a*", "x/y", "[", "/", "//", "\\",
]  # fmt: skip
rules = st.lists(st.sampled_from(RULES), max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@example([], [], ["y/**", "!a.py"])
@given(rules, rules, rules)
def test_git_ignores_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], inner: list[str], own: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    for folder in ("", "x/", "y/", "x/y/"):
        for name in ("a.py", "b.py", "c.txt"):
            (root / folder).mkdir(exist_ok=True)
            (root / folder / name).write_text("")
    subprocess.run(["/usr/bin/git", "init", "-q"], cwd=root, check=True)
    (root / ".gitignore").write_text("\n".join(top))
    (root / "x/.gitignore").write_text("\n".join(inner))
    (root / ".git/info/exclude").write_text("\n".join(own))
    command = ["/usr/bin/git", "ls-files", "--others", "--exclude-standard", "-z"]
    told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert asyncio.run(open_workspace(root).files()) == sorted(filter(None, told.split("\0")))
