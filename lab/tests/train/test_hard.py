"""Rows in which the obvious call is wrong."""

from __future__ import annotations

from remora.inference import EstimatedCounter
from remora_lab.train import TrainingRow, is_hard, synthetic_rows

RIGHT = '{"tool":"set_version","args":{"version":"1.2"}}'


def row(packet: str) -> TrainingRow:
    return TrainingRow("e/1", "variety", "o", "json-3", ({"role": "user", "content": packet},), RIGHT)


def test_a_row_whose_first_suggestion_is_right_is_easy() -> None:
    assert not is_hard(row('{"candidate_actions":[{"tool":"set_version","args":{"version":"1.2"}},{"tool":"stop"}]}'))
    assert not is_hard(row('{"goal":"Nothing is suggested"}'))
    assert not is_hard(row("A chat and no packet"))


def test_a_row_whose_first_suggestion_is_wrong_or_whose_last_call_failed_is_hard() -> None:
    assert is_hard(row('{"candidate_actions":[{"tool":"set_version","args":{"version":"1.1"}}]}'))
    assert is_hard(row('{"candidate_actions":[{"tool":"stop"},{"tool":"set_version","args":{"version":"1.2"}}]}'))
    assert is_hard(row('{"last_error":"no such version"}\nand a line below'))


def test_made_up_agents_have_rows_of_both_kinds() -> None:
    made = [is_hard(each) for each in synthetic_rows(3, 200, EstimatedCounter())]
    assert 20 < sum(made) < 180
