"""How often a project's files break the rules of its linter, counted once for all agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from remora.discovery import PythonCode
from remora.errors import ToolFailed
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import Completed
from remora.sandbox import LocalSpawner
from remora.scripts import Survey
from remora.scripts import _survey as survey_module
from remora.scripts._host import Host
from remora.workspaces import OverlayWorkspace

OLD = "x = '%s' % 1\n"


class Linter:
    """Reports two errors in every file that is named `bad`."""

    def __init__(self, returncode: int = 0, chunk: int = 0) -> None:
        self.asked: list[list[str]] = []
        self.returncode = returncode
        self.chunk = chunk

    async def check_files(
        self, flags: Sequence[str], files: Sequence[str], *, cwd: Path, limit_s: float = 60.0
    ) -> Completed:
        self.asked.append(list(files))
        lines = [f"{name}:{row}:1: UP031 Use `%`\n" for name in files if "bad" in name for row in (1, 2)]
        text = "".join(["warning: x\n", *lines]).encode()
        return Completed((), self.returncode, text, b"", {"stdout": _chunks(text, self.chunk)} if self.chunk else {})

    async def describe_rules(self, *, cwd: Path, limit_s: float = 60.0) -> Completed:
        return Completed((), 0, b'[{"code": "UP031", "status": {"Stable": {"since": "v0.0.229"}}}]', b"")


def _chunks(text: bytes, size: int) -> Iterable[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


async def _files(under: str) -> list[str]:
    return [f"{under}/{name}" for name in ("bad.py", "good.py", "tests/test_bad.py", "docs/a.txt")]


@pytest.mark.parametrize("chunk", [0, 7])
async def test_code_and_what_is_beside_it_are_counted_apart(chunk: int) -> None:
    found = (await Survey(Linter(chunk=chunk), Path()).totals(["--select=UP"], "pkg", _files)).groups()
    assert found == {
        "code": {"files": 2, "errors": {"pkg/bad.py": {"UP031": 2}}},
        "beside": {"files": 1, "errors": {"pkg/tests/test_bad.py": {"UP031": 2}}},
        "since": {"UP031": "0.0.229"},
    }


async def test_files_are_checked_once_for_each_folder_and_flags() -> None:
    linter = Linter()
    survey = Survey(linter, Path())
    for flags in ([], [], ["--select=UP"], []):
        await survey.totals(flags, "pkg", _files)
    assert len(linter.asked) == 2


async def test_many_files_are_checked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_module, "FILES_AT_ONCE", 2)
    linter = Linter()
    assert len((await Survey(linter, Path()).totals([], "pkg", _files)).errors) == 2
    assert [len(files) for files in linter.asked] == [2, 1]


async def test_what_ruff_cannot_check_is_no_evidence() -> None:
    found = (await Survey(Linter(returncode=2), Path()).totals([], "pkg", _files)).groups()
    assert found["code"] == {"files": 0, "errors": {}}


async def test_ruff_checks_files_with_the_projects_settings_and_none_outside(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name, text in {"project/pkg/a.py": OLD, "out.py": OLD, "project/ruff.toml": 'lint.select = ["UP"]\n'}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (project / "link.py").symlink_to(tmp_path / "out.py")

    async def files(under: str) -> list[str]:
        return ["pkg/a.py", "link.py", "gone.py"]

    found = await Survey(LocalSpawner(), project).totals([], "", files)
    assert (found.errors, found.since) == ({"pkg/a.py": {"UP031": 1}}, {"UP031": "0.0.229"})
    (project / "pkg/ruff.toml").write_text('extend = "../../out.py"\n')
    with pytest.raises(ToolFailed, match="ruff does not run"):
        await LocalSpawner().check_files([], ["pkg/a.py"], cwd=project)
    with pytest.raises(ToolFailed, match="not allowed"):
        await LocalSpawner().check_files(["--config=x"], ["pkg/a.py"], cwd=project)
    assert (await Survey(LocalSpawner(), project).totals([], "", files)).errors == {}


def _host(root: Path, survey: Survey | None, commands: tuple[str, ...] = ("ruff",)) -> Any:
    lines = LineRange(first=1, last=1)
    node = CodeNode(
        node_id="a.py",
        node_type=NodeType.FILE,
        name="a.py",
        file_path=Path("a.py"),
        lines=lines,
        owned=(lines,),
        text="",
    )
    workspace = OverlayWorkspace(root, root.parent / "state/workspaces/A")
    host = Host(workspace, LocalSpawner(), commands=commands, root=root, node=node, code=PythonCode(), survey=survey)
    return host.functions()["linter_totals"]


async def test_a_script_gets_totals_only_of_a_program_that_its_agent_may_run(tmp_path: Path) -> None:
    root = tmp_path / "p"
    root.mkdir()
    (root / "bad.py").write_text(OLD)
    assert (await _host(root, Survey(Linter(), root))([]))["code"] == {"files": 1, "errors": {"bad.py": {"UP031": 2}}}
    assert (await _host(root, None)([]))["code"] == {"files": 0, "errors": {}}
    with pytest.raises(PermissionError, match="`ruff` is not among"):
        await _host(root, Survey(Linter(), root), ("pytest",))([])
    with pytest.raises(TypeError, match="flags"):
        await _host(root, Survey(Linter(), root))("--select=UP")
