"""Row 20: killed during accept, undo or reject, with and without someone editing meanwhile. Real processes.

A nursery process imports Remora once and forks one that reviews for every kill. It either kills itself before or after
the n-th thing it does to the disk, so that every such moment is met, or is killed at a random one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from remora.app import Project
from remora.config import Config
from remora.events import (
    AgentEndEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    FileChange,
    RunStartEvent,
    ToolResultEvent,
)
from remora.trace import FileBlobs, FileTrace

RUN, AGENT = "01RUN", "01AGENT"
EDIT = b"what the user saved meanwhile\n"
OLD = {f"src/f{number}.py": b"one\ntwo\nthree %d\n" % number for number in range(3)} | {"src/gone.py": b"old\n"}
NEW = {path: text.replace(b"two", b"2") for path, text in OLD.items() if path != "src/gone.py"} | {"new/x/y.py": b"n\n"}

NURSERY = """
import asyncio, json, os, signal, sys, threading
from pathlib import Path
from remora.app import Project
from remora.config import Config
import remora.workspaces._door as door, remora.workspaces._settle as settle_, remora.workspaces._take as take_
import remora.workspaces._journal as journal
import remora.app._changes as changing, remora.workspaces as workspaces

seen, at, edit = 0, -1, {}
one_at_a_time = threading.Lock()  # blobs reach the disk from several threads
def count():
    global seen
    with one_at_a_time:
        if seen == edit.get("at"): os.system(edit["command"])
        if seen == at: os.kill(os.getpid(), signal.SIGKILL)
        seen += 1

def killing(function):
    def call(*args, **kwargs):
        count()
        try: return function(*args, **kwargs)
        finally: count()
    return call

MISTAKES = {
    "journal": lambda: [setattr(journal.Journal, "save", lambda *_, **__: None)],
    "forward": lambda: [setattr(workspaces, "settle", lambda root, state_dir: journal.forget(state_dir))],
}

def review(root, command):
    project = Project(Path(root), Path(root) / ".agentfs", Config())
    project.changes.settle()
    asyncio.run(getattr(project.review, command)())

for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid == 0:
        at, edit = job["at"], job["edit"]
        if job["mistake"]: MISTAKES[job["mistake"]]()
        for name in ("fsync", "rename", "unlink", "link", "mkdir", "rmdir"):
            setattr(os, name, killing(getattr(os, name)))
        for name in ("swap", "move_in", "move_out", "stage"):
            setattr(door.Door, name, killing(getattr(door.Door, name)))
        os.write(1, json.dumps({"pid": os.getpid()}).encode() + b"\\n")
        review(job["root"], job["command"])
        os.write(1, json.dumps({"steps": seen}).encode() + b"\\n")
        os._exit(0)
    os.waitpid(pid, 0)
    os.write(1, b'{"dead": true}\\n')
"""


class Nursery:
    """Starts processes that review and are killed."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", NURSERY]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def start(self, root: Path, command: str, *, at: int = -1, mistake: str = "", edit: Any = None) -> int:
        """The process id of one that reviews, and kills itself at its step number `at`."""
        assert self.process.stdin is not None
        job = {"root": str(root), "command": command, "at": at, "mistake": mistake, "edit": edit or {}}
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        return int(self._hear()["pid"])

    def end(self) -> int | None:
        """Once it is dead: how many steps it did, or None if it was killed before its end."""
        steps = None
        while "dead" not in (message := self._hear()):
            steps = message["steps"]
        return steps

    def _hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the nursery ended"
        return json.loads(line)  # type: ignore[no-any-return]

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait(timeout=30)


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    started = Nursery()
    yield started
    started.close()


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Reviewed:
    """A project with one agent's changes to review, made anew for every kill."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.state_dir = folder / ".agentfs"
        self.put(OLD)
        asyncio.run(self._record())
        self.journal = Project(folder, self.state_dir, Config()).journal_dir / "accept.json"
        self.first = (self.state_dir / f"runs/{RUN}.jsonl").read_bytes()

    def put(self, files: dict[str, bytes]) -> None:
        """The project's files are these."""
        for path in self.files():
            (self.root / path).unlink()
        for path, data in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(data)

    def renew(self) -> None:
        self.put(OLD)
        for folder in ("new/x", "new"):
            if (self.root / folder).exists():
                (self.root / folder).rmdir()
        (self.state_dir / f"runs/{RUN}.jsonl").write_bytes(self.first)
        self.journal.unlink(missing_ok=True)

    def files(self) -> dict[str, bytes]:
        found = [path for path in self.root.rglob("*") if path.is_file() and ".agentfs" not in path.parts]
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}

    def app(self) -> Project:
        """The project as the next command opens it."""
        opened = Project(self.root, self.state_dir, Config())
        asyncio.run(opened.changes.settle_and_record())
        return opened

    async def _record(self) -> None:
        blobs = FileBlobs(self.state_dir)
        changes = []
        for path in sorted(OLD | NEW):
            before, after = [None if text is None else await blobs.put(text) for text in (OLD.get(path), NEW.get(path))]
            changes.append(FileChange(path=path, before=before, after=after))
        ids = {"run_id": RUN, "agent_id": AGENT}
        async with FileTrace(self.state_dir, clock=Clock(), sync="off") as trace:
            await trace.append(f"runs/{RUN}", [RunStartEvent(run_id=RUN), AgentScheduledEvent(**ids)])
            result = ToolResultEvent(call_id="c", tool="t", outcome="success", files=tuple(changes), turn=1, **ids)
            await trace.append(f"traces/{AGENT}", [AgentStartEvent(**ids), result, AgentEndEvent(**ids)])


@pytest.fixture
def reviewed(tmp_path: Path) -> Reviewed:
    return Reviewed(tmp_path / "project")


def judged(project: Reviewed, edited: str = "") -> str:
    """What is wrong with the project after the next command, or nothing."""
    app = project.app()
    files = project.files()
    if edited and files.pop(edited, None) != EDIT:
        return f"what the user saved in {edited} was overwritten"
    old, new = ({path: text for path, text in tree.items() if path != edited} for tree in (OLD, NEW))
    if files not in (old, new):
        return f"mixed: {sorted(files)}"
    if sorted(path.name for path in project.root.iterdir() if path.name == "new") and files == old and not edited:
        return "a folder was left"
    is_open = bool(asyncio.run(app.review.diff()))
    if project.journal.exists():
        return "the journal is still there"
    if not edited and is_open != (files == old):
        return f"the stream tells another story: open is {is_open}"
    return ""


def prepared(project: Reviewed, command: str) -> None:
    project.renew()
    if command == "undo":
        asyncio.run(project.app().review.accept())


@pytest.mark.parametrize("stride", [37, pytest.param(1, marks=pytest.mark.faults)])
@pytest.mark.parametrize("command", ["accept", "undo"])
def test_killed_at_every_step_the_tree_is_the_old_one_or_the_new_one(
    nursery: Nursery, reviewed: Reviewed, command: str, stride: int, record_property: Callable[[str, object], None]
) -> None:
    prepared(reviewed, command)
    nursery.start(reviewed.root, command)
    steps = nursery.end()
    assert steps is not None
    assert reviewed.files() == (NEW if command == "accept" else OLD)
    assert judged(reviewed) == ""
    problems = {}
    for at in range(0, steps, stride):
        prepared(reviewed, command)
        nursery.start(reviewed.root, command, at=at)
        assert nursery.end() is None
        problems[at] = judged(reviewed)
    mixed = len(list(filter(None, problems.values())))
    record_property("row 20", f"{command} killed at {len(problems)} of {steps} steps: {mixed} mixed")
    assert not any(problems.values()), {at: problem for at, problem in problems.items() if problem}


@pytest.mark.parametrize("edited", ["src/f0.py", pytest.param("src/f2.py", marks=pytest.mark.faults)])
def test_an_edit_after_a_kill_is_never_overwritten(nursery: Nursery, reviewed: Reviewed, edited: str) -> None:
    problems = {}
    for at in range(0, 200, 8):
        prepared(reviewed, "accept")
        nursery.start(reviewed.root, "accept", at=at)
        if nursery.end() is not None:
            break
        (reviewed.root / edited).write_bytes(EDIT)
        problems[at] = judged(reviewed, edited)
    assert len(problems) > 5
    assert not any(problems.values()), {at: problem for at, problem in problems.items() if problem}


@pytest.mark.parametrize("mistake", ["journal", "forward"])
def test_an_accept_without_its_journal_is_caught(nursery: Nursery, reviewed: Reviewed, mistake: str) -> None:
    for at in range(40, 200, 2):
        prepared(reviewed, "accept")
        nursery.start(reviewed.root, "accept", at=at, mistake=mistake)
        if nursery.end() is not None:
            break
        if mistake == "forward":
            reviewed.journal.unlink(missing_ok=True)
        if judged(reviewed):
            return
    pytest.fail("the seeded mistake was not seen")


@pytest.mark.parametrize("stride", [29, pytest.param(2, marks=pytest.mark.faults)])
@pytest.mark.parametrize("command", ["accept", "undo"])
def test_killed_at_every_step_after_someone_saved_at_any_other(
    nursery: Nursery, reviewed: Reviewed, command: str, stride: int, record_property: Callable[[str, object], None]
) -> None:
    prepared(reviewed, command)
    nursery.start(reviewed.root, command)
    steps = nursery.end() or 0
    problems, kills, edited = [], 0, "src/f1.py"
    source = reviewed.root.parent / "edit"
    source.write_bytes(EDIT)
    place = reviewed.root / edited
    save = f"cp '{source}' '{place.parent}/edit.tmp' && mv '{place.parent}/edit.tmp' '{place}'"
    for saved in range(0, steps, stride):
        for at in range(saved + 1, steps + 30, max(1, stride // 2)):
            prepared(reviewed, command)
            nursery.start(reviewed.root, command, at=at, edit={"at": saved, "command": save})
            if nursery.end() is not None:
                break  # it was refused, and was back before this step
            kills += 1
            if problem := judged(reviewed, edited):
                problems.append((saved, at, problem))
    record_property("row 20", f"{command}: {kills} kills after a save: {len(problems)} mixed or overwritten")
    assert kills > 300 // stride
    assert not problems


@pytest.mark.faults
def test_killed_at_any_moment_while_someone_edits(
    nursery: Nursery, reviewed: Reviewed, record_property: Callable[[str, object], None]
) -> None:
    chance, problems, killed, met = random.Random(20), [], 0, 0
    longest = _duration(nursery, reviewed)
    # On a fast machine few kills meet the change itself: it goes on until enough have.
    while killed < 500 or (met <= 25 and killed < 5_000):
        command = chance.choice(("accept", "accept", "undo", "reject"))
        edited = chance.choice(("", "src/f0.py", "src/f1.py"))
        prepared(reviewed, command)
        pid = nursery.start(reviewed.root, command)
        moment, edit_at = (chance.random() * longest for _ in range(2))
        _wait(min(moment, edit_at))
        if edited and edit_at < moment:
            _save(reviewed.root / edited)
        _wait(max(0.0, moment - edit_at))
        with contextlib.suppress(ProcessLookupError):  # it was quicker
            os.kill(pid, signal.SIGKILL)
        killed += nursery.end() is None
        met += reviewed.journal.exists()
        if edited and edit_at >= moment:
            _save(reviewed.root / edited)
        if command != "reject" and (problem := judged(reviewed, edited)):
            problems.append((command, edited, problem))
        elif command == "reject" and not edited and reviewed.files() != OLD:
            problems.append((command, edited, "a reject changed a file"))
    record_property("row 20", f"{killed} kills, {met} of them during a change: {len(problems)} mixed or overwritten")
    assert not problems
    assert met > 25, "few kills met a change under way: the test tests little"


def _duration(nursery: Nursery, reviewed: Reviewed) -> float:
    """Seconds that one accept takes here."""
    prepared(reviewed, "accept")
    nursery.start(reviewed.root, "accept")
    before = time.perf_counter()
    nursery.end()
    return time.perf_counter() - before


def _wait(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:  # a moment that no timer of the system rounds
        pass


def _save(file: Path) -> None:
    """As editors do: a new file takes the old one's name."""
    new = file.with_name("edit.tmp")
    new.write_bytes(EDIT)
    new.rename(file)
