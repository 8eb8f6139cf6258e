"""The blindness check: what the model saw beside what was there, and nothing of it can steer the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.tiny import HARD, HOSTILE, SETTINGS, Follower, task, tried
from remora.app import Deciders, counter_of
from remora.bench.bench import Asked, make_place, run_bench, trials
from remora.bench.blind import RAW_HEADING, Again, failures, look_again, measured, sight_of, with_raw
from remora.bench.blind_page import blind_page, told
from remora.bench.controls import CONTROLS
from remora.bench.results import Choice, Result
from remora.bench.rows import ROWS, Models
from remora.bench.tasks import Task


class Reader(Follower):
    """Would have read the file on the second turn."""

    def choices(self, prompt):  # type: ignore[no-untyped-def]
        calls = super().choices(prompt)
        return tuple(call.model_copy(update={"tool": "read_file"}) for call in calls) if prompt.turn == 2 else calls


async def failed(path: Path, failing: Task = HARD) -> list[Result]:
    models = Models()
    asked = Asked([failing], [ROWS["first-candidate"]], [CONTROLS["none"]], 1, models)
    running = run_bench(trials(asked), models, make_place(path, None, Reader), keep=lambda result: None)
    return [result async for result in running]


async def test_the_deciding_turn_is_shown_with_the_raw_output_of_the_tool_before(tmp_path: Path) -> None:
    (result,) = await failed(tmp_path / "r.jsonl")
    sight = await sight_of(result, tmp_path)
    assert (sight.prompt.turn, sight.tool) == (2, "run_linter")
    assert "F541" in sight.raw
    assert {spec.name for spec in sight.prompt.tools} >= {"apply_fix", "submit_result"}
    assert "apply_fix" in str(sight.prompt.messages[0]["content"])  # constant parts are read back whole


async def test_without_a_model_failures_are_shown_and_nobody_is_asked(tmp_path: Path) -> None:
    results = await failed(tmp_path / "r.jsonl")
    again = [one async for one in look_again(failures(results), tmp_path, Models())]
    measure = measured(results, again)
    assert (measure.failures, measure.no_wrong_turn, measure.asked_again, measure.share) == (1, 0, 0, None)
    assert "No model was asked again" in told(measure)


async def test_raw_rescues_where_it_alone_leads_to_a_right_call(tmp_path: Path) -> None:
    results = await failed(tmp_path / "r.jsonl")
    sight = await sight_of(results[0], tmp_path)
    right, wrong = results[0].choices[0], Choice(tool="submit_result", args={"summary": "no"})
    pairs = [(wrong, right), (right, right), (wrong, wrong), (wrong, None)]
    again = [Again(sight, packet, raw, asked=True) for packet, raw in pairs]
    assert [one.rescued for one in again] == [True, False, False, False]
    measure = measured(results, again)
    assert (measure.rescued, measure.right_by_packet, measure.right_by_raw, measure.share) == (1, 1, 2, 0.25)
    assert measure.rescued_by_tool == {"lint.run_linter": 1}


async def test_raw_output_is_added_as_far_as_the_model_has_room(tmp_path: Path) -> None:
    (result,) = await failed(tmp_path / "r.jsonl")
    sight = replace(await sight_of(result, tmp_path), raw="x" * 50_000)
    counter = counter_of(None)
    found = Deciders(lambda definition: Follower(HARD), counter, window=4096, reserve=256)
    whole = "".join(str(message["content"]) for message in with_raw(sight, found).messages)
    assert RAW_HEADING in whole
    assert counter.count(whole) <= 4096 - 256


async def test_the_report_shows_hostile_text_as_text(tmp_path: Path) -> None:
    files = {"pyproject.toml": SETTINGS, "app/code.py": HOSTILE}
    hostile = task("hostile", files=files, node="show", check={"kind": "lint", "gone": ["F999"], "stays": ["F998"]})
    results = await failed(tmp_path / "r.jsonl", hostile)
    sight = await sight_of(results[0], tmp_path)
    assert "<script>" in sight.raw
    page = blind_page(measured(results, []), [Again(sight)], "Title <i>")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<i>" not in page


async def test_an_oracle_that_follows_candidates_agrees_with_whoever_does(tmp_path: Path) -> None:
    results = await tried(tmp_path / "r.jsonl", [HARD], ["first-candidate"])
    assert failures(results) == []
    assert measured(results, []).no_wrong_turn == 1
