from __future__ import annotations

import json
from dataclasses import replace

import orjson
import pytest

from remora.analysis import AgentReport, ModelUse, Price, Refusal, Step, build_report, markdown, report_json
from remora.analysis.reporting.lost import LostWord
from remora.analysis.reporting.totals import cost_of, without_names
from remora.analysis.reporting.words import milliseconds, seconds, totals_line


def agent(number: int, outcome: str = "success", **fields: object) -> AgentReport:
    start = AgentReport(agent_id=f"A{number}", operation="lint", outcome=outcome, turns=2)
    return replace(start, **fields)  # type: ignore[arg-type]


def step(tool: str, outcome: str = "success", summary: str = "ok", ms: float = 10.0) -> Step:
    return Step(turn=1, seq=5, tool=tool, args="", outcome=outcome, summary=summary, duration_ms=ms)


def test_success_is_counted_by_operation_and_by_model() -> None:
    small, large = ModelUse("small", 2, 100, 10), ModelUse("large", 1, 50, 5)
    report = build_report("x", [agent(1, models=(small,)), agent(2, "error", models=(small, large), operation="test")])
    assert report.statuses == {"done": 1, "failed": 1}
    assert [(group.name, group.agents, group.succeeded) for group in report.operations] == [
        ("lint", 1, 1.0),
        ("test", 1, 0.0),
    ]
    assert [(group.name, group.agents) for group in report.models] == [("large", 1), ("small", 2)]
    ruled = build_report("x", [agent(1, models=(small,), by_rule=1), agent(2, by_rule=3), agent(3)])
    assert [(group.name, group.agents) for group in ruled.models] == [("by rule", 1), ("small", 1)]


def test_equal_failures_count_as_one_whatever_names_and_numbers_they_hold() -> None:
    first = step("read", "error", "`a.py` has no line 7")
    second = step("read", "error", "`b.py` has no line 12")
    refused = Refusal(1, 3, "the reply", "There is no tool `fly`")
    report = build_report("x", [agent(1, steps=(first,)), agent(2, steps=(second,), refused=(refused,))])
    assert [(row.what, row.count, row.agents) for row in report.failures] == [
        ("read: … has no line …", 2, ("A1", "A2")),
        ("refused, the reply: There is no tool `fly`", 1, ("A2",)),  # nothing varies
    ]
    assert without_names("'x' and \"y\" and 12") == "… and … and …"


def test_tools_are_sorted_by_all_the_time_they_took() -> None:
    report = build_report("x", [agent(1, steps=(step("quick"), step("slow", ms=500), step("quick", "error")))])
    assert [(row.tool, row.calls, row.errors) for row in report.tools] == [("slow", 1, 0), ("quick", 2, 1)]
    assert report.tools[0].times == (500, 500, 500)
    without_times = [step("rare", ms=0), *[step("usual", ms=0)] * 2, *[step(f"t{n:02}", ms=0) for n in range(30)]]
    many = build_report("x", [agent(1, steps=tuple(without_times)), agent(2)])
    assert [row.tool for row in many.tools][:2] == ["usual", "rare"]
    assert "12 more tools are in the page and in JSON." in markdown(many)


def test_lost_words_are_counted_by_the_tool_that_gave_them() -> None:
    lost = (LostWord("id_1", "list", 5, 2), LostWord("id_2", "list", 5, 3), LostWord("x_1", "get", 9, 3))
    report = build_report("x", [agent(1, lost=lost)])
    assert [(row.tool, row.words, row.turns, row.results) for row in report.losses] == [
        ("list", 2, 2, 1),
        ("get", 1, 1, 1),
    ]


def test_without_a_price_there_is_no_cost_and_a_model_without_one_is_named() -> None:
    uses = (ModelUse("priced", 1, 1_000_000, 500_000), ModelUse("free", 1, 10, 10))
    assert build_report("x", [agent(1, models=uses)]).cost is None
    report = build_report("x", [agent(1, models=uses)], {"priced": Price(2.0, 4.0)}, currency="EUR")
    assert report.cost == pytest.approx(4.0)
    assert report.unpriced == ("free",)
    assert "4.0000 EUR" in totals_line(report)
    assert cost_of((uses[1],), {"priced": Price(2.0)}) is None


def test_a_report_without_agents_says_so() -> None:
    assert totals_line(build_report("x", [])).startswith("0 agents")


def test_json_has_the_computed_values_too() -> None:
    found = json.loads(orjson.dumps(report_json(build_report("x", [agent(1)])), default=str))
    assert found["agents"][0]["status"] == "done"
    assert found["operations"][0]["succeeded"] == 1.0


@pytest.mark.parametrize(
    ("value", "text"), [(0.42, "0.4 s"), (12.4, "12 s"), (200, "3 min 20 s"), (7200, "120 min 0 s")]
)
def test_durations_are_short(value: float, text: str) -> None:
    assert seconds(value) == text
    assert milliseconds(35.2) == "35 ms"
    assert milliseconds(1500) == "1.5 s"
