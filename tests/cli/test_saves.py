"""Saves during `remora analyze`, and files that may not be written, by the real commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Remora = Callable[..., subprocess.CompletedProcess[str]]
Json = Callable[..., Any]
SOURCE = (
    "X = 1\n\n\ndef total(prices):\n    import sys\n    if prices is None:\n        return 0\n    return sum(prices)\n"
)
MINE = "    # saved by the user\n"


SAVING = """
import sys
from pathlib import Path
from remora.sandbox import LocalSpawner

file, mine, left = Path(sys.argv.pop(1)), sys.argv.pop(1), [int(sys.argv.pop(1))]
run = LocalSpawner.run

async def saving(*args, **kwargs):
    done = await run(*args, **kwargs)
    left[0] -= 1
    if left[0] == 0:
        file.write_text(file.read_text().replace("    if prices", mine + "    if prices"))
    return done

LocalSpawner.run = saving
from remora.cli import main
main()
"""
"""The command, with a user who saves when a program that it started for the nth time has just ended."""


@pytest.mark.parametrize("nth", [2, pytest.param(7, marks=pytest.mark.faults)])
def test_a_save_while_analyze_runs_is_kept_or_is_a_conflict(tmp_path: Path, nth: int) -> None:
    (tmp_path / "remora.yaml").write_text("runner: {max_concurrent: 1}\n")
    (tmp_path / "ruff.toml").write_text('lint.select = ["E", "F"]\n')
    file = tmp_path / "saved.py"
    file.write_text(SOURCE)

    def command(*words: str, code: str = "from remora.cli import main; main()") -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-c", code, *words]
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    done = command(str(file), MINE, str(nth), "analyze", "saved.py", "-o", "lint", code=SAVING)
    assert done.returncode == 0, done.stderr
    saved = file.read_text()
    assert MINE in saved
    accepted = json.loads(command("accept", "--json").stdout)
    conflicts = [one["conflict"] for one in accepted if one["conflict"]]
    assert MINE in file.read_text()
    assert (file.read_text() == saved) == bool(conflicts)


def test_a_file_that_the_user_made_read_only_is_neither_accepted_undone_nor_written_by_hand(
    shop: Path, remora: Remora, analyzed: Json
) -> None:
    analyzed("shop/pricing.py")
    file = shop / "shop/pricing.py"
    before = file.read_bytes()
    file.chmod(0o444)
    done = remora("accept")
    assert done.returncode == 1
    assert "`shop/pricing.py` is read-only" in done.stdout
    assert "chmod u+w shop/pricing.py" in done.stdout
    assert file.read_bytes() == before
    file.chmod(0o644)
    assert remora("accept").returncode == 0
    accepted = file.read_bytes()
    assert accepted != before
    file.chmod(0o444)
    assert remora("undo").returncode == 1
    assert file.read_bytes() == accepted
    script = shop / "add.pym"
    script.write_text(EDIT)
    done = remora("tool", "run", str(script), "--file", "shop/pricing.py", "--write")
    assert done.returncode != 0
    assert "`shop/pricing.py` is read-only" in done.stderr
    assert file.read_bytes() == accepted


EDIT = '''"""Add a line."""
from remora.scripts import Input, external
target_file: str = Input("target_file")
@external
async def read_file(path: str) -> str: ...
@external
async def write_file(path: str, content: str) -> None: ...
await write_file(target_file, await read_file(target_file) + "# end\\n")
{"result": {}, "summary": "Added", "knowledge_delta": {}, "outcome": "success"}
'''
