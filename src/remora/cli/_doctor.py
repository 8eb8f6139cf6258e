"""`remora doctor`: what is installed, and what each missing part is needed for."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    versions: Mapping[str, str | None] = field(default_factory=dict)
    """The packages behind it; None for one that is not installed."""


def diagnose() -> list[Finding]:
    """Check each part of the installation."""
    found = [Finding("python", True, platform.python_version()), Finding("remora", True, __version__)]
    found += [_extra(name, gives) for name, gives in EXTRAS.items()]
    return [*found, *_sandbox(), *_models()]


EXTRAS = {
    "agents": "runs agents: `remora analyze`, `watch`, `resume`, `fork`",
    "embedded": "models without a server: `--server embedded`",
    "trace": "commands that read: `remora trace`, `diff`, `accept`",
    "view": "a page with both tracks: `remora view`",
    "logs": "compressed logs in `remora trace import` (zstd)",
    "mcp": "tools of MCP servers, and `remora mcp`",
    "otel": "OpenTelemetry spans while your loop runs",
    "postgres": "streams in a database: `--store postgres://…`",
    "fleet": "agents on many machines: `--engine ray`",
    "langchain": "adapter for LangChain and LangGraph",
    "openai-agents": "adapter for the OpenAI Agents SDK",
    "pydantic-ai": "adapter for Pydantic AI",
    "smolagents": "adapter for smolagents",
}
"""Each extra, and what it gives."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_IN_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def _extra(extra: str, gives: str) -> Finding:
    """Whether all packages of an extra are installed."""
    versions = {name: _version(name) for name in extra_packages(extra)}
    missing = [name for name, version in versions.items() if version is None]
    if not missing:
        return Finding(f"[{extra}]", True, gives, versions=versions)
    what = "not installed" if len(missing) == len(versions) else f"without {', '.join(missing)}"
    return Finding(f"[{extra}]", False, f"{gives}; {what}", f'pip install "remora-agents[{extra}]"', versions)


def extra_packages(extra: str) -> list[str]:
    """The packages that an extra of this installation names."""
    found = ((_NAME.match(line), _IN_EXTRA.search(line)) for line in metadata.requires("remora-agents") or ())
    return [name[0] for name, marker in found if name and marker and marker[1] == extra]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


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
        return Finding(part, False, "its weights are not downloaded", model.how)
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
