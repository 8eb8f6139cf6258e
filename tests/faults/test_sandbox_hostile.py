"""Rows 22 and 24: hostile test code, plugins, settings and virtual environments get nothing that is not the project's.

The same project run without a sandbox does get out: so the attempts are real. There it only tries what harms no one.
"""

from __future__ import annotations

import json
import os
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from remora.errors import ToolFailed
from remora.sandbox import LocalSpawner
from sandbox.boxes import KINDS, NONE, any_box, box, no_plugins

ATTEMPTS = Path(__file__).with_name("hostile_project.py")
ARGV = ["pytest", "-q", "-s", "--no-header"]
CODE = "import attempts; attempts.main({where!r})\n"


@dataclass
class Trap:
    """A hostile project, and what it would touch if it got out."""

    root: Path
    secret: str
    listeners: list[socket.socket]

    def visitors(self) -> int:
        """How many came through one of the doors."""
        count = 0
        for listener in self.listeners:
            try:
                listener.accept()[0].close()
                count += 1
            except BlockingIOError:
                continue
        return count

    def try_everything(self) -> None:
        """For a sandbox only. Without one, the attempts would change this machine."""
        goal = json.loads((self.root / "goal.json").read_text())
        (self.root / "goal.json").write_text(json.dumps({**goal, "everything": True}))

    def outside(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in (self.root.parent / "outside").iterdir()}


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trap]:
    secret = f"canary-{secrets.token_hex(8)}"
    root = tmp_path / "project"
    for folder in ("tests", ".git", ".agentfs/traces", ".agentfs/workspaces/01A", "../outside", "../home/.ssh"):
        (root / folder).resolve().mkdir(parents=True)
    for name in (".git/config", ".agentfs/traces/x.jsonl", "../outside/secret", "../home/.ssh/id_ed25519"):
        (root / name).write_text(secret)
    (root / "../outside/victim").write_text("")
    (root / "link").symlink_to(tmp_path / "outside")
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in _listeners(root)]
        goal = {"terces": secret[::-1], "outside": str(tmp_path / "outside"), "home": str(tmp_path / "home")}
        goal |= {"root": str(root), "pid": os.getpid(), "abstract": listeners[1].getsockname()[1:].decode()}
        goal |= {"tcp": listeners[0].getsockname()[1], "everything": False}
        (root / "goal.json").write_text(json.dumps(goal))
        shutil.copy(ATTEMPTS, root / "attempts.py")
        (root / "pytest.ini").write_text(no_plugins())
        (root / "tests" / "test_a.py").write_text("def test_a():\n    assert True\n")
        yield Trap(root, secret, listeners)


def _listeners(root: Path) -> Iterator[socket.socket]:
    folder = os.getcwd()
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 0)),
        (socket.AF_UNIX, f"\0remora-{os.getpid()}-{secrets.token_hex(4)}"),
        (socket.AF_UNIX, "door"),
    ):
        listener = socket.socket(family, socket.SOCK_STREAM)
        os.chdir(root)  # a path of a socket may not be long
        listener.bind(address)
        os.chdir(folder)
        listener.listen()
        listener.setblocking(False)
        yield listener


def conftest(root: Path) -> None:
    (root / "conftest.py").write_text(CODE.format(where="conftest"))
    (root / "tests" / "test_a.py").write_text("def test_a():\n    import attempts; attempts.main('test')\n")


def plugin_by_settings(root: Path) -> None:
    (root / "evil.py").write_text(CODE.format(where="plugin"))
    (root / "pytest.ini").unlink()
    (root / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\n"
        "addopts = '-p evil --basetemp=/usr --rootdir=/ -o cache_dir=../outside/cache'\n"
        f"pythonpath = ['.', '{root}/../outside', '/root']\n"
    )


def sitecustomize(root: Path) -> None:
    site = _venv(root)
    (site / "sitecustomize.py").write_text(
        f"import sys; sys.path.insert(0, {str(root)!r})\n" + CODE.format(where="site")
    )
    (site / "pytest" / "__main__.py").write_text("")


def python_that_is_a_script(root: Path) -> None:
    python = _venv(root).parents[2] / "bin" / "python"
    python.unlink()
    python.write_text(
        "#!/bin/sh\n"
        f"cat {root.parent}/outside/secret {root}/.git/config && echo LEAK script: read\n"
        f"echo x > {root.parent}/outside/victim && echo LEAK script: write\n"
        "echo TRIED 2 script\n"
    )
    python.chmod(0o755)


def child_process(root: Path) -> None:
    (root / "conftest.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, 'attempts.py', 'child'], start_new_session=True)\n"
    )


def _venv(root: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True)
    site = next((root / ".venv").glob("lib/python3.*/site-packages"))
    (site / "pytest").mkdir()
    (site / "pytest" / "__init__.py").write_text("")
    return site


PROJECTS: dict[str, Callable[[Path], None]] = {
    project.__name__: project
    for project in (conftest, plugin_by_settings, sitecustomize, python_that_is_a_script, child_process)
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hostile", PROJECTS)
async def test_a_hostile_project_gets_nothing(
    hostile: str, kind: str, trap: Trap, record_property: Callable[[str, object], None]
) -> None:
    report = box(kind)
    trap.try_everything()
    PROJECTS[hostile](trap.root)
    over = trap.root / ".agentfs" / "workspaces" / "01A"
    done = await LocalSpawner(report=report).run(ARGV, cwd=trap.root, over=over, limit_s=120)
    said = done.stdout.decode()
    tried = [line for line in said.splitlines() if "TRIED " in line]
    assert tried, said + done.stderr.decode()
    assert [line for line in said.splitlines() if "LEAK " in line] == []
    assert trap.secret.encode() not in done.stdout + done.stderr
    assert trap.visitors() == 0
    assert trap.outside() == {"secret": trap.secret, "victim": ""}
    record_property(f"row 22 {kind} {hostile}", f"{' + '.join(tried)}: 0 got out")


async def test_without_a_sandbox_the_same_project_gets_out(trap: Trap) -> None:
    conftest(trap.root)
    done = await LocalSpawner(report=NONE, allow_unsandboxed=True).run(ARGV, cwd=trap.root, limit_s=120)
    leaks = {line.partition(": ")[2] for line in done.stdout.decode().splitlines() if "LEAK " in line}
    assert leaks == {"read outside", "write outside", "tcp to the machine", "abstract socket", "see Remora's process"}


async def test_without_a_sandbox_and_the_users_word_nothing_of_it_runs(trap: Trap) -> None:
    (trap.root / "conftest.py").write_text(CODE.format(where="conftest"))
    with pytest.raises(ToolFailed, match="no sandbox works here"):
        await LocalSpawner(report=NONE).run(ARGV, cwd=trap.root)
    assert trap.visitors() == 0


async def test_a_plugin_that_the_settings_require_is_just_missing(trap: Trap) -> None:
    (trap.root / "pytest.ini").write_text("[pytest]\nrequired_plugins = evil-plugin\n")
    done = await LocalSpawner(report=any_box()).run(ARGV, cwd=trap.root)
    assert done.returncode != 0
    assert b"evil-plugin" in done.stderr


async def test_no_key_of_ours_is_in_a_sandboxed_environment(
    trap: Trap, record_property: Callable[[str, object], None]
) -> None:
    """Row 24, for children: what `os.environ` and every `/proc/*/environ` hold, at the top and in their children."""
    (trap.root / "conftest.py").write_text(
        "import os, glob\nprint(dict(os.environ))\n"
        "for name in glob.glob('/proc/*/environ'):\n"
        "    try: print(open(name).read())\n"
        "    except OSError: pass\n"
        "os.system('env')\n"
    )
    done = await LocalSpawner(report=any_box()).run(ARGV, cwd=trap.root)
    assert b"PYTHONDONTWRITEBYTECODE" in done.stdout
    assert done.stdout.count(trap.secret.encode()) + done.stderr.count(trap.secret.encode()) == 0
    record_property("row 24 sandboxed children", "0 hits")


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_sandbox_costs(
    kind: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Processor time over plain pytest; the clock on the wall says more about what else runs here."""
    report = box(kind)
    (tmp_path / "pytest.ini").write_text(no_plugins())
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert True\n")
    plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    clean = {"PYTHONDONTWRITEBYTECODE": "1"}
    costs: dict[str, list[tuple[float, float]]] = {"plain": [], "sandboxed": []}
    for _ in range(3):
        before = _used()
        subprocess.run(plain, cwd=tmp_path, capture_output=True, check=True, env=clean)  # noqa: ASYNC221 - in its turn
        costs["plain"].append(_since(before))
        before = _used()
        done = await LocalSpawner(report=report).run(["pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path)
        costs["sandboxed"].append(_since(before))
        assert done.returncode == 0
    cpu, wall = (_difference(costs, at) for at in (0, 1))
    record_property(f"row 22 overhead {kind}", f"{cpu:.0f} ms of processor time, {wall:.0f} ms on the wall (best of 3)")


def _used() -> tuple[float, float]:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime, time.perf_counter()


def _since(before: tuple[float, float]) -> tuple[float, float]:
    now = _used()
    return now[0] - before[0], now[1] - before[1]


def _difference(costs: dict[str, list[tuple[float, float]]], at: int) -> float:
    best = {name: min(run[at] for run in runs) for name, runs in costs.items()}
    return 1000 * (best["sandboxed"] - best["plain"])
