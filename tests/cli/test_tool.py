"""The commands of an author, as an author types them."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from remora import workspaces
from remora.app import Project
from remora.config import Config

Remora = Callable[..., subprocess.CompletedProcess[str]]
AGENTS = Path(__file__).parents[2] / "agents"
EDIT = '''"""Put a line at the end."""
from grail import Input, external

target_file: str = Input("target_file")
line: str = Input("line", default="# end")
count: int = Input("count", default=1)


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


print("working on", target_file)
await write_file(target_file, await read_file(target_file) + f"{line}\\n" * count)
{"result": count, "summary": f"Added {count}", "knowledge_delta": {"added": count}}
'''


@pytest.fixture
def edit(shop: Path) -> Path:
    path = shop / "tools" / "add_line.pym"
    path.parent.mkdir()
    path.write_text(EDIT)
    return path


def test_a_tool_runs_by_hand_and_the_project_stays_as_it_is(remora: Remora, shop: Path, edit: Path) -> None:
    before = (shop / "shop" / "cart.py").read_bytes()
    done = remora("tool", "run", str(edit), "--file", "shop/cart.py", "--input", "count=2", "-i", "line=# the end")
    assert done.returncode == 0, done.stderr
    assert "success: Added 2" in done.stdout
    assert "known: added = 2" in done.stdout
    assert done.stdout.count("+# the end") == 2
    assert "working on shop/cart.py" in done.stderr
    assert (shop / "shop" / "cart.py").read_bytes() == before
    assert not (shop / ".agentfs").exists()


def test_what_a_tool_changes_is_written_if_its_author_says_so(remora: Remora, shop: Path, edit: Path) -> None:
    before = (shop / "shop" / "cart.py").read_text()
    done = remora("tool", "run", str(edit), "--node", "shop/cart.py", "--write", "--json")
    told = json.loads(done.stdout)
    assert (told["outcome"], told["summary"], told["files"]) == ("success", "Added 1", ["shop/cart.py"])
    assert told["written"]
    assert (shop / "shop" / "cart.py").read_text() == before + "# end\n"


def test_a_write_that_was_cut_off_is_finished_and_told_by_the_next_command(
    remora: Remora, analyzed: Callable[[str], object], shop: Path, edit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyzed("shop/pricing.py")

    def cut_off(_: Path) -> None:
        raise KeyboardInterrupt

    app = Project(shop, shop / ".agentfs", Config())
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(workspaces, "forget", cut_off)
        asyncio.run(app.tools.run(edit, {}, file="shop/cart.py", write=True))
    assert app.changes.is_cut_off
    assert "A tool run that was cut off has been finished" in remora("reject").stderr
    assert (shop / "shop" / "cart.py").read_text().endswith("# end\n")
    assert not app.changes.is_cut_off


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--file", "shop/cart.py", "-i", "count=many"], 1, "`count`: expected integer, got string"),
        (["--file", "shop/cart.py", "-i", "colour=1"], 1, "`colour` is not an argument"),
        ([], 3, "--node path:qualified.name"),
        (["--file", "shop/none.py"], 3, "shop/none.py"),
        (["--node", "shop/cart.py:none"], 3, "There is no code named `shop/cart.py:none`"),
        (["--file", "shop/cart.py", "-i", "count"], 3, "expected `name=value`"),
        (["--file", "shop/cart.py", "--limits", "huge"], 3, "expected one of `strict`, `default`, `permissive`"),
    ],
)
def test_a_mistake_of_the_author_is_told(remora: Remora, edit: Path, words: list[str], status: int, told: str) -> None:
    done = remora("tool", "run", str(edit), *words)
    assert done.returncode == status
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_bundled_tool_finds_its_agents_limits_and_programs(remora: Remora) -> None:
    done = remora("tool", "run", str(AGENTS / "lint" / "tools" / "run_linter.pym"), "--file", "shop/cart.py", "--json")
    told = json.loads(done.stdout)
    assert told["outcome"] == "partial"
    assert told["delta"]["knowledge"]["lint_errors_remaining"]["value"] > 0
    assert "ruff stdout" in told["outputs"]


def test_check_names_every_problem_of_every_script(remora: Remora, shop: Path, edit: Path) -> None:
    folder = edit.parent
    (folder / "bad.pym").write_text('from grail import Input, external\nx = Input("x")\ny = [1]\ndel y[0]\n1 + "a"\n')
    (folder / "host.pym").write_text(
        "from grail import external\n@external\nasync def steal(key: str) -> str: ...\nawait steal('a')\n"
    )
    done = remora("tool", "check", str(folder))
    assert done.returncode == 3
    told = done.stdout.splitlines()
    assert len([line for line in told if "bad.pym:" in line]) == 3
    assert any("host.pym:3:1: host function `steal` does not exist" in line for line in told)
    assert "3 scripts, 2 with problems" in done.stderr
    found = json.loads(remora("tool", "check", str(folder), "--json").stdout)
    assert [item["ok"] for item in found] == [True, False, False]
    assert found[1]["problems"][0] == {
        "line": 2,
        "column": 1,
        "what": "an input without a type",
        "hint": 'write `name: str = Input("name")`',
    }
    assert remora("tool", "check", str(edit)).returncode == 0
    assert remora("tool", "check", str(shop / "tests")).returncode == 3


def test_stubs_lie_where_the_author_says(remora: Remora, shop: Path, edit: Path) -> None:
    done = remora("tool", "stubs", str(edit), "--out", "stubs")
    assert done.stdout.strip() == "stubs/add_line/stubs.pyi"
    assert "count: int" in (shop / "stubs" / "add_line" / "stubs.pyi").read_text()
    assert "def Input" in (shop / "stubs" / "grail.pyi").read_text()


def test_a_link_below_a_named_folder_is_not_checked_and_not_quoted(remora: Remora, shop: Path, edit: Path) -> None:
    (shop / "private").write_text("import hunter2\n")
    (edit.parent / "theirs.pym").symlink_to(shop / "private")
    done = remora("tool", "check", str(edit.parent))
    assert "hunter2" not in done.stdout + done.stderr
    assert "theirs" not in done.stdout
