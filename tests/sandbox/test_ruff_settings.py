from __future__ import annotations

from pathlib import Path

import pytest

from remora.errors import ToolFailed
from remora.sandbox import LocalSpawner

SECRET = "canary-4411-of-another-file"
CHECK = ["ruff", "check", "--output-format", "json", "--stdin-filename", "src/pkg/a.py"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(f"password: {SECRET}\n")
    (tmp_path / "project" / "src" / "pkg").mkdir(parents=True)
    return tmp_path / "project"


OUTSIDE = {
    "relative": {"ruff.toml": 'extend = "../secret"'},
    "absolute": {"ruff.toml": 'extend = "{secret}"'},
    "home": {"ruff.toml": 'extend = "~/.netrc"'},
    "variable": {"ruff.toml": 'extend = "${{HOME}}/.netrc"'},
    "hidden name": {".ruff.toml": 'extend = "../secret"'},
    "pyproject": {"pyproject.toml": '[tool.ruff]\nextend = "../secret"'},
    "deeper": {"src/pkg/ruff.toml": 'extend = "../../../secret"'},
    "chain": {"ruff.toml": 'extend = "b.toml"', "b.toml": 'extend = "c.toml"', "c.toml": 'extend = "../secret"'},
    "loop": {"ruff.toml": 'extend = "b.toml"', "b.toml": 'extend = "ruff.toml"'},
    "not a text": {"ruff.toml": "extend = 3"},
}


@pytest.mark.parametrize("files", OUTSIDE.values(), ids=OUTSIDE)
async def test_settings_that_extend_a_file_outside_are_refused(files: dict[str, str], project: Path) -> None:
    for name, text in files.items():
        (project / name).write_text(text.format(secret=project.parent / "secret"))
    with pytest.raises(ToolFailed, match="ruff does not run") as refused:
        await LocalSpawner().run(CHECK, cwd=project, stdin=b"import os\n")
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("name", ["ruff.toml", ".ruff.toml", "pyproject.toml", "src/ruff.toml"])
async def test_settings_that_are_a_link_to_a_file_outside_are_refused(name: str, project: Path) -> None:
    (project / name).symlink_to(project.parent / "secret")
    with pytest.raises(ToolFailed, match="leads outside"):
        await LocalSpawner().run(CHECK, cwd=project, stdin=b"import os\n")


async def test_a_folder_that_is_a_link_brings_no_settings_from_outside(project: Path) -> None:
    (project.parent / "ruff.toml").write_text(f"{SECRET} = [")
    (project / "link").symlink_to(project.parent)
    with pytest.raises(ToolFailed, match="leads outside"):
        await LocalSpawner().run([*CHECK[:-1], "link/a.py"], cwd=project, stdin=b"import os\n")


async def test_the_leak_that_is_guarded_against_is_real(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check, ruff prints the other file."""
    (project / "ruff.toml").write_text('extend = "../secret"')
    monkeypatch.setattr("remora.sandbox._spawner.check_settings", lambda words, root: None)
    done = await LocalSpawner().run(CHECK, cwd=project, stdin=b"import os\n")
    assert SECRET.encode() in done.stderr


async def test_settings_that_extend_a_file_of_the_project_are_taken(project: Path) -> None:
    (project / "base.toml").write_text('[lint]\nselect = ["E711"]\n')
    (project / "src" / "ruff.toml").write_text('extend = "../base.toml"\n')
    done = await LocalSpawner().run(CHECK, cwd=project, stdin=b"import os\nx == None\n")
    assert b"E711" in done.stdout
    assert b"F401" not in done.stdout
