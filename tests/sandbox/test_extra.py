"""A trusted agent may run further Python modules, inside the sandbox and with the flags it named."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.errors import ToolFailed
from remora.sandbox import LocalSpawner, probe


@pytest.fixture
def spawner() -> LocalSpawner:
    return LocalSpawner(extra={"json": ["--compact", "--indent="]})


@pytest.mark.parametrize("words", [["-c", "print(1)"], ["--sort-keys"], ["../outside.json"], ["/etc/passwd"]])
async def test_what_was_not_named_is_refused(spawner: LocalSpawner, tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(ToolFailed, match="not allowed"):
        await spawner.run(["json", *words], cwd=tmp_path)


async def test_a_module_that_nobody_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="not allowed"):
        await LocalSpawner().run(["json"], cwd=tmp_path)


async def test_it_runs_over_the_workspaces_files_in_the_sandbox(tmp_path: Path) -> None:
    if probe().applies == "none":
        pytest.skip("no OS sandbox works here")
    project, over = tmp_path / "project", tmp_path / "over"
    project.mkdir()
    over.mkdir()
    (project / "a.py").write_text("x: int = 1\n")
    (over / "a.py").write_text("x: int = ''\n")
    done = await LocalSpawner(extra={"mypy": ["--no-incremental"]}).run(
        ["mypy", "--no-incremental", "a.py"], cwd=project, over=over, limit_s=120
    )
    assert (done.returncode, done.sandbox) == (1, probe().applies)
    assert b'Incompatible types in assignment (expression has type "str"' in done.stdout
    assert sorted(path.name for path in project.iterdir()) == ["a.py"]
