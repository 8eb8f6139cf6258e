from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.errors import WorkspaceConflict, WorkspaceError
from remora.workspaces import Change, Door, forget, load, merge, take, unified
from remora.workspaces._diff import split
from remora.workspaces._merge import collisions

BASE = b"one\ntwo\nthree\nfour\nfive\n"
lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"\xff\n"]), max_size=12)
texts = st.builds(lambda parts, end: b"".join(parts) + end, lines, st.sampled_from([b"", b"x"]))


def accept(project: Path, changes: list[Change]) -> list[Change]:
    state_dir = project.parent / "state"
    state_dir.mkdir(exist_ok=True)
    done = take(project, state_dir, changes)
    forget(state_dir)
    assert load(state_dir) is None
    return list(done.changes)


@given(texts, texts)
def test_merging_with_an_unchanged_side_gives_the_other(base: bytes, changed: bytes) -> None:
    assert merge(base, changed, base) == changed
    assert merge(base, base, changed) == changed


@given(texts, texts)
def test_the_same_change_on_both_sides_is_taken_once(base: bytes, changed: bytes) -> None:
    assert merge(base, changed, changed) == changed


@given(texts, texts, texts)
def test_whose_side_is_which_does_not_matter(base: bytes, one: bytes, other: bytes) -> None:
    assert merge(base, one, other) == merge(base, other, one)


@given(st.integers(3, 30), st.data())
def test_edits_with_a_line_between_them_are_both_there_and_edits_that_touch_are_a_conflict(
    count: int, data: st.DataObject
) -> None:
    base = [b"line %d\n" % number for number in range(count)]
    first = data.draw(st.integers(0, count - 2))
    second = data.draw(st.integers(first + 1, count - 1))
    ours, theirs, both = list(base), list(base), list(base)
    ours[first] = both[first] = b"ours\n"
    theirs[second] = both[second] = b"theirs\n"
    expected = None if second == first + 1 else b"".join(both)
    assert merge(*(b"".join(side) for side in (base, ours, theirs))) == expected


@given(st.integers(1, 30), st.data())
def test_different_edits_of_one_line_are_never_merged(count: int, data: st.DataObject) -> None:
    base = [b"line %d\n" % number for number in range(count)]
    ours, theirs = list(base), list(base)
    at = data.draw(st.integers(0, count - 1))
    ours[at], theirs[at] = b"ours\n", data.draw(st.sampled_from([b"theirs\n", b""]))
    assert merge(*(b"".join(side) for side in (base, ours, theirs))) is None


unique = st.lists(st.integers(0, 40), unique=True, max_size=12)


@given(unique, unique, unique)
def test_a_merge_loses_no_line_that_either_side_wrote_or_both_kept(
    base: list[int], ours: list[int], theirs: list[int]
) -> None:
    """Where it would have to, there is no merge: the conflict leaves both texts as they are."""
    texts = [b"".join(b"%d\n" % line for line in sorted(side)) for side in (base, ours, theirs)]
    merged = merge(*texts)
    if merged is not None:
        found = [int(line) for line in merged.split()]
        assert set(found) == (set(ours) & set(theirs)) | ((set(ours) | set(theirs)) - set(base))
        assert len(found) == len(set(found)) or not set(ours).isdisjoint(set(theirs) - set(base))


@given(texts, texts, texts)
def test_a_conflict_has_lines_of_the_file_as_it_is_now_and_a_merge_has_none(
    base: bytes, ours: bytes, theirs: bytes
) -> None:
    touched = collisions(base, ours, theirs)
    if merge(base, ours, theirs) is not None:
        assert ours in (theirs, base) or theirs == base or not touched
        return
    assert touched
    assert all(1 <= each[0] <= each[-1] <= max(1, len(split(theirs))) for each in touched)


def test_the_lines_of_a_conflict_are_those_that_an_editor_shows() -> None:
    ours = BASE.replace(b"two", b"2").replace(b"five", b"5")
    theirs = b"# new\n" + BASE.replace(b"two", b"zwei\nund\nmehr").replace(b"five\n", b"")
    assert collisions(BASE, ours, theirs) == [range(3, 6), range(7, 8)]


def test_two_insertions_at_one_place_are_a_conflict() -> None:
    assert merge(b"a\nb\n", b"a\nx\nb\n", b"a\ny\nb\n") is None
    assert merge(b"a\n", b"a\nx", b"y\na\n") == b"y\na\nx"


def test_the_accepted_file_keeps_its_mode_and_says_what_it_was(project: Path) -> None:
    (project / "src/a.py").chmod(0o755)
    done = accept(project, [Change("src/a.py", BASE, b"new\n"), Change("src/x/b.py", None, b"b\n")])
    assert (project / "src/a.py").read_bytes() == b"new\n"
    assert stat.S_IMODE((project / "src/a.py").stat().st_mode) == 0o755
    assert stat.S_IMODE((project / "src/x/b.py").stat().st_mode) == 0o644
    assert done == [Change("src/a.py", BASE, b"new\n", 0o755), Change("src/x/b.py", None, b"b\n", 0o644)]


def test_a_change_of_other_lines_meanwhile_is_merged(project: Path) -> None:
    (project / "src/a.py").write_bytes(BASE.replace(b"five", b"FIVE"))
    done = accept(project, [Change("src/a.py", BASE, BASE.replace(b"one", b"ONE"))])
    merged = b"ONE\ntwo\nthree\nfour\nFIVE\n"
    assert (project / "src/a.py").read_bytes() == merged
    assert (done[0].base, done[0].after) == (BASE.replace(b"five", b"FIVE"), merged)


def test_a_conflict_names_every_file_and_nothing_is_written(project: Path) -> None:
    (project / "src/b.py").write_bytes(b"theirs\n")
    (project / "src/a.py").write_bytes(BASE.replace(b"one", b"theirs"))
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    changes = [
        Change("src/fine.py", None, b"fine\n"),
        Change("src/a.py", BASE, BASE.replace(b"one", b"ours")),
        Change("src/b.py", None, b"ours\n"),
        Change("src/gone.py", b"was\n", b"is\n"),
    ]
    with pytest.raises(WorkspaceConflict) as caught:
        accept(project, changes)
    assert caught.value.paths == ("src/a.py", "src/b.py", "src/gone.py")
    assert "`src/a.py` (now lines 1), `src/b.py`, `src/gone.py`" in str(caught.value)
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_accepting_twice_changes_nothing_more(project: Path) -> None:
    change = Change("src/a.py", BASE, b"new\n")
    assert len(accept(project, [change])) == 1
    assert accept(project, [change]) == []


def test_a_deletion_is_accepted_only_of_what_the_agent_saw(project: Path) -> None:
    with pytest.raises(WorkspaceConflict):
        accept(project, [Change("src/a.py", b"other\n", None)])
    accept(project, [Change("src/a.py", BASE, None)])
    assert not (project / "src/a.py").exists()


@pytest.mark.parametrize("path", ["../secret", "/etc/x", ".git/hooks/pre-commit", "link", "link/x"])
def test_an_accept_never_leaves_the_project(project: Path, path: str) -> None:
    (project / "link").symlink_to("../secret")
    with pytest.raises(WorkspaceError):
        accept(project, [Change("src/a.py", BASE, b"new\n"), Change(path, None, b"evil")])
    assert (project.parent / "secret").read_text() == "secret"
    assert (project / "src/a.py").read_bytes() == BASE


def test_an_accept_that_fails_midway_is_taken_back(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    move_in = Door.move_in

    def failing(self: Door, path: str, staged: str) -> None:
        if path == "src/c.py":
            raise OSError(28, "No space left on device")
        move_in(self, path, staged)

    monkeypatch.setattr(Door, "move_in", failing)
    changes = [Change("src/a.py", BASE, b"new\n"), Change("src/b.py", None, b"b"), Change("src/c.py", None, b"c")]
    with pytest.raises(OSError, match="No space"):
        accept(project, changes)
    assert sorted(os.listdir(project / "src")) == ["a.py"]
    assert (project / "src/a.py").read_bytes() == BASE


@pytest.mark.parametrize(
    ("base", "after"),
    [
        (BASE, BASE.replace(b"three", b"THREE")),
        (BASE, BASE[:-1]),
        (b"no end", b"no end\nmore"),
        (b"a\r\nb\r\n", b"a\r\nB\r\n"),
        ("é\x0cf\u2028g\n".encode(), b"x\n"),
        (None, b"new\nfile\n"),
        (None, b"without end"),
        (BASE, None),
    ],
)
def test_git_makes_the_same_file_of_a_diff(tmp_path: Path, base: bytes | None, after: bytes | None) -> None:
    if base is not None:
        (tmp_path / "f.py").write_bytes(base)
    text = unified([Change("f.py", base, after)])
    command = ["/usr/bin/git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, cwd=tmp_path, input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode() + text
    found = (tmp_path / "f.py").read_bytes() if (tmp_path / "f.py").exists() else None
    assert found == after


def test_a_binary_file_is_only_named() -> None:
    assert unified([Change("x.bin", b"\0\1", b"\0\2")]) == "Binary files a/x.bin and b/x.bin differ\n"
    assert unified([Change("x.py", BASE, BASE)]) == ""


def test_a_file_name_cannot_be_taken_for_a_line_of_the_diff() -> None:
    text = unified([Change("x\n+++ b/other", b"a\n", b"b\n")])
    assert text.splitlines()[:2] == ['--- "a/x\\012+++ b/other"', '+++ "b/x\\012+++ b/other"']
