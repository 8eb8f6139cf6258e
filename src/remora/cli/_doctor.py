"""What this machine has, and what anything missing would be needed for."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import metadata

from remora._version import __version__
from remora.app import sandbox_name


@dataclass(frozen=True)
class Finding:
    """One line of `remora doctor`."""

    part: str
    ok: bool
    detail: str
    needed_for: str = ""


def diagnose() -> list[Finding]:
    """What this machine has, part by part, and what anything missing would be needed for."""
    found = [Finding("python", True, platform.python_version()), Finding("remora", True, __version__)]
    found += [_package(name, extra) for extra, names in _EXTRAS.items() for name in names]
    found.append(_sandbox())
    return found


_EXTRAS = {
    "agents": ("openai", "pydantic-monty", "tree-sitter", "tree-sitter-python", "ruff", "typer", "rich", "tokenizers"),
    "embedded": ("xllamacpp",),
    "view": ("starlette", "uvicorn", "sse-starlette"),
}


def _package(name: str, extra: str) -> Finding:
    try:
        return Finding(name, True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", f'pip install "remora-agents[{extra}]"')


def _sandbox() -> Finding:
    found = sandbox_name()
    detail = found if found != "none" else "neither bubblewrap nor Landlock works here"
    return Finding("OS sandbox", found != "none", detail, "for the `test` operation, which is planned")
