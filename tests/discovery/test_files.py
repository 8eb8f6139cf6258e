"""Which files are looked at, and what is said about the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remora.discovery import TreeSitterDiscovery
from remora.errors import ConfigError

CODE = "x = 1\n"


def put(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CODE)


def ids(root: Path, *paths: Path) -> list[str]:
    return [node.node_id for node in TreeSitterDiscovery(root).find(paths or [root])]


def test_an_empty_folder_has_no_nodes(tmp_path: Path) -> None:
    assert TreeSitterDiscovery(tmp_path).find([tmp_path]) == []


def test_files_come_in_order_of_path_and_each_once(tmp_path: Path) -> None:
    put(tmp_path, "b.py", "a/z.py", "a/b/c.py", "a.py", "readme.md", "a/data.json")
    assert ids(tmp_path, tmp_path, tmp_path / "a", tmp_path / "b.py") == ["a.py", "a/b/c.py", "a/z.py", "b.py"]


@pytest.mark.parametrize(
    "name", [".git", ".agentfs", ".hidden", "__pycache__", "node_modules", "build", "dist", "site-packages"]
)
def test_folders_that_are_not_the_projects_own_code_are_skipped(tmp_path: Path, name: str) -> None:
    put(tmp_path, "a.py", f"{name}/b.py", f"src/{name}/deep/c.py")
    assert ids(tmp_path) == ["a.py"]


def test_a_virtual_environment_is_skipped_whatever_its_name(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "env-3.11/lib/b.py", "env-3.11/pyvenv.cfg")
    assert ids(tmp_path) == ["a.py"]


def test_a_folder_that_was_named_is_looked_at_even_if_it_would_be_skipped(tmp_path: Path) -> None:
    put(tmp_path, "build/a.py")
    assert ids(tmp_path, tmp_path / "build") == ["build/a.py"]


def test_a_project_may_itself_lie_in_a_hidden_folder(tmp_path: Path) -> None:
    put(tmp_path, ".cache/shop/a.py")
    assert ids(tmp_path / ".cache/shop") == ["a.py"]


def test_links_are_not_followed_so_a_loop_of_them_ends(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "pkg/b.py")
    tmp_path.joinpath("pkg/loop").symlink_to(tmp_path, target_is_directory=True)
    tmp_path.joinpath("c.py").symlink_to(tmp_path / "a.py")
    assert ids(tmp_path) == ["a.py", "pkg/b.py"]


def test_a_root_that_is_reached_through_a_link_is_the_folder_behind_it(tmp_path: Path) -> None:
    put(tmp_path, "real/a.py")
    tmp_path.joinpath("link").symlink_to(tmp_path / "real", target_is_directory=True)
    assert ids(tmp_path / "link", tmp_path / "link/a.py") == ["a.py"]
    assert ids(tmp_path / "real", tmp_path / "link") == ["a.py"]


def test_relative_paths_are_taken_from_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "shop/pkg/a.py", "shop/b.py")
    monkeypatch.chdir(tmp_path / "shop/pkg")
    assert ids(tmp_path / "shop", Path("a.py")) == ["pkg/a.py"]
    assert ids(tmp_path / "shop", Path("../b.py")) == ["b.py"]


def test_a_path_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`.*gone` does not exist: expected"):
        ids(tmp_path, tmp_path / "gone")


def test_a_path_outside_the_project_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "shop/a.py", "other/b.py")
    with pytest.raises(ConfigError, match="is outside the project"):
        ids(tmp_path / "shop", tmp_path / "shop/../other/b.py")


def test_a_link_that_leads_outside_the_project_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "shop/a.py", "other/b.py")
    tmp_path.joinpath("shop/out").symlink_to(tmp_path / "other", target_is_directory=True)
    with pytest.raises(ConfigError, match="is outside the project"):
        ids(tmp_path / "shop", tmp_path / "shop/out")


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    tmp_path.joinpath("self.py").symlink_to(tmp_path / "self.py")
    with pytest.raises(ConfigError, match="cannot be read"):
        ids(tmp_path, tmp_path / "self.py")


def test_remoras_own_state_is_refused_even_when_named(tmp_path: Path) -> None:
    put(tmp_path, ".agentfs/workspaces/1/a.py")
    with pytest.raises(ConfigError, match="Remora's own state"):
        ids(tmp_path, tmp_path / ".agentfs/workspaces")


def test_a_named_file_that_is_not_python_is_a_problem_and_not_an_error(tmp_path: Path) -> None:
    put(tmp_path, "readme.md", "a.py")
    discovery = TreeSitterDiscovery(tmp_path)
    assert len(discovery.find([tmp_path / "readme.md", tmp_path / "a.py"])) == 1
    assert discovery.problems == [f"`{tmp_path}/readme.md` is not a Python file"]


def test_a_file_that_is_not_utf_8_is_a_problem_and_hides_no_other(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "c.py")
    tmp_path.joinpath("b.py").write_bytes(b"x = '\xe9'\n")
    discovery = TreeSitterDiscovery(tmp_path)
    assert [node.node_id for node in discovery.find([tmp_path])] == ["a.py", "c.py"]
    assert discovery.problems == ["`b.py` is not UTF-8: byte 5 cannot be decoded"]


def test_problems_are_those_of_the_last_find(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "readme.md")
    discovery = TreeSitterDiscovery(tmp_path)
    discovery.find([tmp_path / "readme.md"])
    discovery.find([tmp_path / "a.py"])
    assert discovery.problems == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_or_folder_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "b.py", "c/d.py")
    tmp_path.joinpath("b.py").chmod(0)
    tmp_path.joinpath("c").chmod(0)
    discovery = TreeSitterDiscovery(tmp_path)
    assert [node.node_id for node in discovery.find([tmp_path])] == ["a.py"]
    tmp_path.joinpath("c").chmod(0o700)
    assert [problem.partition(" cannot be ")[2].partition(":")[0] for problem in discovery.problems] == [
        "listed",
        "read",
    ]


def test_a_file_that_goes_away_while_it_is_read_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a.py")

    def gone(path: Path) -> bytes:
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(Path, "read_bytes", gone)
    discovery = TreeSitterDiscovery(tmp_path)
    assert discovery.find([tmp_path]) == []
    assert discovery.problems == ["`a.py` cannot be read: No such file or directory"]


def test_a_name_that_is_not_utf_8_is_a_problem(tmp_path: Path) -> None:
    try:
        tmp_path.joinpath(os.fsdecode(b"caf\xe9.py")).write_text(CODE)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    discovery = TreeSitterDiscovery(tmp_path)
    assert discovery.find([tmp_path]) == []
    assert discovery.problems == [r"'caf\udce9.py' was skipped: its name is not UTF-8"]


def test_a_pipe_with_a_python_name_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert ids(tmp_path) == []


def test_a_long_block_of_comments_is_no_reason_to_wait(tmp_path: Path) -> None:
    # 20,000 such lines took minutes while the grammar looked ahead over all of them after each one.
    block = "# " + "x" * 100 + "\n"
    (tmp_path / "a.py").write_text(f"def f():\n    pass\n{block * 20_000}def g():\n    return 1  # '\n")
    nodes = TreeSitterDiscovery(tmp_path).find([tmp_path])
    assert [node.name for node in nodes if node.node_type.value == "function"] == ["f", "g"]


def test_a_file_too_large_to_be_code_is_skipped_and_told(tmp_path: Path) -> None:
    (tmp_path / "big.py").write_text("x = 1\n" * 1_000_000)
    discovery = TreeSitterDiscovery(tmp_path)
    assert discovery.find([tmp_path]) == []
    assert "larger than" in discovery.problems[0]


def test_what_the_settings_exclude_is_not_looked_at(tmp_path: Path) -> None:
    for name in ("a.py", "copied/b.py", "src/copied/c.py", "src/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    found = TreeSitterDiscovery(tmp_path, exclude=["/copied/", "d.py"]).find([tmp_path])
    assert [node.node_id for node in found] == ["a.py", "src/copied/c.py"]


BEGUN = "# P documentation build configuration, created by sphinx-quickstart.\n# This is an autogenerated file.\n"


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("pkg/a.py", True),
        ("pkg/data/a.py", True),
        ("pkg/_vendor/six.py", False),
        ("pkg/third_party/x/a.py", False),
        ("tests/test_a.py", True),
        ("tests/data/a.py", False),
        ("tests/unit/fixtures/deep/a.py", False),
        ("app/migrations/0001_initial.py", False),
        ("versioneer.py", False),
        ("pkg/api_pb2.py", False),
        ("pkg/parsetab.py", False),
        ("docs/conf.py", True),
    ],
)
def test_code_of_others_is_left_alone_unless_it_is_named(tmp_path: Path, path: str, own: bool) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    head = "\n# This file is automatically generated. Do not edit.\n" if "parsetab" in path else ""
    head = BEGUN if path == "docs/conf.py" else head
    file.write_text(f"{head}x = 1\n")
    discovery = TreeSitterDiscovery(tmp_path)
    assert bool(discovery.find([tmp_path])) == own
    said = f"1 file is not this project's own code, such as `{path}`: name it to include it"
    assert discovery.problems == ([] if own else [said])
    assert discovery.find([file])
    if file.parent != tmp_path and path not in ("pkg/api_pb2.py", "pkg/parsetab.py"):
        assert discovery.find([file.parent])


@pytest.mark.parametrize(
    ("path", "text", "own"),
    [
        ("tests/parse/imports.py", "import sys, os\n", False),
        ("tests/parse/deep/imports.py", "import sys, os\n", False),
        ("tests/run.py", "x = 1\n", True),
        ("tests/parse/helper.py", "x = 1\n", True),
        ("tests/tools/more.py", "x = 1\n", True),
        ("tests/parse/check_all.py", "import unittest\n", True),
        ("pkg/parse/imports.py", "import sys, os\n", True),
    ],
)
def test_what_tests_only_read_is_left_alone(tmp_path: Path, path: str, text: str, own: bool) -> None:
    files = {path: text, "tests/test_a.py": "from helper import x\nimport tools.more\nimport sys\n"}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    discovery = TreeSitterDiscovery(tmp_path)
    assert (path in {node.node_id for node in discovery.find([tmp_path])}) == own
    assert path in {node.node_id for node in discovery.find([tmp_path / path])}
    assert path in {node.node_id for node in discovery.find([(tmp_path / path).parent])}
