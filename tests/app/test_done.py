"""A model that was not trained on packets is told when the work is done, and does not do it again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remora
from inference.fakes import FakeServer, Wire, answer, by_path, chooses, says
from remora.context.models import DecisionPacket
from remora.events import CandidateAction, ModelRequestEvent
from remora.trace import read_events
from remora.twotrack._prompts import done_line

SUBMIT = CandidateAction(tool="submit_result", args={"summary": "Done"})
OTHER = CandidateAction(tool="write_docstring", args={})


@given(st.sampled_from([0, 1, -1, None, False, "0", 0.5]), st.lists(st.sampled_from([SUBMIT, OTHER]), max_size=2))
def test_the_line_is_there_only_if_the_check_finds_nothing_and_the_tools_suggest_to_submit(
    value: object, candidates: list[CandidateAction]
) -> None:
    packet = DecisionPacket(agent_id="a", goal="g", operation="o", node_id="n", candidate_actions=candidates)
    packet.update_knowledge("problems", value)
    expected = value == 0 and value is not False and candidates[:1] == [SUBMIT]
    assert bool(done_line(packet, "problems")) == expected
    assert done_line(packet, "") == done_line(packet, "other") == ""


SENTENCE = "Add up what is charged for all prices, rounded."
CODE = (
    "def total(prices):\n    charged = 0\n    for one in prices:\n        charged += one\n    return round(charged)\n"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.py").write_text(CODE)
    return tmp_path


def obeys_the_last_line(wire: Wire) -> None:
    """Writes the sentence when asked for one, else the docstring again, until the last line says that it is done."""
    if not wire.request.body.get("stream"):
        return answer({"choices": [{"message": {"content": "ready"}}]})(wire)
    messages = wire.request.body["messages"]
    last = messages[-1]["content"].splitlines()[-1]
    if "write_docstring" not in messages[0]["content"]:  # a draft: the sentence alone
        return says(SENTENCE)(wire)
    if last.endswith("Call submit_result."):
        return chooses("submit_result", summary="Wrote it")(wire)
    return chooses("write_docstring", summary=SENTENCE)(wire)


def test_a_model_that_repeats_itself_submits_when_its_docstring_is_written(root: Path) -> None:
    with FakeServer(
        by_path(v1__models=answer({"data": [{"id": "m"}]}), v1__chat__completions=obeys_the_last_line)
    ) as server:
        project = remora.open_project(root, {"server.server": server.url})
        (result,) = asyncio.run(project.runs.analyze([root / "a.py"], ["docstring"]))
        bodies = [request.body for request in server.asked if request.body and request.body.get("stream")]
    assert (result.outcome, result.reason, result.turns, result.verdict) == ("success", "submitted", 2, "written")
    assert "def total(prices):" in bodies[0]["messages"][-1]["content"]
    assert bodies[1]["messages"][-1]["content"].endswith(
        "`docstring_problems` is 0: the work is done. Call submit_result."
    )
    receipts = [e for e in read_events(project.library.find(result.agent_id)) if isinstance(e, ModelRequestEvent)]
    assert "closing" not in receipts[0].tokens
    assert 0 < receipts[1].tokens["closing"] < receipts[1].tokens["total"] <= receipts[1].limit
