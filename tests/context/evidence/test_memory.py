"""Evidence is bounded however long a run is, and identifiers outlive the outputs they came from."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remora.context.evidence import Entry, Evidence, agent_said, called, person_said, read_output, remember, words_of
from remora.context.evidence._memory import MAX_BYTES, MAX_ENTRIES, MAX_LEDGER


def _order(seq: int, size: int = 5) -> Entry:
    value = {"order_id": f"ORD{seq:05d}", "notes": [f"word{seq} nothing {number}" for number in range(size)]}
    return called(seq, "get_order", {"number": seq}, read_output(value))


def _after(entries: list[Entry]) -> Evidence:
    return reduce(remember, entries, Evidence())


_ENTRIES = st.one_of(
    st.builds(lambda text: ("user", text), st.text(max_size=6000)),
    st.builds(lambda text: ("agent", text), st.text(max_size=6000)),
    st.builds(lambda text: ("call", text), st.text(max_size=12_000)),
)


def _made(seq: int, what: tuple[str, str]) -> Entry:
    speaker, text = what
    if speaker == "user":
        return person_said(seq, text)
    if speaker == "agent":
        return agent_said(seq, text)
    return called(seq, "tool", {"text": text[:500], "seq": seq}, read_output(text))


@given(st.lists(_ENTRIES, max_size=12), st.integers(1, 30))
def test_evidence_stays_within_its_bytes(whats: list[tuple[str, str]], times: int) -> None:
    evidence = _after([_made(seq, what) for seq, what in enumerate(whats * times)])
    newest = sum(entry.size for entry in evidence.entries[-3:])
    assert evidence.size <= MAX_BYTES + newest
    assert len(evidence.entries) <= MAX_ENTRIES
    assert len(evidence.ledger) <= MAX_LEDGER


@given(st.lists(_ENTRIES, max_size=12))
def test_the_same_events_give_the_same_evidence(whats: list[tuple[str, str]]) -> None:
    entries = [_made(seq, what) for seq, what in enumerate(whats)]
    assert _after(entries) == _after([_made(seq, what) for seq, what in enumerate(whats)])


@given(st.lists(_ENTRIES, max_size=12), st.integers(1, 8))
@example([("call", "a line\n" * 4000)], 2)
def test_evidence_that_grew_knows_what_the_same_evidence_does_when_it_is_built_anew(
    whats: list[tuple[str, str]], times: int
) -> None:
    evidence = Evidence()
    for seq, what in enumerate(whats * times):
        evidence = remember(evidence, _made(seq, what))
        anew = Evidence(evidence.entries, evidence.ledger, evidence.dropped)
        for name in ("encoded", "height", "size"):
            assert getattr(evidence, name) == getattr(anew, name), name


def test_a_thousand_turns_take_no_more_than_a_hundred() -> None:
    short, long = (_after([_order(seq, 40) for seq in range(turns)]) for turns in (100, 1000))
    assert long.size <= max(short.size, MAX_BYTES)
    assert long.dropped + len(long.entries) == 1000


def test_the_newest_output_is_kept_whole() -> None:
    evidence = _after([_order(seq, 60) for seq in range(300)])
    assert evidence.entries[-1] == _order(299, 60)


def test_older_outputs_are_shortened_before_newer_ones() -> None:
    levels = [entry.level for entry in _after([_order(seq, 60) for seq in range(80)]).entries]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] > levels[-1]


def test_an_identifier_outlives_its_output_with_its_key_and_seq() -> None:
    evidence = _after([_order(seq, 60) for seq in range(120)])
    known = {item.value: item for item in evidence.ledger}
    item = known["ORD00010"]
    assert (item.key, item.seq, item.used) == ("order_id", 10, False)


def test_identifiers_that_calls_name_outlive_others() -> None:
    evidence = _after([_order(seq, 60) for seq in range(100)])
    evidence = remember(evidence, called(100, "cancel", {"order_id": "ORD00005"}, read_output("done")))
    evidence = reduce(remember, [_order(seq, 60) for seq in range(101, 800)], evidence)
    known = {item.value for item in evidence.ledger}
    assert "ORD00005" in known
    assert "ORD00006" not in known


def test_arguments_that_the_output_shows_again_are_kept_once() -> None:
    code = "def f():\n    return 1\n\n\ndef g():\n    return f() + 1\n"
    entry = called(1, "edit", {"path": "a.py", "text": code}, read_output(f"File updated.\n{code}"))
    assert entry.given == ()
    assert "    return f() + 1" in entry.lines


def test_a_command_line_that_names_its_tool_is_shown_as_it_was_written() -> None:
    entry = called(1, "grep", {"command": "grep -n foo src/a.py"}, read_output("3:foo"))
    assert entry.text == "grep -n foo src/a.py"


def _shop_turn(seq: int) -> tuple[Entry, Entry, Entry]:
    log = "\n".join(
        f"{at} INFO order_{seq * at % 997} of customer_{at % 13} took {at * seq % 801} ms in src/m{at % 7}.py"
        for at in range(70)
    )
    rows = {"id": f"R{seq}", "rows": [{"row_id": f"x{seq}_{at}", "n": at} for at in range(30)]}
    made = called(seq + 2, "read", {}, read_output(rows if seq % 2 else log))
    return (
        person_said(seq, f"Look at customer_{seq % 13}. It is order_{seq}."),
        agent_said(seq + 1, f"I read part {seq}, because loadOrder_{seq} was slow."),
        replace(
            made,
            text=f"read(page={seq}, text=…)",
            call=f'{{"name":"read","arguments":{{"page":{seq},"text":"…"}}}}',
            given=("text:", *(" a = 1", f" b = order_{seq}") * 9),
        ),
    )


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (2, "1dfd9d36f4bd615b03a0a62696e0cb3d371c8f51b2ab7cd2e5b3c3fdbf61d274"),
        (3, "ed5df4ebe65fa7d40dfb188a35550ffe7f106cf8276413aa1cbab8a2a32cbcf4"),
    ],
)
def test_streams_of_released_projectors_fold_as_they_did(rules: int, expected: str) -> None:
    evidence, goal = Evidence(rules=rules), words_of("Find why orders of customer_7 are late")
    states = hashlib.sha256()
    for seq in range(0, 240, 3):
        for entry in _shop_turn(seq):
            evidence = remember(evidence, entry, goal)
            states.update(evidence.encoded)
    assert evidence.dropped == 84
    assert states.hexdigest() == expected
