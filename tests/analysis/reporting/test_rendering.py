"""Everything from a stream is text in every rendering of a report (row 36 of the reliability table)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from analysis.reporting.payloads import PAYLOADS
from remora.analysis import (
    AgentReport,
    FileReport,
    ModelUse,
    Refusal,
    Report,
    Step,
    build_report,
    html,
    markdown,
    report_agent,
    report_json,
    sarif,
)
from remora.analysis.reporting.lost import LostWord
from remora.analysis.reporting.markdown import MAX_CHARACTERS, code, fenced
from remora.analysis.reporting.places import line_before
from remora.events import FileChange
from remora.trace import read_events

GOLDEN = Path(__file__).parents[2] / "golden" / "format-1-lint.jsonl"
OURS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "p", "div", "span", "section",
    "b", "i", "table", "thead", "tbody", "tr", "th", "td", "a", "code", "pre", "details", "summary", "dl", "dt", "dd",
    "footer",
}  # fmt: skip
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def hostile(text: str) -> Report:
    """A report with the text in every field that comes from a stream."""
    check = {"tool": text, "key": text, "before": 3, "after": 1, "evidence": [text], "why": text, "notes": [text]}
    problem = {"code": text, "message": text, "row": 3, "column": 1}
    agent = AgentReport(
        agent_id=text,
        run_id=text,
        operation=text,
        node_id=text,
        node={"file": text, "lines": [1, 2]},
        goal=text,
        said=(text,),
        parent={"relation": text, "agent_id": text},
        outcome="partial",
        reason=text,
        summary=text,
        verdict=text,
        check=check,
        problems=(problem,),
        turns=1,
        steps=(Step(1, 5, text, text, "error", text, 1.0),),
        refused=(Refusal(1, 2, text, text),),
        models=(ModelUse(text, 1, 10, 5),),
        files=(FileReport(text, FileChange(path=text), diff=f"--- a\n+++ b\n@@ -1 +1 @@\n-{text}\n+{text}\n"),),
        lost=(LostWord(text, text, 5, 1),),
        notices=(text,),
        damage=text,
    )
    other = replace(agent, agent_id=f"{text}2", outcome="error", verdict="", problems=())
    return build_report(text, [agent, other], searched_losses=True)


class Found(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_no_text_of_a_stream_becomes_markup_in_the_page() -> None:
    for payload in PAYLOADS:
        check_page(payload)


def check_page(payload: str) -> None:
    page = html(hostile(payload))
    found = Found()
    found.feed(page)
    assert found.tags <= OURS
    for name, value in found.attributes:
        assert not name.startswith("on")
        assert name in {
            "lang", "charset", "http-equiv", "content", "name", "class", "style", "title", "role", "aria-label", "id",
            "href", "scope", "open",
        }  # fmt: skip
        assert name != "href" or re.fullmatch(r"#a-[A-Za-z0-9]*", value or "")
        assert name != "style" or re.fullmatch(r"width:[0-9.]+%", value or "")
    assert not STEERING.search(page)
    assert page.count("default-src &#x27;none&#x27;") == 1


def test_no_text_of_a_stream_leaves_its_code_span_in_markdown() -> None:
    for payload in PAYLOADS:
        check_markdown(payload)


def check_markdown(payload: str) -> None:
    text = markdown(hostile(payload))
    assert not STEERING.search(text)
    for line in outside_code(text):
        assert not re.search(r"<(?!/?(?:details|summary|code)>|br>)", line), line
        assert "](" not in line.replace("\\]", "").replace("\\(", ""), line
        assert not re.search(r"(?<![\\&])[@#](?=\w)|://", line), line


def outside_code(text: str) -> list[str]:
    """The lines without fenced blocks and code spans."""
    lines, fence = [], ""
    for line in text.split("\n"):
        ticks = re.match(r"`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif ticks and not line.endswith("`" * 3 + " "):
            fence = ticks[0]
        else:
            lines.append(re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line))
    assert not fence, "a fence was not closed"
    return lines


def test_sarif_stays_json_with_plain_messages_and_escaped_places() -> None:
    for payload in PAYLOADS:
        check_sarif(payload)


def check_sarif(payload: str) -> None:
    log: dict[str, Any] = json.loads(json.dumps(sarif(hostile(payload))))
    for result in log["runs"][0]["results"]:
        assert not re.search(r"(?<!\\)\[", result["message"]["text"].replace("\\\\", ""))
        for place in result.get("locations", ()):
            assert re.fullmatch(r"[A-Za-z0-9_.~/%-]*", place["physicalLocation"]["artifactLocation"]["uri"])


def test_there_are_enough_payloads() -> None:
    assert len(set(PAYLOADS)) >= 150


def test_a_code_span_and_a_fence_are_longer_than_what_they_hold() -> None:
    assert code("a`b``c") == "```a`b``c```"
    assert code("`x`") == "`` `x` ``"
    assert code("a|b") == "`a\\|b`"
    assert fenced("````\nx")[0] == "`````"


def test_a_report_over_many_agents_fits_a_comment() -> None:
    one = report_agent(read_events(GOLDEN))
    many = [replace(one, agent_id=f"AGENT{number}", goal="long " * 300) for number in range(300)]
    text = markdown(build_report("many", many))
    assert len(text) <= MAX_CHARACTERS + 200
    assert "are left out" in text
    assert "250 more agents" in text


def test_sarif_has_each_problem_at_its_line_before_the_agents_change() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -2,3 +2,5 @@\n a\n+new\n+new\n b\n-c\n+d\n"
    assert [line_before(diff, line) for line in (1, 2, 3, 5, 6, 7, 10)] == [1, 2, 3, 3, 4, 5, 8]
    assert line_before("", 7) == 7
    problem = {"code": "E501", "message": "Line too long", "row": 10, "column": 4}
    agent = AgentReport(
        agent_id="A", operation="lint", node_id="x.py:f", node={"file": "x.py", "lines": [1, 20]}, outcome="success",
        check={"before": 2, "after": 1, "key": "errors"}, verdict="partial", problems=(problem,),
        files=(FileReport("x.py", FileChange(path="x.py"), diff=diff),),
    )  # fmt: skip
    found, proposed = sarif(build_report("x", [agent]))["runs"][0]["results"]
    assert found["ruleId"] == "remora/lint/E501"
    assert found["locations"][0]["physicalLocation"]["region"] == {"startLine": 8, "startColumn": 4}
    assert (proposed["level"], proposed["ruleId"]) == ("note", "remora/lint/proposed")


def lint_agent(agent_id: str, row: int, **values: Any) -> AgentReport:
    """An agent that left one problem of `x.py`."""
    problem = {"code": "E741", "message": "Ambiguous name", "row": row, "column": 4}
    return AgentReport(
        agent_id=agent_id, operation="lint", node_id="x.py", node={"file": "x.py", "lines": [1, 20]},
        outcome="success", check={"before": 1, "after": 1}, verdict="unchanged", problems=(problem,), **values,
    )  # fmt: skip


SHORTER = "--- a/x.py\n+++ b/x.py\n@@ -1,4 +1,2 @@\n-import os\n-import sys\n a\n b\n"


def test_a_problem_of_an_agent_that_began_with_changes_of_others_has_its_line_in_the_project() -> None:
    report = build_report("x", [lint_agent("A", 10, began_with=SHORTER)])
    (found,) = sarif(report)["runs"][0]["results"]
    assert found["locations"][0]["physicalLocation"]["region"]["startLine"] == 12
    assert "line 12: E741" in markdown(report)
    assert "line 12: E741" in html(report)
    assert [(item["row"], item["line"]) for item in report_json(report)["agents"][0]["problems"]] == [(10, 12)]


def test_a_problem_that_two_agents_found_is_one_result_of_the_later_one() -> None:
    same_line = [lint_agent("A", 12), lint_agent("B", 10, began_with=SHORTER)]
    (found,) = sarif(build_report("x", same_line))["runs"][0]["results"]
    assert found["properties"]["agent"] == "B"
    other_lines = [lint_agent("A", 12), lint_agent("B", 12, began_with=SHORTER)]
    assert len(sarif(build_report("x", other_lines))["runs"][0]["results"]) == 2
    twice = replace(lint_agent("A", 12), problems=lint_agent("A", 12).problems * 2)
    assert len(sarif(build_report("x", [twice]))["runs"][0]["results"]) == 2
