"""Row 18: names from outside lead nowhere and never meet: in ids, in tools' paths, in what is accepted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remora.errors import TraceError, WorkspaceError
from remora.events import new_id
from remora.trace import FileTrace, Library
from remora.workspaces import Change, Door, OverlayWorkspace, forget, take, workspace_folder

CASES = 5_000
"""Of paths, and as many of ids."""
PARTS = [
    "..", ".", "", "/", "~", "\0", "\n", "\r\n", "\x1b[2J", "\u202e", "\u2028", "\ud800", "a", "A", "b.py", "B.PY", "é",
    "e\u0301", "src", "SRC", ".git", ".GIT", ".agentfs", ".AgentFS", "con", "%2e%2e", "x" * 255, "x" * 256, "x" * 5000,
    "$(touch x)", "; rm -rf x", "-rf", "*", "..\\..", "C:", "a ", " a", "..a", "a..", "runs", "link", "pyvenv.cfg",
]  # fmt: skip


def hostile(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    yield from PARTS
    for _ in range(count - len(PARTS)):
        name = chance.choice("/:/_/").join(chance.choices(PARTS, k=chance.randint(1, 5)))
        yield name if chance.random() < 0.7 else name + str(chance.randint(0, 99))


@pytest.fixture
def trapped(project: Path) -> Path:
    (project / "link").symlink_to("..")
    (project / ".git").mkdir()
    return project


def outside(project: Path) -> dict[str, bytes]:
    around = [path for path in project.parent.rglob("*") if path.is_file() and not path.is_relative_to(project)]
    return {str(path): path.read_bytes() for path in [*around, *(project / ".git").rglob("*")]}


@pytest.mark.parametrize("cases", [1_000, pytest.param(CASES, marks=pytest.mark.faults)])
async def test_no_path_from_a_tool_leads_outside_or_to_anothers_file(
    trapped: Path, cases: int, record_property: Callable[[str, object], None]
) -> None:
    before = outside(trapped)
    upper = trapped / ".agentfs/workspaces/AGENT"
    workspace = OverlayWorkspace(trapped, upper, max_files=cases)
    written: dict[str, bytes] = {}
    for number, path in enumerate(hostile(18, cases)):
        try:
            workspace._write(path, b"%d" % number)
        except WorkspaceError:
            continue
        written["/".join(part for part in path.split("/") if part not in ("", "."))] = b"%d" % number
    found = {path.relative_to(upper).as_posix(): path.read_bytes() for path in upper.rglob("*") if path.is_file()}
    record_property("row 18", f"{cases} paths, {len(written)} files: {len(set(found) ^ set(written))} outside or met")
    assert found == written
    assert outside(trapped) == before
    assert {change.path for change in workspace.take_changes()} == set(written)


async def test_no_id_becomes_a_path_outside_or_anothers(
    tmp_path: Path, state_dir: Path, clock: object, record_property: Callable[[str, object], None]
) -> None:
    library, taken = Library(state_dir), set()
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:  # type: ignore[arg-type]
        for name in hostile(19, CASES):
            for place in (lambda name: workspace_folder(state_dir, name), lambda name: trace.path(f"traces/{name}")):
                try:
                    path = place(name)
                except (WorkspaceError, TraceError):
                    continue
                assert path.parent.parent == state_dir
                assert path.resolve().is_relative_to(state_dir.resolve())
                taken.add((path.parent.name, path.name))
            with pytest.raises(TraceError):
                library.find(name)
    folders = {name for kind, name in taken if kind == "workspaces"}
    record_property("row 18", f"{CASES} ids, {len(folders)} of them workspaces: 0 outside")
    assert len({name.casefold() for name in folders}) == len(folders)
    assert not list(tmp_path.rglob("*touch*"))


def test_ids_of_ours_are_workspaces_and_never_twins_by_case(state_dir: Path, clock: object) -> None:
    ids = [new_id(clock.now()) for _ in range(1000)]  # type: ignore[attr-defined]
    assert len({workspace_folder(state_dir, name).name.casefold() for name in ids}) == 1000
    with pytest.raises(WorkspaceError):
        workspace_folder(state_dir, ids[0].lower())


def test_no_file_name_in_an_accept_leads_outside(trapped: Path) -> None:
    before, state = outside(trapped), trapped / ".agentfs"
    state.mkdir()
    (trapped / "src/a.py").unlink()
    refused = 0
    for path in hostile(20, 150):
        try:
            take(trapped, state, [Change("fine.py", None, b"fine"), Change(path, None, b"evil")])
        except WorkspaceError:
            refused += 1
            assert not (trapped / "fine.py").exists(), path
        else:
            assert Door(trapped).read(path) == b"evil"
            Door(trapped).remove(path)
            Door(trapped).remove("fine.py")
        forget(state)
    assert refused > 40
    assert outside(trapped) == before


def test_twins_by_case_are_two_files(trapped: Path) -> None:
    state = trapped / ".agentfs"
    state.mkdir()
    take(trapped, state, [Change("Case.py", None, b"upper"), Change("case.py", None, b"lower")])
    assert {path.name: path.read_bytes() for path in trapped.glob("*ase.py")} == {
        "Case.py": b"upper",
        "case.py": b"lower",
    }
