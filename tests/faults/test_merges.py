"""A merge is never clean where git has a conflict, and never another text where both are clean. Real git and files."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from remora.workspaces import merge
from workspaces.triples import Triple, merge_all, python_triple, random_triple

SOURCES = sorted((Path(__file__).parents[2] / "src/remora").rglob("*.py"))
pytestmark = [pytest.mark.faults, pytest.mark.skipif(not shutil.which("git"), reason="there is no git here")]


def compared(triples: Sequence[Triple], folder: Path) -> dict[str, int]:
    """How many merges differ from git's, by how they differ."""
    found = {"clean where git has a conflict": 0, "another text": 0, "a conflict where git is clean": 0, "same": 0}
    for triple, theirs in zip(triples, merge_all(triples, folder), strict=True):
        ours = merge(*triple)
        if ours == theirs:
            found["same"] += 1
        elif ours is None:
            found["a conflict where git is clean"] += 1
        else:
            found["another text" if theirs is not None else "clean where git has a conflict"] += 1
    return found


def test_thirty_thousand_merges_of_repeated_lines_are_git_s(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(30)
    found = compared([random_triple(chance) for _ in range(30_000)], tmp_path)
    record_property("merges", found)
    assert (found["clean where git has a conflict"], found["another text"]) == (0, 0)
    assert found["a conflict where git is clean"] < 300, "careful is right, timid is not"


def test_edits_of_real_code_with_a_line_between_them_merge(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(31)
    texts = [text for text in (path.read_bytes() for path in SOURCES) if text.count(b"\n") > 40]
    triples = [python_triple(chance, chance.choice(texts), gap=chance.choice([1, 2, 3, 10, 25])) for _ in range(2_000)]
    found = compared(triples, tmp_path)
    conflicts = sum(merge(*triple) is None for triple in triples)
    record_property("merges of real code", found | {"conflicts": conflicts})
    assert (found["clean where git has a conflict"], found["another text"]) == (0, 0)
    assert found["a conflict where git is clean"] < 20
    assert conflicts < 200
