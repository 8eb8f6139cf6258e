"""The plan for a sandboxed program: what it can see, use and leave. `_jail` applies it."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from remora.sandbox._python import Interpreter

MB = 1024 * 1024
HOME = "/home/somebody"
OUT = "/run/remora"
PACKAGE = Path(__file__).parent
MAX_ARGUMENT = 100_000
"""Characters of one command-line argument: the kernel accepts 128 KiB."""
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
SYSTEM_FILES = (
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
    *("/etc/mime.types", "/etc/os-release", "/etc/timezone"),
)
OWN_FILES = ("passwd", "group", "hosts", "nsswitch.conf")
"""Files of `/etc` replaced by neutral ones, which say nothing about this machine."""
LOADER = "import sys; sys.path.insert(0, sys.argv.pop(1)); import _jail; _jail.main(sys.argv[1:])"


@dataclass(frozen=True)
class Limits:
    """Resources that all processes of one command may use together. Time and output are limited elsewhere."""

    memory: int = 2048 * MB
    """Bytes of memory, private files included."""
    processes: int = 256
    disk: int = 512 * MB
    """Bytes of private files, which are kept in memory."""
    address_space: int = 16 * 1024 * MB
    """Bytes per process. Generous, because allocators reserve far more than they use."""


@dataclass(frozen=True)
class Command:
    """One command for the sandbox."""

    root: Path
    over: Path | None
    python: Interpreter
    words: tuple[str, ...]
    artifacts: Mapping[str, str]
    limits: Limits
    module: str = "pytest"
    """The module that Python runs."""
    hidden: frozenset[str] = frozenset()
    """Paths in the project to hide."""


def make_plan(command: Command, mode: str, status: int, cgroup: int | None = None) -> dict[str, Any]:
    """The plan for `_jail`. `status` and `cgroup` are descriptors that it inherits."""
    root = str(command.root)
    shown = [(path, path) for path in _readable_paths(command.python, command.root)]
    own = [(str(PACKAGE / "_jail" / "etc" / name), f"/etc/{name}") for name in OWN_FILES]
    links = [*_system_links(), *command.python.links]
    return {
        "mode": mode,
        "parent": os.getpid(),
        "status": status,
        "cgroup": cgroup,
        "root": root,
        "cwd": root,
        "over": str(command.over) if command.over is not None else None,
        "hide": _hidden(command),
        "read": sorted([*shown, *own], key=lambda pair: pair[1]),
        "view": "copy",
        "inside": [str(path) for path in _venv_parts(command)],
        "links": links,
        "areas": ["/tmp"],  # noqa: S108
        "argv": [str(command.python.path), "-m", command.module, *command.words],
        "env": environment(command.python, home=HOME, temporary="/tmp"),  # noqa: S108
        "limits": asdict(command.limits),
        "artifacts": dict(command.artifacts),
        "may_read": [*(path for path, _ in shown), *(path for path, _ in links), "/etc", "/proc"],
        "may_write": [root, "/tmp", "/var/tmp", HOME, "/dev", OUT],  # noqa: S108
    }


def environment(python: Interpreter, *, home: str, temporary: str) -> dict[str, str]:
    """The whole environment of the tests: nothing of ours."""
    return {
        "PATH": f"{python.path.parent}:/usr/bin:/bin",
        "HOME": home,
        "USER": "somebody",
        "LOGNAME": "somebody",
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def launch(plan: Mapping[str, Any]) -> list[str]:
    """The command line that runs the plan."""
    return [sys.executable, "-I", "-S", "-c", LOADER, str(PACKAGE), *encode(plan)]


def encode(plan: Mapping[str, Any]) -> list[str]:
    """Encode the plan as command-line arguments."""
    text = marshal.dumps(dict(plan)).hex()
    return [text[at : at + MAX_ARGUMENT] for at in range(0, len(text), MAX_ARGUMENT)]


@dataclass(frozen=True)
class Outcome:
    """What `_jail` reports about a plan it ran."""

    facts: Mapping[str, str]
    artifacts: Mapping[str, bytes]


def read_outcome(data: bytes) -> Outcome:
    """Parse the report."""
    facts: dict[str, str] = {}
    artifacts: dict[str, bytes] = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, _, text = line.decode(errors="replace").partition(" ")
        if name == "artifact":
            size, _, artifact = text.partition(" ")
            artifacts[artifact], data = data[: int(size)], data[int(size) :]
        else:
            facts[name] = text
    return Outcome(facts, artifacts)


def _readable_paths(python: Interpreter, root: Path) -> list[str]:
    system = [path for path in (*SYSTEM_FOLDERS, *SYSTEM_FILES) if Path(path).exists() and not Path(path).is_symlink()]
    parts = [path for path in python.reads if path.exists() and not path.is_symlink()]
    return [*system, *(str(path) for path in parts if not _is_below(path, [root, *map(Path, system)]))]


def _venv_parts(command: Command) -> list[Path]:
    """Parts of the interpreter inside the project. A copy leaves them out, so they are mounted."""
    venv = command.python.path.parent.parent
    return [venv] if venv != command.root and _is_below(venv, [command.root]) else []


def _system_links() -> list[tuple[str, str]]:
    links = [Path(path) for path in (*SYSTEM_FOLDERS, *SYSTEM_FILES) if Path(path).is_symlink()]
    return [(str(path), str(path.readlink())) for path in links]


def _hidden(command: Command) -> list[str]:
    names = set(command.hidden)
    state = command.over.parent.parent if command.over is not None else None
    if state is not None and state != command.root and _is_below(state, [command.root]):
        names.add(state.relative_to(command.root).as_posix())
    # A hidden folder hides everything below it.
    return sorted(name for name in names if not any(str(above) in names for above in Path(name).parents))


def _is_below(path: Path, places: Sequence[Path] | Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)
