from __future__ import annotations

from remora.context.repeat import REMEMBERED, REPEAT_LIMIT, RepeatGuard
from remora.events import CandidateAction, PacketDelta

AGAIN = CandidateAction(tool="apply_fix", args={"code": "E741"})
OTHER = CandidateAction(tool="submit_result")
DELTA = PacketDelta(candidate_actions=(AGAIN, OTHER))


def note(guard: RepeatGuard, raw: bytes = b"no fix") -> PacketDelta:
    return guard.note(AGAIN.tool, AGAIN.args, raw, DELTA)


def test_a_first_call_is_not_a_repetition() -> None:
    assert note(RepeatGuard()) == DELTA


def test_the_same_call_with_the_same_result_is_told() -> None:
    guard = RepeatGuard()
    note(guard)
    assert note(guard).diagnostics == ('Same call, same result, 2 times: apply_fix {"code":"E741"}',)


def test_the_same_call_with_another_result_is_not() -> None:
    guard = RepeatGuard()
    note(guard)
    assert note(guard, b"fixed").diagnostics == ()


def test_after_the_limit_the_call_is_no_longer_offered_and_others_are() -> None:
    guard = RepeatGuard()
    for _ in range(REPEAT_LIMIT - 1):
        assert note(guard).candidate_actions == (AGAIN, OTHER)
    assert note(guard).candidate_actions == (OTHER,)
    assert guard.note("run_linter", {}, b"x", DELTA).candidate_actions == (OTHER,)


def test_what_the_guard_remembers_does_not_grow_with_the_run() -> None:
    guard = RepeatGuard()
    for number in range(REMEMBERED + 50):
        guard.note("read_file", {"path": str(number)}, b"x", PacketDelta())
    assert len(guard._latest) == REMEMBERED
    assert guard.note("read_file", {"path": "0"}, b"x", PacketDelta()).diagnostics == ()
    assert guard.note("read_file", {"path": str(REMEMBERED + 49)}, b"x", PacketDelta()).diagnostics != ()
