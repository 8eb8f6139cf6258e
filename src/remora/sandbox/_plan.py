"""What a program in the sandbox is to see, may use and may leave: the plan that `_jail` carries out."""

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
WORD = 100_000
"""Characters of one word of a command line: the kernel takes 128 KiB."""
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
SYSTEM_FILES = (
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
    *("/etc/mime.types", "/etc/os-release", "/etc/timezone"),
)
OWN_FILES = ("passwd", "group", "hosts", "nsswitch.conf")
"""Files of `/etc` that say nothing about this machine."""
LOADER = "import sys; sys.path.insert(0, sys.argv.pop(1)); import _jail; _jail.main(sys.argv[1:])"


@dataclass(frozen=True)
class Limits:
    """What all processes of one command may use together. Time and output are limited elsewhere."""

    memory: int = 2048 * MB
    """Bytes in use, private files included."""
    processes: int = 256
    disk: int = 512 * MB
    """Bytes in the private area, which is in memory."""
    address_space: int = 16 * 1024 * MB
    """Of each process. Generous, as allocators reserve far more than they use."""


@dataclass(frozen=True)
class Order:
    """One command for the sandbox."""

    root: Path
    over: Path | None
    python: Interpreter
    words: tuple[str, ...]
    artifacts: Mapping[str, str]
    limits: Limits
    module: str = "pytest"
    """What Python runs."""
    hidden: frozenset[str] = frozenset()
    """Paths in the project that are not to be seen."""


def make_plan(order: Order, mode: str, status: int, cgroup: int | None = None) -> dict[str, Any]:
    """The plan as `_jail` reads it. `status` and `cgroup` are descriptors that it has."""
    root = str(order.root)
    shown = [(path, path) for path in _shown(order.python, order.root)]
    own = [(str(PACKAGE / "_jail" / "etc" / name), f"/etc/{name}") for name in OWN_FILES]
    links = [*_system_links(), *order.python.links]
    return {
        "mode": mode,
        "parent": os.getpid(),
        "status": status,
        "cgroup": cgroup,
        "root": root,
        "cwd": root,
        "over": str(order.over) if order.over is not None else None,
        "hide": _hidden(order),
        "read": sorted([*shown, *own], key=lambda pair: pair[1]),
        "view": "copy",
        "inside": [str(path) for path in _venv_parts(order)],
        "links": links,
        "areas": ["/tmp"],  # noqa: S108
        "argv": [str(order.python.path), "-m", order.module, *order.words],
        "env": environment(order.python, home=HOME, temporary="/tmp"),  # noqa: S108
        "limits": asdict(order.limits),
        "artifacts": dict(order.artifacts),
        "may_read": [*(path for path, _ in shown), *(path for path, _ in links), "/etc", "/proc"],
        "may_write": [root, "/tmp", "/var/tmp", HOME, "/dev", OUT],  # noqa: S108
    }


def environment(python: Interpreter, *, home: str, temporary: str) -> dict[str, str]:
    """All that tests find in their environment: nothing of ours."""
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
    """The command line that carries the plan out."""
    return [sys.executable, "-I", "-S", "-c", LOADER, str(PACKAGE), *encode(plan)]


def encode(plan: Mapping[str, Any]) -> list[str]:
    """The plan as words of a command line."""
    text = marshal.dumps(dict(plan)).hex()
    return [text[at : at + WORD] for at in range(0, len(text), WORD)]


@dataclass(frozen=True)
class Outcome:
    """What `_jail` says about a plan that it carried out."""

    facts: Mapping[str, str]
    artifacts: Mapping[str, bytes]


def read_outcome(data: bytes) -> Outcome:
    """The result as it was written."""
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


def _shown(python: Interpreter, root: Path) -> list[str]:
    system = [path for path in (*SYSTEM_FOLDERS, *SYSTEM_FILES) if Path(path).exists() and not Path(path).is_symlink()]
    parts = [path for path in python.reads if path.exists() and not path.is_symlink()]
    return [*system, *(str(path) for path in parts if not _is_below(path, [root, *map(Path, system)]))]


def _venv_parts(order: Order) -> list[Path]:
    """Parts of the interpreter that lie in the project: a copy leaves them out, so they are shown."""
    venv = order.python.path.parent.parent
    return [venv] if venv != order.root and _is_below(venv, [order.root]) else []


def _system_links() -> list[tuple[str, str]]:
    links = [Path(path) for path in (*SYSTEM_FOLDERS, *SYSTEM_FILES) if Path(path).is_symlink()]
    return [(str(path), str(path.readlink())) for path in links]


def _hidden(order: Order) -> list[str]:
    names = set(order.hidden)
    state = order.over.parent.parent if order.over is not None else None
    if state is not None and state != order.root and _is_below(state, [order.root]):
        names.add(state.relative_to(order.root).as_posix())
    # What lies in a hidden folder is hidden with it.
    return sorted(name for name in names if not any(str(above) in names for above in Path(name).parents))


def _is_below(path: Path, places: Sequence[Path] | Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)
