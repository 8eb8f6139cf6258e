"""Rows of a suite: what the oracle would call, on what the real runner showed, as packets and as chats."""

from __future__ import annotations

from pathlib import Path

import orjson

from remora.context.history import HISTORY
from remora.context.render import RENDERERS
from remora.events import Call, CandidateAction
from remora.ports import Prompt
from remora_lab.bench.oracle import Oracle
from remora_lab.bench.suite import read_suite, select_tasks
from remora_lab.bench.wordings import FIRST
from remora_lab.train import suite_rows
from remora_lab.train._episodes import label

SUITE = Path(__file__).parents[3] / "benchmarks" / "tasks"


def prompt(*candidates: CandidateAction) -> Prompt:
    return Prompt(({"role": "user", "content": "known: F401, line 7"},), (), candidates, 1)


def choice(tool: str, **args: object) -> Call:
    return Call(call_id="c", tool=tool, args=args)


def test_the_first_right_candidate_is_the_answer_and_else_what_the_prompt_tells() -> None:
    choices = [choice("fix", code="F401"), choice("fix", code="E711")]
    wrong, second = CandidateAction(tool="submit", args={}), CandidateAction(tool="fix", args={"code": "E711"})
    assert label(choices, prompt(wrong, second)).args == {"code": "E711"}
    assert label(choices, prompt(wrong)).args == {"code": "F401"}
    written = [choice("write", cases=["not there"]), choice("write")]
    assert label(written, prompt()).args == {}
    assert label(written[:1], prompt()).args == {"cases": ["not there"]}


async def test_episodes_of_real_tools_give_valid_answers_and_the_same_turns_as_chats() -> None:
    suite = read_suite(SUITE)
    tasks = select_tasks(suite, "train", ("lint",), 3)
    made = [each async for each in suite_rows(suite, tasks, Oracle, episodes=2, seed=4, jobs=2)]
    assert len(made) == 6
    packets = [row for each in made for row in each.packets]
    chats = [row for each in made for row in each.chats]
    assert len(packets) > 6
    assert {row.renderer for row in packets} <= set(RENDERERS.values())
    assert {row.renderer for row in chats} == {HISTORY}
    answers = {row.id: row.answer for row in packets}
    assert {row.id.replace("-chat", ""): row.answer for row in chats} == answers
    for row in (*packets, *chats):
        assert f'"name":"{orjson.loads(row.answer)["tool"]}"' in row.messages[0]["content"]
        assert not any(f"{word}_" in row.messages[0]["content"] for word in FIRST)
    plain = [row for row in packets if row.id.split("/")[0].endswith("-0")]
    assert orjson.loads(plain[0].answer)["tool"] in (
        "run_linter",
        "apply_fix",
        "read_file",
        "edit_lines",
        "submit_result",
    )
