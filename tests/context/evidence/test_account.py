"""The account holds its budget for every counter, in the order of time, with labels, and says what it left out."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context.evidence import Entry, Evidence, agent_said, called, person_said, read_output, remember
from remora.context.evidence import write_account as write


def _words(text: str) -> int:
    return len(text.split())


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _quarters(text: str) -> int:
    return -(-len(text) // 4)


_COUNTERS = st.sampled_from([_words, _bytes, _quarters])
_TEXT = st.text(st.characters(codec="utf-8"), max_size=2000)


def _entry(seq: int, what: int, text: str) -> Entry:
    if what == 0:
        return person_said(seq, text)
    if what == 1:
        return agent_said(seq, text)
    return called(seq, "look", {"what": text[:80]}, read_output(text))


def _after(*entries: Entry) -> Evidence:
    return reduce(remember, entries, Evidence())


def _desk() -> Evidence:
    cards = {"card_4711": {"amount": 5}, "card_4712": {"amount": 200}}
    orders = [{"order_id": f"ORD{number}", "price": number} for number in range(40)]
    return _after(
        person_said(1, "I am mia_kim_1."),
        called(2, "get_user", {"user_id": "mia_kim_1"}, read_output({"name": "Mia", "cards": cards})),
        called(3, "list_orders", {"user_id": "mia_kim_1"}, read_output(orders)),
        agent_said(4, "You have 40 orders. Which one do you mean?"),
        person_said(5, "The one with number ORD17. Pay with the card_4712, please."),
    )


@given(_TEXT, st.lists(st.tuples(st.integers(0, 2), _TEXT), max_size=12), st.integers(0, 800), _COUNTERS)
def test_the_account_is_never_over_its_budget(
    goal: str, whats: list[tuple[int, str]], budget: int, count: object
) -> None:
    evidence = _after(*(_entry(seq, what, text) for seq, (what, text) in enumerate(whats)))
    account = write(goal, evidence, budget, count)
    assert count(account.text) == account.tokens <= budget


@given(st.lists(st.tuples(st.integers(0, 2), _TEXT), max_size=10), st.integers(50, 800))
def test_items_stand_in_the_order_of_time(whats: list[tuple[int, str]], budget: int) -> None:
    whats = [(what, re.sub("[#\r\n\x0b-\x1f\x85\u2028\u2029]", " ", text)) for what, text in whats]
    evidence = _after(*(_entry(seq, what, text) for seq, (what, text) in enumerate(whats)))
    seqs = [int(seq) for seq in re.findall(r"(?m)^#(\d+)", write("Task", evidence, budget, _quarters).text)]
    assert seqs == sorted(seqs)


def test_all_is_shown_where_it_fits() -> None:
    account = write("Help people.", _desk(), 2000, _quarters)
    assert account.left_out == {}
    assert account.text.startswith("Task: Help people.\n#1 user: I am mia_kim_1.\n#2 get_user(user_id=mia_kim_1):\n")
    assert account.text.endswith("#5 user: The one with number ORD17. Pay with the card_4712, please.")


@pytest.mark.parametrize("budget", [90, 120, 200])
def test_where_little_fits_the_newest_words_and_what_they_name_are_shown(budget: int) -> None:
    text = write("Help people.", _desk(), budget, _quarters).text
    assert "ORD17" in text
    assert "card_4712" in text


def test_a_row_of_a_table_is_never_without_its_head() -> None:
    text = write("Help people.", _desk(), 120, _quarters).text
    assert " ORD17, 17" in text
    assert "(40): order_id, price" in text


def _recipe(size: int) -> Evidence:
    """A large older output of plain words, which the task does not name."""
    lines = "\n".join(f"{'abcdefghijklmnopqrstuvwxyz'[number % 26] * 4} plain words" for number in range(size))
    return _after(called(1, "read", {}, read_output(lines)), called(2, "look", {"what": "b"}, read_output("c\nd")))


def test_the_budget_is_spent_on_lines_that_nothing_names() -> None:
    whole = write("Do it", _recipe(60), 2000, _quarters)
    assert not whole.left_out
    part = write("Do it", _recipe(300), 1000, _quarters)
    assert part.left_out
    assert part.tokens >= 900


def test_a_long_task_gets_what_nothing_else_needs() -> None:
    goal = "\n".join(f"Step {number}: do the next thing." for number in range(90))
    assert write(goal, Evidence(), 800, _quarters).text == f"Task: {goal}"
    part = write(goal, Evidence(), 400, _quarters)
    assert 350 <= part.tokens <= 400


def test_the_line_of_a_call_says_how_a_long_argument_begins() -> None:
    script = "cd /srv && python - <<'EOF'\n" + "\n".join(f"print({number})" for number in range(80))
    evidence = _after(called(1, "bash", {"command": script}, read_output("\n".join(map(str, range(80))))))
    assert "#1 bash(command=cd /srv && python - <<'EOF'…)" in write("Do it", evidence, 60, _quarters).text
    assert "print(79)" in write("Do it", evidence, 3000, _quarters).text


def test_both_ends_of_a_very_long_argument_are_kept_and_the_rest_is_counted() -> None:
    text = "\n".join(f"line {number}" for number in range(2000))
    entry = called(1, "write", {"path": "a.txt", "text": text}, read_output("ok"))
    assert (entry.given[1], entry.given[-1]) == (" line 1", " line 1999")
    assert entry.omitted + len(entry.given) == 2000


def test_an_error_in_a_log_is_shown_before_its_other_lines() -> None:
    lines = [f"2024-05-01 10:00:{number % 60:02} INFO worker_{number} is done" for number in range(200)]
    lines.insert(150, "2024-05-01 10:02:30 ERROR the disk is full")
    assert (
        "the disk is full"
        in write("Do it", _after(called(1, "log", {}, read_output("\n".join(lines)))), 200, _quarters).text
    )


def test_what_was_left_out_is_counted_and_recall_is_named() -> None:
    account = write("Help people.", _desk(), 120, _quarters)
    assert account.left_out["lines"] > 20
    assert f"{account.left_out['lines']} lines" in account.text
    assert "recall" in account.text


def test_a_failed_call_says_so() -> None:
    evidence = _after(called(1, "pay", {"amount": 3}, read_output("Error: paid 3, price is 5")))
    assert "#1 pay(amount=3) failed: Error: paid 3, price is 5" in write("", evidence, 200, _quarters).text


def test_a_long_task_keeps_head_and_tail_and_leaves_room() -> None:
    goal = "\n".join(["First of all.", *(f"Rule {number} of the house." for number in range(200)), "Finally, submit."])
    text = write(goal, _desk(), 300, _quarters).text
    assert "First of all." in text
    assert "Finally, submit." in text
    assert "card_4712" in text


def test_identifiers_of_outputs_that_are_gone_are_shown_with_their_seq() -> None:
    entries = [
        called(seq, "get", {"at": seq}, read_output({"order_id": f"ORD{seq}", "notes": ["long words here"] * 200}))
        for seq in range(200)
    ]
    used = called(200, "cancel", {"order_id": "ORD3"}, read_output("done"))
    evidence = reduce(remember, [*entries, used, *entries[:60]], Evidence())
    assert "ORD3 #3" in write("", evidence, 600, _quarters).text


def test_the_line_that_says_why_a_call_failed_is_shown_before_the_rest_of_its_output() -> None:
    window = "\n".join(f"{number}:    value_{number} = compute_{number}(x)" for number in range(100, 220))
    output = f"Your edit has introduced new syntax error(s).\n- E999 IndentationError: unexpected indent\n{window}"
    evidence = _after(called(1, "edit", {"line": 150}, read_output(output)))
    assert "- E999 IndentationError: unexpected indent" in write("Fix it.", evidence, 150, _quarters).text


def test_a_small_output_is_shown_with_its_call_behind_large_ones() -> None:
    page = "\n".join(f"line {number} of a long page about nothing" for number in range(150))
    evidence = _after(
        called(1, "bash", {"command": "python count.py"}, read_output("344 items\nready\n$")),
        *(called(seq, "read", {"page": seq}, read_output(f"{seq}\n{page}\nready\n$")) for seq in range(2, 6)),
    )
    assert "#1 bash(command=python count.py): 344 items" in write("", evidence, 400, _quarters).text


@given(st.lists(st.tuples(st.integers(0, 2), _TEXT), max_size=12), st.integers(50, 800))
def test_an_account_is_the_same_with_and_without_what_was_kept_of_earlier_turns(
    whats: list[tuple[int, str]], budget: int
) -> None:
    evidence = Evidence()
    for number, (what, text) in enumerate(whats):
        evidence = remember(evidence, _entry(number, what, text * 8))
        warm = write("Find it", evidence, budget, _quarters)
        fresh = Evidence(tuple(map(replace, evidence.entries)), evidence.ledger, evidence.dropped)
        assert warm == write("Find it", fresh, budget, _quarters)
        assert (evidence.size, evidence.encoded) == (fresh.size, fresh.encoded)
