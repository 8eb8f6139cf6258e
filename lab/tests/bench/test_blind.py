"""The blindness check: what the model saw beside what was there, and nothing of it can steer the page."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bench.tiny import HARD, HOSTILE, SETTINGS, Follower, task, tried
from inference.fakes import FakeServer, Reply, Wire, answer, by_path, chooses
from remora.app import Deciders, counter_of
from remora.config import ServerConfig
from remora.errors import ServerRefused
from remora_lab.bench.answers import Answers
from remora_lab.bench.bench import BenchPlan, make_environment, run_bench, trials
from remora_lab.bench.blind import (
    RAW_HEADING,
    LostStream,
    Recheck,
    failures,
    find_decisive_turn,
    recheck_failures,
    summarize_blindness,
    with_raw,
)
from remora_lab.bench.blind_page import blind_page, describe_blindness
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.results import Choice, Result
from remora_lab.bench.rows import ROWS, Models
from remora_lab.bench.tasks import Task

READ = {"tool": "read_file", "args": {"line": 5}}


class Reader(Follower):
    """Would have read the file on the second turn."""

    def choices(self, prompt):  # type: ignore[no-untyped-def]
        calls = super().choices(prompt)
        return tuple(call.model_copy(update=READ) for call in calls) if prompt.turn == 2 else calls


async def tried_in_vain(path: Path, failing: Task = HARD) -> list[Result]:
    models = Models()
    asked = BenchPlan([failing], [ROWS["first-candidate"]], [CONTROLS["none"]], 1, models)
    running = run_bench(trials(asked), models, make_environment(path, None, Reader), keep=lambda result: None)
    return [result async for result in running]


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Result]]:
    """A folder with the stream of a failed trial, and its result. It is only read."""
    folder = tmp_path_factory.mktemp("lost")
    return folder, asyncio.run(tried_in_vain(folder / "r.jsonl"))


async def test_the_deciding_turn_is_shown_with_the_raw_output_of_the_tool_before(
    lost: tuple[Path, list[Result]],
) -> None:
    folder, (result,) = lost
    sight = await find_decisive_turn(result, folder)
    assert (sight.prompt.turn, sight.tool) == (2, "run_linter")
    assert "F541" in sight.raw
    assert {spec.name for spec in sight.prompt.tools} >= {"apply_fix", "submit_result"}
    assert "apply_fix" in str(sight.prompt.messages[0]["content"])  # constant parts are read back whole


async def test_without_a_model_failures_are_shown_and_nobody_is_asked(lost: tuple[Path, list[Result]]) -> None:
    folder, results = lost
    again = [one async for one in recheck_failures(failures(results), folder, Models())]
    measure = summarize_blindness(results, again)
    assert (measure.failures, measure.no_wrong_turn, measure.asked_again, measure.share) == (1, 0, 0, None)
    assert "No model was asked again" in describe_blindness(measure)


async def test_a_failure_whose_stream_is_gone_is_counted_and_the_others_are_looked_at(
    lost: tuple[Path, list[Result]],
) -> None:
    folder, (result,) = lost
    gone = result.model_copy(update={"task": "gone", "stream": "r.streams/nowhere"})
    cut = result.model_copy(update={"task": "cut", "wrong_turn": 99})
    looked = [one async for one in recheck_failures([gone, result, cut], folder, None)]
    assert [type(one) for one in looked] == [LostStream, Recheck, LostStream]
    measure = summarize_blindness([gone, result, cut], looked)
    assert (measure.failures, measure.lost) == (3, 2)
    assert "2 could not be looked at" in describe_blindness(measure)
    assert blind_page(measure, looked, "t").count("not looked at: ") == 2


RIGHT, WRONG = chooses("read_file", line=5), chooses("submit_result", summary="It is done")


def served(*replies: Reply) -> Reply:
    """A server with one model that gives these answers, and the last of them from then on."""
    left = list(replies)

    def decide(wire: Wire) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(wire)

    return by_path(v1__models=answer({"data": [{"id": "tiny"}]}), v1__chat__completions=decide)


async def asked(results: list[Result], folder: Path, *replies: Reply, answers: Answers | None = None) -> list[Recheck]:
    with FakeServer(served(*replies)) as server:
        models = Models(server=ServerConfig(server=server.url, model="tiny", mode="json"))
        looks = recheck_failures(results, folder, models, row=ROWS["server"], answers=answers)
        return [one async for one in looks if isinstance(one, Recheck)]


async def test_a_model_is_asked_twice_and_what_it_said_is_not_asked_again(
    lost: tuple[Path, list[Result]], tmp_path: Path
) -> None:
    folder, results = lost
    (one,) = await asked(results, folder, WRONG, RIGHT, answers=Answers(tmp_path / "a.jsonl"))
    assert (one.right_by_packet, one.right_by_raw, one.rescued) == (False, True, True)
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(b'{"agent_id": "cut')  # by a kill
    kept = Answers(tmp_path / "a.jsonl", resume=True)
    (same,) = await asked(results, folder, WRONG, WRONG, answers=kept)
    assert same.rescued
    (anew,) = await asked(results, folder, WRONG, WRONG, answers=Answers(tmp_path / "a.jsonl"))
    assert not anew.rescued


async def test_a_prompt_that_is_refused_is_no_answer_and_a_missing_model_ends_the_check(
    lost: tuple[Path, list[Result]],
) -> None:
    folder, results = lost
    (one,) = await asked(results, folder, RIGHT, answer({"error": {"message": "too long"}}, 400))
    assert (one.asked, one.right_by_packet, one.with_raw) == (True, True, None)
    with pytest.raises(ServerRefused, match="HTTP 404"):
        await asked(results, folder, answer({"error": {"message": "no such model"}}, 404))


async def test_raw_rescues_where_it_alone_leads_to_a_right_call(lost: tuple[Path, list[Result]]) -> None:
    folder, results = lost
    sight = await find_decisive_turn(results[0], folder)
    right, wrong = results[0].choices[0], Choice(tool="submit_result", args={"summary": "no"})
    pairs = [(wrong, right), (right, right), (wrong, wrong), (wrong, None)]
    again = [Recheck(sight, packet, raw, asked=True) for packet, raw in pairs]
    assert [one.rescued for one in again] == [True, False, False, False]
    measure = summarize_blindness(results, again)
    assert (measure.rescued, measure.right_by_packet, measure.right_by_raw, measure.share) == (1, 1, 2, 0.25)
    assert measure.rescued_by_tool == {"lint.run_linter": 1}


async def test_raw_output_is_added_as_far_as_the_model_has_room(lost: tuple[Path, list[Result]]) -> None:
    folder, (result,) = lost
    sight = replace(await find_decisive_turn(result, folder), raw="x" * 50_000)
    counter = counter_of(None)
    found = Deciders(lambda definition: Follower(HARD), counter, window=4096, reserve=256)
    whole = "".join(str(message["content"]) for message in with_raw(sight, found).messages)
    assert RAW_HEADING in whole
    assert counter.count(whole) <= 4096 - 256


async def test_the_report_shows_hostile_text_as_text(tmp_path: Path) -> None:
    files = {"pyproject.toml": SETTINGS, "app/code.py": HOSTILE}
    hostile = task("hostile", files=files, node="show", check={"kind": "lint", "gone": ["F999"], "stays": ["F998"]})
    results = await tried_in_vain(tmp_path / "r.jsonl", hostile)
    sight = await find_decisive_turn(results[0], tmp_path)
    assert "<script>" in sight.raw
    page = blind_page(summarize_blindness(results, []), [Recheck(sight)], "Title <i>")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<i>" not in page


async def test_an_oracle_that_follows_candidates_agrees_with_whoever_does(tmp_path: Path) -> None:
    results = await tried(tmp_path / "r.jsonl", [HARD], ["first-candidate"])
    assert failures(results) == []
    assert summarize_blindness(results, []).no_wrong_turn == 1
