"""What scripts may ask of the host: files, searches and code of a real workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from remora.discovery import PythonCode
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import Completed
from remora.scripts import _host_files
from remora.scripts._host import SIGNATURES, Host
from remora.scripts._modules import ScriptFiles
from remora.workspaces import OverlayWorkspace

SHOP = b"import os\n\n\nclass Shop:\n    def total(self, items):\n        return sum(items)\n"


class Asked:
    """A spawner that starts nothing and keeps what it was asked for."""

    over: Path | None = None

    async def run(
        self, argv: Sequence[str], *, cwd: Path, stdin: bytes = b"", limit_s: float = 30.0, over: Path | None = None
    ) -> Completed:
        self.over = over
        return Completed(tuple(argv), 0, b"", b"", artifacts={"junit.xml": b"<x/>"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, data in {
        "src/shop.py": SHOP,
        "src/deep/er/a.py": b"x = 1\n",
        "tests/test_shop.py": b"import shop\n",
    }.items():
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / name).write_bytes(data)
    (tmp_path / "p/data.bin").write_bytes(b"import\0os")
    return tmp_path / "p"


def make(root: Path, spawner: Any = None, beside: Path | None = None) -> Host:
    node = CodeNode(
        node_id="src/shop.py:Shop.total",
        node_type=NodeType.METHOD,
        name="total",
        file_path=Path("src/shop.py"),
        lines=LineRange(first=5, last=6),
        owned=(LineRange(first=5, last=6),),
        text="",
    )
    workspace = OverlayWorkspace(root, root.parent / "state/workspaces/A")
    code = PythonCode()
    return Host(
        workspace,
        spawner or Asked(),
        commands=("ruff",),
        root=root,
        node=node,
        code=code,
        script_files=ScriptFiles(beside),
    )


@pytest.fixture
def host(root: Path) -> dict[str, Any]:
    return make(root).functions()


def test_every_host_function_has_the_parameters_that_are_said(host: dict[str, Any]) -> None:
    for name, (parameters, required) in SIGNATURES.items():
        code, defaults = host[name].__func__.__code__, host[name].__func__.__defaults__ or ()
        assert code.co_varnames[1 : code.co_argcount] == parameters
        assert len(parameters) - len(defaults) == required


def test_every_host_function_is_in_the_reference() -> None:
    page = Path(__file__).parents[2].joinpath("docs/reference/host-functions.md").read_text()
    assert [name for name in SIGNATURES if f"| `{name}(" not in page] == []


async def test_files_are_listed_and_found_with_the_agents_own(host: dict[str, Any]) -> None:
    await host["write_file"]("tests/test_new.py", "import os\n")
    assert await host["list_dir"]() == ["data.bin", "src/", "tests/"]
    assert await host["list_dir"]("tests") == ["test_new.py", "test_shop.py"]
    assert await host["search_files"]("test_*.py") == ["tests/test_new.py", "tests/test_shop.py"]
    assert await host["search_files"]("src/*.py") == ["src/shop.py"]
    assert await host["search_files"]("src/**/*.py") == ["src/deep/er/a.py", "src/shop.py"]
    assert await host["search_files"]("**/er/?.py") == ["src/deep/er/a.py"]
    assert await host["search_files"]("nothing[.py") == []


async def test_lines_are_found_by_an_expression_in_text_files(host: dict[str, Any]) -> None:
    assert await host["search_content"](r"^import (os|shop)$") == [
        {"path": "src/shop.py", "line": 1, "text": "import os"},
        {"path": "tests/test_shop.py", "line": 1, "text": "import shop"},
    ]
    assert await host["search_content"]("import", "tests/*") == [
        {"path": "tests/test_shop.py", "line": 1, "text": "import shop"}
    ]
    assert await host["search_content"]("(?i)SHOP:", "*.py") == [
        {"path": "src/shop.py", "line": 4, "text": "class Shop:"}
    ]


async def test_a_command_sees_a_file_as_the_agent_read_it_though_it_was_saved_since(root: Path) -> None:
    class Looking(Asked):
        seen: bytes = b""

        async def run(self, argv: Sequence[str], *, over: Path | None = None, **more: Any) -> Completed:
            assert over is not None
            self.seen = (over / "src/shop.py").read_bytes()
            return await super().run(argv, over=over, **more)

    spawner = Looking()
    host = make(root, spawner).functions()
    await host["read_file"]("src/shop.py")
    (root / "src/shop.py").write_bytes(b"# saved meanwhile\n")
    await host["run_command"](["ruff", "check"])
    assert spawner.seen == SHOP
    assert spawner.over is not None
    assert not spawner.over.exists()


async def test_a_file_that_was_saved_after_the_agent_began_must_be_read_before_it_is_changed(
    host: dict[str, Any], root: Path
) -> None:
    (root / "src/shop.py").write_bytes(b"# saved meanwhile\n")
    with pytest.raises(PermissionError, match="read it first"):
        await host["replace_lines"]("src/shop.py", 1, 1, "import sys")
    with pytest.raises(PermissionError, match="read it first"):
        await host["write_file"]("src/shop.py", "import sys\n")


async def test_a_search_is_bounded(host: dict[str, Any], root: Path) -> None:
    (root / "many.py").write_text("hit\n" * 5000)
    (root / "large.py").write_bytes(b"hit\n" * 300_000)
    found = await host["search_content"]("hit")
    assert len(found) == _host_files.MAX_HITS
    assert {hit["path"] for hit in found} == {"many.py"}


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}", "((a*)*)*$", r"(?:a?){50}a{50}$"])
async def test_no_expression_holds_the_host(host: dict[str, Any], root: Path, pattern: str) -> None:
    (root / "bomb.py").write_text("a" * 5000 + "b\n")
    async with asyncio.timeout(_host_files.SEARCH_S + 5):
        await host["search_content"](pattern, "bomb.py")


async def test_no_glob_holds_the_host(host: dict[str, Any], root: Path) -> None:
    (root / ("a" * 200)).write_text("x")
    async with asyncio.timeout(10):
        assert await host["search_files"]("*a" * 40 + "b") == []
        assert await host["search_files"]("**/" * 60 + "zz") == []


async def test_a_search_that_takes_too_long_says_so(
    host: dict[str, Any], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_host_files, "SEARCH_S", -1.0)
    with pytest.raises(OSError, match="narrow it with `glob`"):
        await host["search_content"]("x")


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "", "a" * 1001, "x{1001}"])
async def test_an_expression_that_is_not_taken_is_a_value_error(host: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^pattern: "):
        await host["search_content"](pattern)


async def test_a_command_sees_the_changed_files_and_gives_its_artifacts(root: Path) -> None:
    asked = Asked()
    done = await make(root, asked).functions()["run_command"](["ruff", "check"])
    assert asked.over == root.parent / "state/workspaces/A"
    assert done["artifacts"] == {"junit.xml": "<x/>"}


async def test_facts_are_those_of_the_agents_own_node_as_it_is_now(host: dict[str, Any]) -> None:
    facts = await host["node_facts"]("src/shop.py")
    assert (facts["node_id"], facts["signature"]) == ("src/shop.py:Shop.total", "def total(self, items)")
    await host["edit_node"]("src/shop.py", "docstring", "Sum up.", "Shop")
    await host["edit_node"]("src/shop.py", "docstring", "Add all `items`.")
    facts = await host["node_facts"]("src/shop.py")
    assert (facts["first"], facts["docstring"], facts["docstring_lines"]) == (7, "Add all `items`.", [8, 8])
    assert (await host["node_facts"]("src/shop.py", "src/shop.py"))["kind"] == "file"
    assert (await host["node_facts"]("src/shop.py", "src/shop.py:Shop"))["docstring"] == "Sum up."


async def test_lines_and_parts_are_edited_in_the_workspace_only(host: dict[str, Any], root: Path) -> None:
    await host["replace_lines"]("src/shop.py", 1, 2, "")
    await host["edit_node"]("src/shop.py", "body", "return len(items)")
    assert "return len(items)" in await host["read_file"]("src/shop.py")
    assert (root / "src/shop.py").read_bytes() == SHOP


@pytest.mark.parametrize(
    ("name", "args", "kind"),
    [
        ("node_facts", ["src/deep/er/a.py"], ValueError),
        ("node_facts", ["src/shop.py", "Shop.none"], ValueError),
        ("node_facts", ["data.bin", "x"], ValueError),
        ("node_facts", ["../x.py", "x"], PermissionError),
        ("node_facts", ["none.py", "x"], FileNotFoundError),
        ("edit_node", ["src/shop.py", "body", "return ("], ValueError),
        ("edit_node", ["src/shop.py", "docstring", 3], TypeError),
        ("edit_node", ["src/shop.py", "docstring", "\ud800"], ValueError),
        ("replace_lines", ["src/shop.py", "1", 2, ""], TypeError),
        ("replace_lines", ["src/shop.py", 1, 200, ""], ValueError),
        ("list_dir", ["../.."], PermissionError),
        ("list_dir", ["none"], FileNotFoundError),
        ("search_files", [3], TypeError),
        ("search_files", [""], ValueError),
    ],
)
async def test_what_is_refused_is_an_ordinary_exception_and_changes_nothing(
    host: dict[str, Any], name: str, args: list[Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        await host[name](*args)
    assert await host["read_file"]("src/shop.py") == SHOP.decode()


async def test_what_held_the_projects_code_is_attached(root: Path) -> None:
    class Unheld(Asked):
        async def run(self, argv: Sequence[str], **_: Any) -> Completed:
            return Completed(tuple(argv), 0, b"", b"", sandbox="none")

    host = make(root, Unheld())
    await host.run_command(["ruff"])
    assert host.outputs == [("ruff sandbox", b"none")]


BAD_NAMES = ["../shop.py", "/etc/passwd", "a/b.py", "..", ".", "", "sandboxed/", "sandboxed/..", "sandboxed/a/b.py"]


@pytest.mark.parametrize("name", [*BAD_NAMES, "sandboxed/../tools/helper.py", "tools/helper.py", "helper.py\0"])
async def test_a_script_reads_files_beside_it_and_in_sandboxed_and_no_others(root: Path, name: str) -> None:
    for folder in ("tools", "sandboxed"):
        (root / folder).mkdir()
        (root / folder / "helper.py").write_text(f"print('é {folder}')\n")
    host = make(root, beside=root / "tools").functions()
    assert await host["read_beside"]("helper.py") == "print('é tools')\n"
    assert await host["read_beside"]("sandboxed/helper.py") == "print('é sandboxed')\n"
    with pytest.raises((PermissionError, IsADirectoryError)):
        await host["read_beside"](name)
    for missing in ("missing.py", "sandboxed/missing.py"):
        with pytest.raises(FileNotFoundError):
            await host["read_beside"](missing)


async def test_a_script_without_a_sandboxed_folder_is_told_that_the_file_is_missing(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match="in the agent's folder"):
        await make(root, beside=root / "src").functions()["read_beside"]("sandboxed/helper.py")


async def test_a_link_that_leads_out_of_the_agents_folders_is_not_followed(root: Path) -> None:
    (root / "tools").mkdir()
    (root / "tools" / "out.py").symlink_to(root / "src" / "shop.py")
    (root / "sandboxed").symlink_to(root / "src")
    for name in ("out.py", "sandboxed/shop.py"):
        with pytest.raises(PermissionError, match="is a link"):
            await make(root, beside=root / "tools").functions()["read_beside"](name)


async def test_a_command_with_the_same_input_and_files_runs_once(root: Path) -> None:
    class Counting(Asked):
        times = 0

        async def run(self, argv: Sequence[str], **more: Any) -> Completed:
            self.times += 1
            return await super().run(argv, **more)

    spawner = Counting()
    host = make(root, spawner).functions()
    await host["run_command"](["ruff", "check"], files={"new.py": "x = 1\n"})
    await host["run_command"](["ruff", "check"], files={"new.py": "x = 1\n"})
    assert spawner.times == 1
    await host["run_command"](["ruff", "check"], files={"new.py": "x = 2\n"})
    await host["run_command"](["ruff", "check"], stdin="x", files={"new.py": "x = 2\n"})
    assert spawner.times == 3
    await host["read_file"]("src/shop.py")
    await host["run_command"](["ruff", "check"])
    await host["write_file"]("src/shop.py", "x = 3\n")
    await host["run_command"](["ruff", "check"])
    assert spawner.times == 5
