"""A user who saves at any step of a run: accept keeps the save, or reports a conflict and writes nothing."""

from __future__ import annotations

import asyncio
import functools
import itertools
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from projects import leave_out_plugins
from remora.app import Accepted, Project, SystemClock, open_project
from remora.app._watching import Seen, Watcher
from remora.context.contracts import ToolSpec
from remora.errors import WorkspaceError
from remora.inference import EstimatedCounter, ScriptedPolicy
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import ToolOutput
from remora.runner import RunLimits, Runner
from remora.sandbox import LocalSpawner
from remora.scripts import ScriptTools
from remora.subagent import SUBMIT_RESULT, SubagentDefinition
from remora.trace import FileTrace, MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring
from remora.workspaces import Change, Door, OverlayWorkspace, forget, take

SOURCE = """import json
import os


def load(path):
    import sys
    if path is None:
        return f"nothing"
    return json.loads(path)


def other():
    return 1
"""
DOCUMENTED = SOURCE.replace(
    "def load(path):\n",
    'def load(path):\n    """Read it.\n\n    Args:\n        path: JSON, as text.\n        mode: As before.\n    """\n',
)
"""With a parameter that is gone, which the docstring agent removes by rule."""
SOURCES = {"lint": SOURCE, "docstring": DOCUMENTED}
FILE = "load.py"
MINE = "# saved by the user"
SAVES: dict[str, Callable[[str], str]] = {
    # In the very lines that the agent mends, beside them, and far from them.
    # A docstring's entry is removed whole, with what the user wrote there before the agent looked: the line above it.
    "same line": lambda text: (
        text.replace("path: JSON", f"path: {MINE} JSON")
        if "path: JSON" in text
        else text.replace("== None:", f"== None:  {MINE}").replace("is None:", f"is None:  {MINE}")
    ),
    "beside": lambda text: text.replace("    if path", f"    {MINE}\n    if path"),
    "elsewhere": lambda text: text.replace("    return 1", f"    {MINE}\n    return 1"),
    "above": lambda text: f"{MINE}\n{MINE}\n{text}",
}
WHOLE = LineRange(first=1, last=3)
NODE = CodeNode(
    node_id="read.py", node_type=NodeType.FILE, name="read.py", file_path=Path("read.py"),
    lines=WHOLE, owned=(WHOLE,), text="",
)  # fmt: skip
STEPS = {
    Door: ("read", "mode", "changed_at_ns", "swap", "stage"),
    FileTrace: ("append",),
    LocalSpawner: ("run",),
    ScriptTools: ("call",),
}
"""Before and after each call of these the user may save."""


@pytest.fixture(autouse=True)
def _without_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REMORA_SERVER__SERVER", "scripted")
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))


@dataclass
class User:
    """Counts the steps of a run and saves once, at one of them."""

    file: Path
    save: Callable[[str], str]
    at: int = -1
    """By number, or else after these steps by name, one after the other."""
    after: Sequence[str] = ()
    by_rename: bool = False
    steps: int = 0
    saved: bytes | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    busy: bool = False

    def step(self, name: str = "") -> None:
        with self.lock:
            if self.busy:
                return
            self.busy = True
            waits = bool(self.after)
            self.after = self.after[1:] if waits and self.after[0] == name else self.after
            if self.steps == self.at or (waits and not self.after):
                self._save()
            self.steps += 1
            self.busy = False

    def _save(self) -> None:
        self.saved = self.save(self.file.read_text() if self.file.exists() else "").encode()
        if self.by_rename:
            waiting = self.file.with_suffix(".saving")
            waiting.write_bytes(self.saved)
            waiting.replace(self.file)
        else:
            self.file.write_bytes(self.saved)


@contextmanager
def watched(user: User) -> Iterator[None]:
    """Every step of whatever runs meanwhile is one of the user's."""

    def plain(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def stepped(*args: Any, **kwargs: Any) -> Any:
            user.step(f"before {name}")
            try:
                return method(*args, **kwargs)
            finally:
                user.step(f"after {name}")

        return stepped

    def waiting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        async def stepped(*args: Any, **kwargs: Any) -> Any:
            told = f"{name} {args[1]}" if name == "call" else name
            user.step(f"before {told}")
            try:
                return await method(*args, **kwargs)
            finally:
                user.step(f"after {told}")

        return stepped

    with pytest.MonkeyPatch.context() as patch:
        for kind, names in STEPS.items():
            for name in names:
                method = getattr(kind, name)
                made = (waiting if asyncio.iscoroutinefunction(method) else plain)(name, method)
                patch.setattr(kind, name, made)
        yield


def make_project(root: Path, source: str = SOURCE) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    (root / "remora.yaml").write_text("runner: {max_concurrent: 1}\n")
    leave_out_plugins(root)
    (root / "ruff.toml").write_text('lint.select = ["E", "F"]\n')
    (root / FILE).write_text(source)
    return root


def run_and_accept(app: Project, user: User, operation: str, node: str, *, watching: bool) -> list[Accepted]:
    """Plan, run, accept, with the user's steps in all of them. Gives what became of each agent's changes."""

    async def all_of() -> list[Accepted]:
        if watching:
            plan = Watcher(app)._plan_new(Seen(), [app.root], [operation])
        else:
            plan = app.runs.plan([app.root], [operation], lambda found: found.node_id == node)
        user.step("planned")
        async for _ in app.runs.run(plan):
            user.step()
        user.step("ended")
        accepted = await app.review.accept()
        user.step()
        return accepted

    with watched(user):
        return asyncio.run(all_of())


def lost(root: Path, user: User, accepted: list[Accepted]) -> str:
    """What is wrong with the project after the user's save; nothing if nothing is."""
    now = (root / FILE).read_bytes()
    if user.saved is None:
        return ""
    if user.saved.count(MINE.encode()) != now.count(MINE.encode()):
        return "the save is lost"
    # Each agent by itself: one may be written where another has a conflict.
    if accepted and all(each.conflict for each in accepted) and now != user.saved:
        return "a conflict was reported, and something was written"
    return ""


MOMENTS = {
    "after the plan": ["planned"],
    "after the context": ["after call run_linter", "after call run_linter"],
    "before the fix": ["before call apply_fix"],
    "between the fix's read and its write": ["before call apply_fix", "after run"],
    "after the fix": ["after call apply_fix"],
    "before the accept": ["ended"],
    "in the accept": ["ended", "after stage"],
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_save_in_the_middle_of_a_real_agents_work_is_kept_or_is_a_conflict(tmp_path: Path, moment: str) -> None:
    """A few of the moments that the long test below tries all."""
    root = make_project(tmp_path / "project")
    user = User(root / FILE, SAVES["beside"], after=MOMENTS[moment])
    accepted = run_and_accept(open_project(root), user, "lint", f"{FILE}:load", watching=moment == "after the plan")
    assert user.saved is not None
    assert not lost(root, user, accepted)


@pytest.mark.faults
@pytest.mark.parametrize("watching", [False, True], ids=["analyze", "watch"])
@pytest.mark.parametrize("operation", ["lint", "docstring"])
def test_a_save_at_any_step_of_real_agents_is_kept_or_is_a_conflict(
    tmp_path: Path, operation: str, watching: bool, record_property: Callable[[str, object], None]
) -> None:
    kinds = itertools.cycle(SAVES)
    wrong, at, moments = [], 0, 0
    while (seen := tried(tmp_path, operation, next(kinds), at, watching=watching)).saved:
        wrong += [seen.problem] if seen.problem else []
        at, moments = at + (7 if watching else 1), moments + 1
    word = "watch" if watching else "analyze"
    record_property("row 39", f"a save at every step, {word} -o {operation}: {moments} moments, {len(wrong)} lost")
    assert at > 80
    assert not wrong
    # The last run had no save. An agent that changes nothing could lose nothing.
    assert (tmp_path / "project" / FILE).read_text() != SOURCES[operation]


@dataclass(frozen=True)
class Tried:
    """What came of one save."""

    saved: bool
    problem: str


def tried(tmp_path: Path, operation: str, kind: str, at: int, *, watching: bool = False) -> Tried:
    """One run with one save."""
    root = make_project(tmp_path / "project", SOURCES[operation])
    user = User(root / FILE, SAVES[kind], at, by_rename=bool(at % 2))
    accepted = run_and_accept(open_project(root), user, operation, f"{FILE}:load", watching=watching)
    problem = lost(root, user, accepted)
    return Tried(user.saved is not None, f"{kind}, step {at} of {user.steps}: {problem}" if problem else "")


class Editor:
    """Tools that work as models do: an edit is made of what an earlier call has shown."""

    specs = tuple(ToolSpec(name=name, effects="workspace") for name in ("read", "find", "edit", "put", "make"))

    def __init__(self, workspace: OverlayWorkspace) -> None:
        self._workspace = workspace
        self._shown: dict[str, bytes] = {}

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        await getattr(self, f"_{name}")()
        return ToolOutput({"summary": name})

    async def _read(self) -> None:
        self._shown["read.py"] = await self._workspace.read("read.py")

    async def _find(self) -> None:
        self._shown["found.py"] = self._workspace.look("found.py")

    async def _edit(self) -> None:
        for path, shown in self._shown.items():
            before = await self._workspace.read(path)
            # Only the line that was shown counts, whatever stands there now.
            lines = [b"new" if old == b"old" else now for old, now in zip(shown.split(), before.split(), strict=False)]
            await self._workspace.write(path, b"\n".join(lines) + b"\n")

    async def _put(self) -> None:
        await self._workspace.write("put.py", b"new\n")

    async def _make(self) -> None:
        if not await self._workspace.exists("made.py"):
            await self._workspace.write("made.py", b"new\n")


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.faults)])
@pytest.mark.parametrize("path", ["read.py", "found.py", "put.py", "made.py"])
def test_a_save_at_any_step_of_an_agent_is_kept_or_is_a_conflict(
    tmp_path: Path, path: str, stride: int, record_property: Callable[[str, object], None]
) -> None:
    """The agent reads one file and edits it, finds a line of one and edits that, overwrites one, and makes one."""
    moments = conflicts = 0
    while True:
        root = tmp_path / f"{moments}"
        root.mkdir()
        for name in ("read.py", "found.py", "put.py"):
            (root / name).write_bytes(b"one\nold\ntwo\n")
        user = User(root / path, lambda _: "one\nmine\ntwo\n", moments * stride)
        with watched(user):
            refused = asyncio.run(worked_and_taken(root, user))
        if user.saved is None:
            break
        moments += 1
        conflicts += refused
        assert (root / path).read_bytes() == user.saved, f"step {user.at} of {user.steps}"
    record_property("row 39", f"a save at every step, {path}: {moments} moments, {conflicts} conflicts, 0 lost")
    assert moments * stride > 100
    assert conflicts


async def worked_and_taken(root: Path, user: User) -> bool:
    """Run the agent and accept what it did. Gives whether that was refused."""
    workspace = OverlayWorkspace(root, root / ".agentfs/workspaces/AGENT")
    user.step()
    tools, clock, blobs = Editor(workspace), SystemClock(), MemoryBlobs()
    wiring = Wiring(
        identity=Identity("01AGENT", "01RUN", "edit", "read.py"),
        goal="Edit",
        tools=(*tools.specs, SUBMIT_RESULT),
        prompts=PromptSettings(2000),
        writer=MemoryTrace(clock),
        blobs=blobs,
        counter=EstimatedCounter(),
        clock=clock,
    )
    track = TwoTrack.of(wiring)
    definition = SubagentDefinition(name="edit", goal="Edit", system_prompt="", tools=[{"name": "read"}])
    policy = ScriptedPolicy(["read", "find", "edit", "put", "make", "submit_result"])
    limits = RunLimits(max_turns=12, max_errors=9)
    runner = Runner(track, definition, NODE, policy=policy, tools=tools, workspace=workspace, limits=limits)
    result = await runner.run()
    user.step()
    changes = [
        Change(
            each.path, None if each.before is None else await blobs.get(each.before), await blobs.get(str(each.after))
        )
        for each in result.files
    ]
    try:
        take(root, root / ".agentfs", changes)
    except WorkspaceError:
        return True
    finally:
        user.step()
        forget(root / ".agentfs")
    return False
