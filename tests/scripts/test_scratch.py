from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remora.scripts._scratch import scratch


def _texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_command_sees_the_agents_files_with_others_over_them_and_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/a.py").write_text("a")
    (tmp_path / "b.py").write_text("b")
    with scratch(tmp_path, {"b.py": "B", "tests/test_c.py": "é"}) as over:
        assert _texts(over) == {"pkg/a.py": "a", "b.py": "B", "tests/test_c.py": "é"}
    assert not over.exists()
    assert _texts(tmp_path) == {"pkg/a.py": "a", "b.py": "b"}


def test_without_files_the_agents_own_folder_is_used(tmp_path: Path) -> None:
    for nothing in (None, {}):
        with scratch(tmp_path, nothing) as over:
            assert over == tmp_path


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a\0b", "."])
def test_a_path_that_leads_outside_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(PermissionError, match="leads outside"), scratch(tmp_path, {path: "x"}):
        pass


@pytest.mark.parametrize("files", ["a.py", [1], {"a.py": 1}, {1: "x"}, {f"{n}.py": "" for n in range(21)}])
def test_what_is_no_text_by_path_is_refused(tmp_path: Path, files: Any) -> None:
    with pytest.raises(TypeError), scratch(tmp_path, files):
        pass


def test_the_folder_is_gone_after_a_failure_too(tmp_path: Path) -> None:
    seen: list[Path] = []
    with pytest.raises(RuntimeError), scratch(tmp_path, {"a.py": ""}) as over:
        seen.append(over)
        raise RuntimeError
    assert not seen[0].exists()
