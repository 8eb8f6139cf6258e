from __future__ import annotations

import subprocess
from pathlib import Path

from remora.sandbox import changed_lines


def git(folder: Path, *words: str) -> None:
    argv = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)


def test_added_lines_that_look_like_a_diff_are_lines_of_their_own_file(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "a.py").write_text("x\n")
    (tmp_path / "b.py").write_text("y\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    (tmp_path / "a.py").write_text("++ b/other.py\nx\n@@ -1 +1 @@\n-- z\n")
    (tmp_path / "b.py").write_text("y\nq\n")
    assert changed_lines(tmp_path, "HEAD") == {"a.py": [(1, 1), (3, 4)], "b.py": [(2, 2)]}
