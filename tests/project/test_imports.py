from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "remora"
HANDS = ("trace", "inference", "scripts", "sandbox", "workspaces", "engines", "discovery", "hub", "kv")


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_importing_remora_loads_no_hand_and_no_library() -> None:
    loaded = loaded_after("import remora")
    assert {name for name in loaded if name.startswith("remora")} == {
        "remora",
        "remora._lazy",
        "remora._version",
    }
    assert not loaded & {"pydantic", "orjson", "asyncio", "sqlite3"}


def test_importing_the_context_package_loads_none_of_its_parts() -> None:
    assert {name for name in loaded_after("import remora.context") if name.startswith("remora.context")} == {
        "remora.context"
    }


def test_the_packet_needs_no_hand() -> None:
    loaded = loaded_after("from remora.context import ContextManager")
    assert not {f"remora.{hand}" for hand in HANDS} & loaded


def test_listing_streams_loads_no_event_class_and_nothing_that_runs_agents(tmp_path: Path) -> None:
    list_streams = f"app.open_project(Path({str(tmp_path)!r})).library.agents()"
    loaded = loaded_after(f"from pathlib import Path\nfrom remora import app\nimport remora.cli._trace\n{list_streams}")
    assert "remora.trace.index.index" in loaded
    assert not {name for name in loaded if name.startswith(("openai", "tree_sitter", "remora.inference"))}
    assert not {"remora.events._types", "remora.context.models", "remora.ports", "remora.runner"} & loaded


@pytest.mark.parametrize("package", ["analysis", "app", "context", "events", "sandbox", "trace", "view"])
def test_every_public_name_of_a_lazy_package_is_listed_and_can_be_loaded(package: str) -> None:
    module = import_module(f"remora.{package}")
    assert {name for names in module._MODULES.values() for name in names.split()} == set(module.__all__)
    assert dir(module) == sorted(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_importing_changes_nothing_on_the_disk(tmp_path: Path) -> None:
    code = "import remora.app, remora.cli._main, remora.trace, remora.events"
    subprocess.run(
        [sys.executable, "-B", "-c", code], check=True, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": ""}
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["projection", "budget", "render", "summarizers"])
def test_the_fold_knows_no_clock_no_disk_and_no_chance(module: str) -> None:
    tree = ast.parse((SRC / "context" / f"{module}.py").read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert not imported & {"time", "os", "random", "secrets", "pathlib", "asyncio", "socket", "uuid"}
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not called & {"now", "today", "utcnow", "open"}


def test_only_the_app_and_the_doors_name_concrete_parts() -> None:
    for path in SRC.rglob("*.py"):
        room = path.relative_to(SRC).parts[0].removesuffix(".py")
        if room in ("app", "cli", "testing", "view", "context", "events", *HANDS):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith(tuple(f"remora.{hand}" for hand in HANDS)), f"{path}:{node.lineno}"
