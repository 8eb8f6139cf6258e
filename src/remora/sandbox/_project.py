"""Runs commands that execute project code: in this machine's sandbox, or not at all."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from remora.errors import ToolFailed, ToolLimitExceeded
from remora.ports import Completed
from remora.sandbox._bubblewrap import launch_in
from remora.sandbox._cgroup import Cgroup
from remora.sandbox._hidden import MAX_HIDDEN, Hidden, TooManyHidden
from remora.sandbox._jail._view import copy_view
from remora.sandbox._plan import OUT, Command, Limits, Outcome, environment, launch, make_plan, read_outcome
from remora.sandbox._probe import SandboxReport
from remora.sandbox._python import find_python

Execute = Callable[[Sequence[str], tuple[int, ...], bool], Awaitable[Completed]]
"""Runs a command line with inherited descriptors.

The flag says whether the sandbox kills all its processes together.
"""

HOW_TO_GET_ONE = (
    "Install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`), or see `remora doctor`; to run it "
    "without a sandbox, at your own risk, set `sandbox.allow_unsandboxed` in your own configuration"
)
ONLY_ON_LINUX = (
    "Run Remora on Linux (a virtual machine or WSL will do); to run it without a sandbox, at your own risk, set "
    "`sandbox.allow_unsandboxed` in your own configuration"
)


async def run_sandboxed(
    module: str,
    words: Sequence[str],
    *,
    root: Path,
    over: Path | None,
    report: SandboxReport,
    allow_unsandboxed: bool,
    limits: Limits,
    execute: Execute,
    hidden: Hidden,
) -> Completed:
    """Run a Python module over the project as the workspace has it. Raises `ToolError` if it may not or cannot run."""
    if root == Path("/"):
        raise ToolFailed(f"`{module}` cannot run over `/`: expected a project in its own folder")
    if report.applies == "none" and not allow_unsandboxed:
        raise _no_sandbox_error(module, report)
    over = over.resolve() if over is not None and over.is_dir() else None
    names = [word.partition("=")[2] for word in words if word.startswith("--junitxml=")]
    artifacts = {name: f"{OUT}/{name}" for name in names}
    command = Command(root, over, find_python(root, module), tuple(words), artifacts, limits, module)
    command = replace(command, hidden=await _find_hidden(hidden, module))
    if report.applies == "none":
        async with _copy_project(command) as copied:
            done = await _execute_plan(_place_reports(copied), "bare", report, execute)
    else:
        done = await _execute_plan(_place_reports(command), "namespaces", report, execute)
        _check_hidden_unchanged(module, command.hidden, await _find_hidden(hidden, module))
    return replace(done, argv=(module, *words), sandbox=report.applies)


async def _find_hidden(hidden: Hidden, module: str) -> frozenset[str]:
    try:
        return await asyncio.to_thread(hidden.find)
    except TooManyHidden:
        raise ToolFailed(
            f"`{module}` cannot run: the project contains more than {MAX_HIDDEN:,} repositories, all to be hidden",
            hint="Run Remora in the subfolder that you work on",
        ) from None


def _check_hidden_unchanged(module: str, before: frozenset[str], after: frozenset[str]) -> None:
    """Raises `ToolFailed` if a path that must be hidden appeared meanwhile: the output may contain its data."""
    if new := sorted(after - before):
        raise ToolFailed(
            f"`{new[0]:.200}` appeared in the project while `{module}` ran and could read it: its output is discarded",
            hint="Run it again",
        )


def _no_sandbox_error(module: str, report: SandboxReport) -> ToolFailed:
    if sys.platform != "linux":
        return ToolFailed(
            f"`{module}` runs the project's code, and this system has no sandbox for it", hint=ONLY_ON_LINUX
        )
    why = f"bubblewrap: {report.bwrap_problem}; namespaces with Landlock: {report.own_problem}"
    return ToolFailed(
        f"`{module}` runs the project's code, and no sandbox works here ({why}). {HOW_TO_GET_ONE}", hint=HOW_TO_GET_ONE
    )


def _place_reports(command: Command) -> Command:
    """Replace the name of each report by the path where it is written."""
    words = [
        f"--junitxml={command.artifacts[word.partition('=')[2]]}" if word.startswith("--junitxml=") else word
        for word in command.words
    ]
    return replace(command, words=tuple(words))


@asynccontextmanager
async def _copy_project(command: Command) -> AsyncIterator[Command]:
    """Run on a private copy of the project, deleted afterwards."""
    area = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="remora-")).resolve()
    try:
        for name in ("project", "home", "tmp", "out"):
            (area / name).mkdir()
        over = str(command.over) if command.over is not None else None
        await asyncio.to_thread(copy_view, str(command.root), over, str(area / "project"))
        artifacts = {name: str(area / "out" / name) for name in command.artifacts}
        yield replace(command, root=area / "project", over=None, artifacts=artifacts)
    finally:
        await asyncio.to_thread(shutil.rmtree, area, ignore_errors=True)


async def _execute_plan(command: Command, mode: str, report: SandboxReport, execute: Execute) -> Completed:
    with tempfile.TemporaryFile() as status:
        async with _own_cgroup(command, report) as cgroup:
            descriptors = (status.fileno(),) if cgroup is None else (status.fileno(), cgroup.procs_fd)
            plan = make_plan(command, mode, *descriptors)
            if mode == "bare":
                plan = {**plan, "areas": [], "env": _bare_environment(command)}
            done = await execute(_command(plan, report), descriptors, mode != "bare")
            reached = None if cgroup is None else cgroup.reached()
        if reached is not None:
            raise ToolLimitExceeded(command.module, limit=reached)
        status.seek(0)
        return _result(command.module, done, read_outcome(status.read()))


@asynccontextmanager
async def _own_cgroup(command: Command, report: SandboxReport) -> AsyncIterator[Cgroup | None]:
    """Create the command's cgroup and remove it with its processes afterwards. None if this machine has none."""
    if report.cgroup is None:
        yield None
        return
    try:
        cgroup = await asyncio.to_thread(Cgroup, report.cgroup, command.limits)
    except OSError as error:
        why = f"cannot create a cgroup in `{report.cgroup}`: {error.strerror}"
        raise ToolFailed(f"The sandbox for `{command.module}` could not be set up: {why}") from error
    try:
        yield cgroup
    finally:
        await asyncio.to_thread(cgroup.close)


def _bare_environment(command: Command) -> dict[str, str]:
    """Put the copy's modules first: an editable install would import the original project."""
    area = command.root.parent
    paths = f"{command.root}:{command.root / 'src'}"
    home, temporary = str(area / "home"), str(area / "tmp")
    return {**environment(command.python, home=home, temporary=temporary), "PYTHONPATH": paths}


def _command(plan: dict[str, Any], report: SandboxReport) -> list[str]:
    if sys.platform != "linux":
        return ["/usr/bin/env", *(f"{name}={value}" for name, value in plan["env"].items()), *plan["argv"]]
    if report.applies == "bubblewrap" and report.bwrap is not None and plan["mode"] != "bare":
        return launch_in(report.bwrap, plan, overlay=report.bwrap_overlay)
    return launch(plan)


def _result(module: str, done: Completed, outcome: Outcome) -> Completed:
    facts = outcome.facts
    if "limit" in facts:
        raise ToolLimitExceeded(module, limit=facts["limit"])
    if "returncode" not in facts and sys.platform == "linux":
        why = (
            facts.get("problem") or done.stderr.decode(errors="replace").strip()[-300:] or "it ended without a message"
        )
        raise ToolFailed(f"The sandbox for `{module}` could not be set up: {why}")
    return replace(done, returncode=int(facts.get("returncode", done.returncode)), artifacts=outcome.artifacts)
