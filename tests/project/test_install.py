from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with nothing but the wheel and its two dependencies."""
    folder = tmp_path_factory.mktemp("bare")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([*pip_for(python), "install", "-q", wheel], check=True, capture_output=True)
    return python


def pip_for(python: Path) -> list[str]:
    """The pip of this environment, at work in another one: to install pip there takes longer than all the rest."""
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]


@pytest.mark.faults
def test_the_bare_wheel_imports_with_nothing_but_pydantic_and_orjson(bare: Path) -> None:
    code = "import remora, remora.context, remora.events, remora.trace; remora.TwoTrack; remora.context.ContextManager"
    subprocess.run([bare, "-c", code], check=True)
    listed = subprocess.run([*pip_for(bare), "list", "--format=freeze"], check=True, capture_output=True, text=True)
    names = {line.split("==")[0].lower().replace("_", "-") for line in listed.stdout.splitlines()}
    assert names == {
        "remora-agents",
        "annotated-types",
        "orjson",
        "pydantic",
        "pydantic-core",
        "typing-extensions",
        "typing-inspection",
    }


def test_both_tracks_work_on_the_bare_wheel(bare: Path, tmp_path: Path) -> None:
    code = (
        "import asyncio, remora\n"
        "from remora.events import Call\n"
        "async def main():\n"
        "    async with remora.TwoTrack(goal='g', state_dir='state') as tt:\n"
        "        await tt.request()\n"
        "        await tt.call(Call(call_id='1', tool='t'), lambda: {'summary': 'done'})\n"
        "        print(tt.packet.recent_actions[0].summary)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([bare, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "done\n"


def test_the_command_of_the_bare_wheel_says_what_to_install(bare: Path) -> None:
    done = subprocess.run([bare.parent / "remora"], check=False, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr == (
        'error: The `remora` command is not installed\nhint: Install it with `pip install "remora-agents[agents]"`\n'
    )


def test_the_wheel_ships_the_pages_of_the_viewer(bare: Path) -> None:
    code = (
        "import remora.view, pathlib; base = pathlib.Path(remora.view.__file__).parent\n"
        "print(*(path.relative_to(base) for path in base.rglob('*.*')))"
    )
    done = subprocess.run([bare, "-c", code], check=True, capture_output=True, text=True)
    assert {"static/view.css", "static/view.js", "templates/agent.html", "templates/turn.html"} <= set(
        done.stdout.split()
    )


def test_the_wheel_ships_the_agents(bare: Path) -> None:
    code = (
        "from remora.app import bundled_agents as agents; import remora, pathlib\n"
        "shared = pathlib.Path(remora.__file__).parent / 'scripts' / 'shared'\n"
        "print(*(p.relative_to(base) for base in (agents(), shared) for p in base.rglob('*.*')))"
    )
    done = subprocess.run([bare, "-c", code], check=True, capture_output=True, text=True)
    shipped = set(done.stdout.split())
    assert {"lint/subagent.yaml", "lint/tools/run_linter.pym", "lint/tools/findings.py"} <= shipped
    assert {"test/sandboxed/changes.py", "samples.py", "sandbox.py", "README.md"} <= shipped


def test_the_wheel_of_the_core_holds_nothing_of_the_lab(bare: Path) -> None:
    (wheel,) = bare.parents[2].glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    folders = {"/".join(name.split("/")[:2]) for name in names}
    assert "remora/app" in folders
    assert not folders & {"remora/bench", "remora/train", "remora/training"}
    assert not [name for name in names if name.startswith("remora_lab") or "scenarios" in name]
    assert "remora/inference/adapters/decide.gguf" in names
    assert "remora/inference/adapters/requests.gguf" in names
    assert "remora/inference/adapters/decide-qwen2.5-coder-1.5b.gguf" in names
