"""Finds the Python that runs the project's tests, and the paths it must be able to read.

A virtual environment in a project is untrusted data. The paths it names are mounted only if they are really a Python
installation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from remora.errors import ToolFailed

VENVS = (".venv", "venv")
SYSTEM = (Path("/usr"), Path("/usr/local"))


@dataclass(frozen=True)
class Interpreter:
    """A Python that has the module to run."""

    path: Path
    reads: tuple[Path, ...] = ()
    """Folders and files outside the system folders that it needs."""
    links: tuple[tuple[str, str], ...] = ()
    """Other paths that lead to it: (link, target)."""


def find_python(root: Path, module: str = "pytest") -> Interpreter:
    """Find the project's own Python if it has the module, else ours. Raises `ToolFailed` saying how to install one."""
    for name in VENVS:
        venv = root / name
        if (
            venv.is_dir()
            and not venv.is_symlink()
            and any(venv.glob(f"lib/python3.*/site-packages/{module}/__init__.py"))
        ):
            return _with_base(venv / "bin" / "python", root, ())
    own = find_spec(module)
    prefixes = (Path(sys.prefix), Path(sys.base_prefix))
    if own is not None and own.origin and any(Path(own.origin).is_relative_to(prefix) for prefix in prefixes):
        return _with_base(Path(sys.executable), root, _environment_paths(Path(sys.prefix)))
    raise ToolFailed(
        f"`{module}` is not installed: neither the project's `.venv` nor the Python that runs Remora has it",
        hint=f"Install it in the project: `python -m venv .venv && .venv/bin/pip install {module}`",
    )


def _environment_paths(prefix: Path) -> tuple[Path, ...]:
    names = ("bin", "lib", "lib64", "pyvenv.cfg")
    return tuple(prefix / name for name in names) if sys.prefix != sys.base_prefix else ()


def _with_base(python: Path, root: Path, parts: tuple[Path, ...]) -> Interpreter:
    real = python.resolve()
    base = real.parent.parent
    if real.is_relative_to(root) or base in SYSTEM:
        return Interpreter(python, parts)
    if not _is_installation(base, root):
        raise ToolFailed(
            f"`{python}` leads to `{real}`, which is not a Python installation",
            hint="Recreate the virtual environment: `python -m venv --clear .venv`",
        )
    links = [(str(name), str(base)) for name in _installation_paths(python) if name != base and name.resolve() == base]
    return Interpreter(python, (*parts, *(base / name for name in ("bin", "lib", "lib64"))), tuple(links))


def _is_installation(base: Path, root: Path) -> bool:
    """Whether `base` looks like a Python installation and contains neither the user's home nor the project."""
    holds = any(place.is_relative_to(base) for place in (Path.home().resolve(), root))
    return not holds and any(base.glob("lib/python3.*/os.py"))


def _installation_paths(python: Path) -> Iterator[Path]:
    """Every path of the installation according to links and `pyvenv.cfg`."""
    config = python.parent.parent / "pyvenv.cfg"
    if config.is_file():
        for line in config.read_text(encoding="utf-8", errors="replace")[:10_000].splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home" and value.strip().startswith("/"):
                yield Path(os.path.normpath(value.strip())).parent
    for _ in range(40):
        if not python.is_symlink():
            return
        python = Path(os.path.normpath(python.parent / python.readlink()))
        yield python.parent.parent
