"""Runs what runs the project's code: in the sandbox of this machine, or not at all."""

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
from remora.sandbox._plan import OUT, Limits, Order, Outcome, environment, launch, make_plan, read_outcome
from remora.sandbox._probe import SandboxReport
from remora.sandbox._python import find_python

Execute = Callable[[Sequence[str], tuple[int, ...], bool], Awaitable[Completed]]
"""Runs a command line that keeps more descriptors, and is told whether walls keep its processes together."""

HOW_TO_GET_ONE = (
    "Install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`), or see `remora doctor`; to run it "
    "without a sandbox, at your own risk, set `sandbox.allow_unsandboxed` in your own configuration"
)
ONLY_ON_LINUX = (
    "Run Remora on Linux (a virtual machine or WSL will do); to run it without a sandbox, at your own risk, set "
    "`sandbox.allow_unsandboxed` in your own configuration"
)


async def run_walled(
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
    """A Python module ran over the project as the workspace has it. Raises `ToolError` where it may not or cannot."""
    if root == Path("/"):
        raise ToolFailed(f"`{module}` cannot be run over `/`: expected a project in a folder of its own")
    if report.applies == "none" and not allow_unsandboxed:
        raise _refused(module, report)
    over = over.resolve() if over is not None and over.is_dir() else None
    names = [word.partition("=")[2] for word in words if word.startswith("--junitxml=")]
    artifacts = {name: f"{OUT}/{name}" for name in names}
    order = Order(root, over, find_python(root, module), tuple(words), artifacts, limits, module)
    order = replace(order, hidden=await _find(hidden, module))
    if report.applies == "none":
        async with _copied(order) as copied:
            done = await _carried_out(_place_reports(copied), "bare", report, execute)
    else:
        done = await _carried_out(_place_reports(order), "namespaces", report, execute)
        _check_unseen(module, order.hidden, await _find(hidden, module))
    return replace(done, argv=(module, *words), sandbox=report.applies)


async def _find(hidden: Hidden, module: str) -> frozenset[str]:
    try:
        return await asyncio.to_thread(hidden.find)
    except TooManyHidden:
        raise ToolFailed(
            f"`{module}` cannot be run: the project holds more than {MAX_HIDDEN:,} repositories, and each is hidden",
            hint="Run Remora in the part of it that you work on",
        ) from None


def _check_unseen(module: str, before: frozenset[str], after: frozenset[str]) -> None:
    """Returns if nothing came that should have been hidden. Raises `ToolFailed`: what was printed may tell of it."""
    if new := sorted(after - before):
        raise ToolFailed(
            f"`{new[0]:.200}` appeared in the project while `{module}` ran, which could read it: its output is dropped",
            hint="Run it again",
        )


def _refused(module: str, report: SandboxReport) -> ToolFailed:
    if sys.platform != "linux":
        return ToolFailed(
            f"`{module}` runs the project's code, and this system has no sandbox for it", hint=ONLY_ON_LINUX
        )
    why = f"bubblewrap: {report.bwrap_problem}; namespaces with Landlock: {report.own_problem}"
    return ToolFailed(
        f"`{module}` runs the project's code, and no sandbox works here ({why}). {HOW_TO_GET_ONE}", hint=HOW_TO_GET_ONE
    )


def _place_reports(order: Order) -> Order:
    """The order with every report's name made the path where it is written."""
    words = [
        f"--junitxml={order.artifacts[word.partition('=')[2]]}" if word.startswith("--junitxml=") else word
        for word in order.words
    ]
    return replace(order, words=tuple(words))


@asynccontextmanager
async def _copied(order: Order) -> AsyncIterator[Order]:
    """The order over a private copy of the project, which is gone afterwards."""
    area = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="remora-")).resolve()
    try:
        for name in ("project", "home", "tmp", "out"):
            (area / name).mkdir()
        over = str(order.over) if order.over is not None else None
        await asyncio.to_thread(copy_view, str(order.root), over, str(area / "project"))
        artifacts = {name: str(area / "out" / name) for name in order.artifacts}
        yield replace(order, root=area / "project", over=None, artifacts=artifacts)
    finally:
        await asyncio.to_thread(shutil.rmtree, area, ignore_errors=True)


async def _carried_out(order: Order, mode: str, report: SandboxReport, execute: Execute) -> Completed:
    with tempfile.TemporaryFile() as status:
        async with _own_cgroup(order, report) as cgroup:
            doors = (status.fileno(),) if cgroup is None else (status.fileno(), cgroup.door)
            plan = make_plan(order, mode, *doors)
            if mode == "bare":
                plan = {**plan, "areas": [], "env": _bare_environment(order)}
            done = await execute(_command(plan, report), doors, mode != "bare")
            reached = None if cgroup is None else cgroup.reached()
        if reached is not None:
            raise ToolLimitExceeded(order.module, limit=reached)
        status.seek(0)
        return _result(order.module, done, read_outcome(status.read()))


@asynccontextmanager
async def _own_cgroup(order: Order, report: SandboxReport) -> AsyncIterator[Cgroup | None]:
    """The command's cgroup, gone afterwards with all who are in it; none where there can be none."""
    if report.cgroup is None:
        yield None
        return
    try:
        cgroup = await asyncio.to_thread(Cgroup, report.cgroup, order.limits)
    except OSError as error:
        why = f"no cgroup can be made in `{report.cgroup}`: {error.strerror}"
        raise ToolFailed(f"The sandbox for `{order.module}` could not be set up: {why}") from error
    try:
        yield cgroup
    finally:
        await asyncio.to_thread(cgroup.close)


def _bare_environment(order: Order) -> dict[str, str]:
    """The copy's own modules come first, as an editable install would name the project itself."""
    area = order.root.parent
    paths = f"{order.root}:{order.root / 'src'}"
    home, temporary = str(area / "home"), str(area / "tmp")
    return {**environment(order.python, home=home, temporary=temporary), "PYTHONPATH": paths}


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
        why = facts.get("problem") or done.stderr.decode(errors="replace").strip()[-300:] or "it ended without a word"
        raise ToolFailed(f"The sandbox for `{module}` could not be set up: {why}")
    return replace(done, returncode=int(facts.get("returncode", done.returncode)), artifacts=outcome.artifacts)
