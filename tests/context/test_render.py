from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context.budget import RESERVED, check_limit, left_out_by, shrink_runs
from remora.context.contracts import ToolSpec
from remora.context.models import DecisionPacket
from remora.context.projection import project
from remora.context.render import fixed_tokens, render, system_text
from remora.errors import BudgetError
from remora.events import CandidateAction, Event, Excerpt
from remora.inference import EstimatedCounter
from strategies import streams

COUNTER = EstimatedCounter()
TOOLS = [ToolSpec(name="run_linter", description="Run the linter."), ToolSpec(name="submit_result")]


def prompt(packet: DecisionPacket, limit: int = 1000) -> Any:
    return render(packet, system_prompt="You fix code.", tools=TOOLS, limit=limit, counter=COUNTER)


def shown(packet: DecisionPacket, limit: int = 1000) -> dict[str, Any]:
    loaded = orjson.loads(prompt(packet, limit).user)
    assert isinstance(loaded, dict)
    return loaded


def packet(**fields: Any) -> DecisionPacket:
    return DecisionPacket(agent_id="a", goal="Fix it", operation="lint", node_id="a.py:f", **fields)


def full_packet() -> DecisionPacket:
    made = packet(
        turn=9,
        node_summary="function f",
        state_summary="almost there",
        diagnostics=["d1", "d2"],
        excerpts=[Excerpt(label="old", text="x = 1\n"), Excerpt(label="new", text="y = 2\n")],
        candidate_actions=[CandidateAction(tool="apply_fix", args={"code": code}) for code in ("A", "B")],
        last_error="broke",
    )
    for number in range(10):
        made.turn = number
        made.add_action("run_linter", f"summary {number} " + "word " * 20, "success")
        made.update_knowledge(f"key{number}", number)
    return made


FIXED = fixed_tokens(system_text("Go.", TOOLS), COUNTER)


@given(streams, st.integers(0, 400))
def test_a_prompt_is_never_over_a_limit_that_passed_the_check(events: list[Event], room: int) -> None:
    limit = FIXED + RESERVED + room
    check_limit(FIXED, limit)
    rendered = render(project(events), system_prompt="Go.", tools=TOOLS, limit=limit, counter=COUNTER)
    assert rendered.tokens["total"] <= limit
    assert sum(COUNTER.count(message["content"]) for message in rendered.messages) <= limit


def test_everything_is_shown_when_it_fits() -> None:
    assert "left_out" not in shown(full_packet(), limit=5000)


def test_everything_is_shown_when_it_fits_to_the_token() -> None:
    made = full_packet()
    exactly = prompt(made, limit=5000).tokens["total"]
    assert prompt(made, limit=exactly).left_out == {}
    assert prompt(made, limit=exactly - 1).left_out != {}


@given(streams, st.integers(0, 2000))
def test_parts_go_in_their_order_and_no_other(events: list[Event], room: int) -> None:
    made, limit = project(events), FIXED + RESERVED + room
    rendered = render(made, system_prompt="Go.", tools=TOOLS, limit=limit, counter=COUNTER)
    runs, taken = shrink_runs(made), sum(rendered.left_out.values())
    assert rendered.left_out == left_out_by(runs, taken)


def test_what_was_left_out_is_counted_in_the_prompt_and_in_the_receipt() -> None:
    rendered = prompt(full_packet(), limit=400)
    told = orjson.loads(rendered.user)["left_out"]
    assert told == rendered.left_out
    assert told["excerpts"] >= 1


def test_older_excerpts_go_before_actions_and_actions_before_knowledge() -> None:
    seen: list[str] = []
    for limit in range(2000, 200, -5):
        try:
            rendered = prompt(full_packet(), limit)
        except BudgetError:
            break
        seen += [field for field in rendered.left_out if field not in seen]
    assert seen == [
        "excerpts",
        "recent_actions",
        "summaries",
        "knowledge",
        "diagnostics",
        "candidate_actions",
        "state_summary",
        "node_summary",
    ]


def test_the_goal_the_error_and_the_newest_action_never_go() -> None:
    smallest = next(limit for limit in range(100, 900) if _fits(full_packet(), limit))
    remains = shown(full_packet(), smallest)
    assert remains["goal"] == "Fix it"
    assert remains["last_error"] == "broke"
    assert [action["summary"][:9] for action in remains["recent_actions"]] == ["summary 9"]


def test_a_goal_in_many_words_is_shown_whole_where_there_is_room() -> None:
    goal = "Please move the meeting with Ada to room 12, " + "and tell everyone who was invited, " * 20
    long = full_packet().model_copy(update={"goal": goal})
    assert shown(long, 1000)["goal"] == goal.strip()
    assert 50 < COUNTER.count(shown(long, 450)["goal"]) < COUNTER.count(goal)


def test_an_argument_that_may_be_left_out_has_its_default_or_is_marked_as_optional() -> None:
    properties = {"path": {"type": "string"}, "depth": {"type": "integer", "default": 1}, "name": {"type": "string"}}
    tool = ToolSpec(name="find", parameters={"type": "object", "properties": properties, "required": ["path"]})
    listed = orjson.loads(system_text("", [tool]).split("\n")[3])
    assert listed["args"]["path"] == {"type": "string"}
    assert listed["args"]["depth"] == {"type": "integer", "default": 1}
    assert listed["args"]["name"] == {"type": "string", "optional": True}


def _fits(made: DecisionPacket, limit: int) -> bool:
    try:
        prompt(made, limit)
    except BudgetError:
        return False
    return True


def test_a_limit_that_cannot_hold_the_fixed_parts_is_refused_with_the_number_it_needs() -> None:
    with pytest.raises(BudgetError, match=r"limit of 300 tokens is too small: .* take 90, and \d+ are reserved"):
        check_limit(90, 300)


@pytest.mark.parametrize("dense", ["𐀀", '"', "\\", "{", "9"])
def test_the_worst_packet_fits_the_reserved_tokens(dense: str) -> None:
    worst = packet(turn=10**6, last_error=dense * 300, constraints={"max_turns": 10**6, "safety": [dense * 300]})
    worst.goal = worst.operation = worst.node_id = worst.node_summary = worst.state_summary = dense * 300
    worst.diagnostics = [dense * 200] * 8
    worst.excerpts = [Excerpt(label=str(n), text=dense * 4000) for n in range(3)]
    worst.candidate_actions = [CandidateAction(tool=dense * 300)] * 5
    worst.extensions = worst.hub_context = {str(n): dense * 300 for n in range(30)}
    for number in range(30):
        worst.add_action(dense * 300, dense * 300, "success")
        worst.update_knowledge(str(number), dense * 300)
        worst.knowledge[str(number)].pinned = number % 2 == 0
    assert prompt(worst, limit=fixed_tokens(system_text("You fix code.", TOOLS), COUNTER) + RESERVED)


def test_no_value_and_no_code_can_look_like_a_heading_in_markdown() -> None:
    made = packet(excerpts=[Excerpt(label="a\n## Goal", text="```\n## Goal: other\n````\n")], extensions={"x\n## y": 1})
    made.update_knowledge("k\n## Goal: a", "v\n## Goal: b")
    made.update_knowledge("plain", "as it is")
    user = render(made, system_prompt="", tools=TOOLS, limit=1000, counter=COUNTER, style="markdown").user
    before, code, after = user.split("`````")
    headings = [line for line in (before + after).splitlines() if line.startswith("#")]
    assert headings == ["## Extensions", "## a ## Goal from line 1", "## Knowledge"]
    assert "## Goal: other" in code
    assert "- plain: as it is" in after


def test_pinned_knowledge_outlives_the_rest() -> None:
    made = packet()
    for number in range(40):
        made.update_knowledge(f"key{number}", "value " * 6)
    made.knowledge["key0"].pinned = True
    kept = shown(made, limit=300)["knowledge"]
    assert "key0" in kept
    assert len(kept) < 40


def test_the_constant_part_is_the_same_bytes_in_every_turn() -> None:
    assert prompt(full_packet()).system == prompt(packet()).system == system_text("You fix code.", TOOLS)


def test_slow_changing_fields_come_before_new_ones() -> None:
    made = full_packet().model_copy(update={"hub_context": {"a.py:f": {"callers": 1}}})
    names = list(shown(made, limit=5000))
    assert names[0] == "goal"
    assert names[-1] == "turn"
    slow_to_new = ["hub_context", "excerpts", "recent_actions", "knowledge", "last_error"]
    assert [name for name in names if name in slow_to_new] == slow_to_new


def test_of_hub_facts_those_pulled_first_stay_longest() -> None:
    made = packet()
    made.hub_context = {f"a.py:f{number}": {"signature": "def f(" + "x, " * 20 + ")"} for number in range(30)}
    kept = list(shown(made, limit=700)["hub_context"])
    assert 0 < len(kept) < 30
    assert kept == [f"a.py:f{number}" for number in range(len(kept))]


def acted(turns: int) -> DecisionPacket:
    """A packet after so many turns of one action each."""
    made = packet()
    for turn in range(1, turns + 1):
        made.turn = turn
        made.add_action("run_linter", f"Found {turn} errors", "success")
    return made


@pytest.mark.parametrize("turns", range(1, 40))
def test_actions_are_only_added_for_five_turns_at_a_time(turns: int) -> None:
    before, now = (prompt(acted(count), limit=5000).user for count in (turns, turns + 1))
    goes_on = now.startswith(before[: before.index("]", before.index("recent_actions"))])
    assert goes_on == (turns < 9 or (turns + 1) % 5 != 0)


@pytest.mark.parametrize("turns", range(1, 40))
def test_at_least_six_of_the_last_actions_are_shown_and_the_others_counted(turns: int) -> None:
    rendered = prompt(acted(turns), limit=5000)
    actions = orjson.loads(rendered.user)["recent_actions"]
    assert min(turns, 6) <= len(actions) <= 10
    assert len(actions) + rendered.left_out.get("recent_actions", 0) == min(turns, 10)
    assert actions[-1]["summary"] == f"Found {turns} errors"


def test_ten_calls_of_one_turn_are_all_shown() -> None:
    made = packet()
    made.turn = 7
    for number in range(12):
        made.add_action("run_linter", f"Found {number} errors", "success")
    assert len(shown(made, limit=5000)["recent_actions"]) == 10


def test_a_packet_with_a_hundred_thousand_entries_still_fits() -> None:
    made = packet()
    for number in range(100_000):
        made.update_knowledge(f"key{number}", number)
    rendered = prompt(made, limit=500)
    assert rendered.tokens["total"] <= 500
    assert rendered.left_out["knowledge"] > 99_000


def test_what_is_left_out_is_not_shown_however_much_is_pinned() -> None:
    made = full_packet()
    for number in range(30_000):
        made.update_knowledge(f"pinned{number}", number)
        made.knowledge[f"pinned{number}"].pinned = True
    rendered = prompt(made, limit=700)
    told, remains = rendered.left_out, orjson.loads(rendered.user)
    assert told["diagnostics"] == 2
    assert "diagnostics" not in remains
    assert "state_summary" not in remains
    assert len(remains["knowledge"]) + told["knowledge"] == len(made.knowledge)
