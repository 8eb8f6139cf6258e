"""`remora doctor`: what is installed, and what each missing part is needed for."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from remora._version import __version__
from remora.app import ModelHere, best_fit, free_memory, models_here, sandbox_report
from remora.errors import RemoraError

if TYPE_CHECKING:
    from remora.sandbox import SandboxReport


BUSY = 0.2
"""Share of the machine above which a measurement is called disturbed."""


@dataclass(frozen=True)
class Finding:
    """One line of `remora doctor`."""

    part: str
    ok: bool
    detail: str
    needed_for: str = ""


def diagnose() -> list[Finding]:
    """Check each part of the installation."""
    found = [Finding("python", True, platform.python_version()), Finding("remora", True, __version__)]
    found += [_package(name, extra) for extra, names in _EXTRAS.items() for name in names]
    return [*found, *_sandbox(), *_models()]


_EXTRAS = {
    "agents": ("openai", "pydantic-monty", "tree-sitter", "tree-sitter-python", "ruff", "typer", "rich", "tokenizers"),
    "embedded": ("xllamacpp",),
}


def _package(name: str, extra: str) -> Finding:
    try:
        return Finding(name, True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", f'pip install "remora-agents[{extra}]"')


def _models() -> list[Finding]:
    """The models that are here, how fast they are, and which one fits."""
    try:
        here, free = models_here(), free_memory()
    except RemoraError as error:
        return [Finding("models", False, error.message, error.hint or "")]
    best = best_fit(here, free)
    room = f" of {free / 1e9:.1f} GB free" if free is not None else ""
    fits = Finding("model that fits", best is not None, "none is here" if best is None else "", "remora model pull")
    if best is not None:
        need = f"{best.name}, needs about {best.memory / 1e9:.1f} GB{room}"
        fits = Finding("model that fits", True, need, f"remora analyze src/ --model {best.name}")
    return [fits, *(_model(model) for model in here)]


def _model(model: ModelHere) -> Finding:
    part, speed = f"  {model.name}", model.speed
    if model.path is None:
        return Finding(part, False, "its weights are not here", f"remora model pull {model.name}")
    if speed is None:
        return Finding(part, True, "here, not measured yet", "remora doctor --measure")
    busy = f", measured while {speed.busy:.0%} of the machine was busy" if speed.busy >= BUSY else ""
    return Finding(
        part,
        True,
        f"reads {speed.reads:.0f} and writes {speed.writes:.0f} tokens/s with {speed.threads} "
        f"thread{'s' if speed.threads > 1 else ''}; a decision takes about {model.warm_s:.0f} s, "
        f"the first one {model.cold_s:.0f} s ({model.measured}{busy})",
    )


def _sandbox() -> list[Finding]:
    """The sandbox that Remora uses, then every candidate."""
    report = sandbox_report()
    applies = report.applies
    found = [
        Finding(
            "OS sandbox", applies != "none", applies if applies != "none" else "none works here", _sandbox_hint(applies)
        )
    ]
    if sys.platform != "linux":
        return found
    return [*found, _bubblewrap(report), _landlock(report), _cgroup(report)]


def _sandbox_hint(applies: str) -> str:
    if applies != "none":
        return ""
    how = "get one of the next two" if sys.platform == "linux" else "run Remora on Linux, also in a virtual machine"
    return f"for agents that run the project's tests: {how}"


def _bubblewrap(report: SandboxReport) -> Finding:
    if not report.bwrap_problem:
        how = "lays the workspace over the project" if report.bwrap_overlay else "copies the project for every run"
        return Finding("  bubblewrap", True, f"{report.bwrap}, {how}")
    why = "apt install bubblewrap, or dnf install bubblewrap"
    if report.bwrap is not None:
        why = "user namespaces must be allowed: see `sysctl user.max_user_namespaces` and your AppArmor profiles"
    return Finding("  bubblewrap", False, report.bwrap_problem, why)


def _landlock(report: SandboxReport) -> Finding:
    version = f"version {report.landlock_abi}" if report.landlock_abi else "not in this kernel"
    if not report.own_problem:
        return Finding("  Landlock", True, f"{version}, with namespaces of its own")
    if report.applies == "bubblewrap":
        return Finding("  Landlock", bool(report.landlock_abi), f"{version}, behind bubblewrap")
    why = "Linux 5.13 with `landlock` in the kernel's list of security modules"
    if report.landlock_abi:
        why = "user namespaces must be allowed: a container may forbid them (`--security-opt`), or AppArmor"
    return Finding("  Landlock", False, f"{version}; {report.own_problem}", why)


def _cgroup(report: SandboxReport) -> Finding:
    if report.cgroup is not None:
        return Finding("  cgroup", True, f"{report.cgroup}, counts the kernel's memory too")
    why = "to count the kernel's memory exactly: it is estimated now. Start Remora with `systemd-run --user --scope`"
    return Finding("  cgroup", False, report.cgroup_problem, why)
