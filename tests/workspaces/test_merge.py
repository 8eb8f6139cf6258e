"""Merges give what git gives, or a conflict. `tests/faults/test_merges.py` asks git itself, 30,000 times."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.workspaces import Change, merge, unified
from remora.workspaces import _bisection as bisection
from remora.workspaces._diff import Base
from remora.workspaces._merge import Merged, apply_edits
from workspaces.triples import CORPUS

lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n"]), max_size=20)
texts = st.builds(lambda parts, end: b"".join(parts) + end, lines, st.sampled_from([b"", b"x"]))


def corpus() -> list[tuple[list[bytes], bytes | None]]:
    rows = json.loads(CORPUS.read_bytes())
    return [([text.encode() for text in row[:3]], None if row[3] is None else row[3].encode()) for row in rows]


def test_every_merge_of_the_corpus_is_what_git_made_of_it() -> None:
    wrong = [(triple, merge(*triple), expected) for triple, expected in corpus() if merge(*triple) != expected]
    assert not wrong
    found = Counter(expected is None for _, expected in corpus())
    assert min(found.values()) > 150, "the corpus must have merges and conflicts"


def test_where_both_sides_remove_one_of_two_equal_lines_there_is_a_conflict() -> None:
    base = b"import os\nimport os\n\nprint(os)\n"
    agent, user = b"import os\n\nprint(os)\n", b"# header\nimport os\n\nprint(os)\n"
    assert merge(base, agent, user) is None


@given(texts, texts)
def test_the_edits_of_a_text_make_the_other_and_have_a_line_between_them(before: bytes, after: bytes) -> None:
    base = Base(before)
    edits = base.edits(after)
    assert b"".join(apply_edits(base.lines, edits)) == after
    assert all(one.last < other.first for one, other in pairwise(edits))


def differing(count: int, *, alphabet: int, seed: int) -> bytes:
    chance = random.Random(seed)
    return b"".join(b"%d\n" % chance.randrange(alphabet) for _ in range(count))


@pytest.mark.parametrize("alphabet", [2, 50, 1000])
def test_the_effort_of_a_comparison_is_bounded_and_what_is_beyond_it_is_one_edit(
    alphabet: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = (differing(3000, alphabet=alphabet, seed=seed) for seed in (1, 2))
    steps = []
    run = bisection.Bisection.run

    def counting(self: bisection.Bisection) -> None:
        try:
            run(self)
        finally:
            steps.append(self._steps)

    monkeypatch.setattr(bisection.Bisection, "run", counting)
    base = Base(b"first\n" + before + b"last\n")
    edits = base.edits(b"first\n" + after + b"last\n")
    assert b"".join(apply_edits(base.lines, edits)) == b"first\n" + after + b"last\n"
    assert steps[0] <= bisection.MAX_STEPS + 2 * bisection.MAX_COST
    assert len(edits) == 1, "these differ more than the effort allows"


def test_a_rewritten_middle_merges_with_edits_outside_it_and_with_none_inside() -> None:
    """However git aligns the middle, no block of it slides over a line that occurs once."""
    middle, other = (differing(3000, alphabet=50, seed=seed) for seed in (1, 2))
    head, tail = b"import os\n\n", b"\ndef last():\n    return 1\n"
    base, theirs = head + middle + tail, head + other + tail
    assert merge(base, base.replace(b"return 1", b"return 2"), theirs) == theirs.replace(b"return 1", b"return 2")
    assert merge(base, b"# head\n" + base, theirs) == b"# head\n" + theirs
    assert merge(base, head + middle.replace(b"7\n", b"seven\n", 1) + tail, theirs) is None


def test_many_sides_of_one_base_end_up_in_one_text() -> None:
    base = b"".join(b"def f%d():\n    pass\n\n\n" % number for number in range(300))
    merged, expected = Merged(base, b"# mine\n" + base), b"# mine\n" + base
    for number in range(300):
        old, new = b"def f%d():\n    pass\n" % number, b'def f%d():\n    """Do %d."""\n    pass\n' % (number, number)
        assert merged.add(base.replace(old, new), f"agent {number}") == []
        expected = expected.replace(old, new)
    assert merged.text() == expected
    (found,) = merged.add(base.replace(b"def f7():\n", b"def seven():\n"), "late")
    assert found.owners == ("agent 7",)
    now = merged.text().split(b"\n")
    assert [now[line - 1] for line in merged.lines(found)] == [b'    """Do 7."""']
    assert merged.text() == expected


def test_the_diff_of_long_repeated_text_is_as_short_as_the_change() -> None:
    text = unified([Change("a.py", b"x\n" * 5000, b"x\n" * 2500 + b"y\n" + b"x\n" * 2500)])
    assert len(text.splitlines()) == 2 + 1 + 7
    unlike = unified([Change("a.py", *(differing(3000, alphabet=50, seed=seed) for seed in (1, 2)))])
    marks = Counter(line[:1] for line in unlike.splitlines()[2:])
    assert marks["-"] == marks["+"] == 3000
