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
from remora.analysis.reporting.places import Place
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


def test_sarif_has_each_problem_at_its_line_as_the_agent_saw_it_if_nobody_looked_at_the_file() -> None:
    agent = lint_agent("A", 10, files=(FileReport("x.py", FileChange(path="x.py")),))
    found, proposed = sarif(build_report("x", [agent]))["runs"][0]["results"]
    assert found["ruleId"] == "remora/lint/E741"
    assert found["locations"][0]["physicalLocation"]["region"] == {"startLine": 10, "startColumn": 4}
    assert (proposed["level"], proposed["ruleId"]) == ("note", "remora/lint/proposed")
    assert proposed["locations"][0]["physicalLocation"]["region"] == {"startLine": 1, "endLine": 20}


def lint_agent(agent_id: str, row: int, **values: Any) -> AgentReport:
    """An agent that left one problem of `x.py`."""
    problem = {"code": "E741", "message": "Ambiguous name", "row": row, "column": 4}
    return AgentReport(
        agent_id=agent_id, operation="lint", node_id="x.py", node={"file": "x.py", "lines": [1, 20]},
        outcome="success", check={"before": 1, "after": 1}, verdict="unchanged", problems=(problem,), **values,
    )  # fmt: skip


def moved(agent: AgentReport, line: int | None, sha256: str = "") -> AgentReport:
    """The agent with its problem at another line of the file as it is now."""
    problems = tuple({**item, "line": line} for item in agent.problems)
    return replace(agent, problems=problems, place=Place(sha256, (3, 22)))


def test_a_problem_has_its_line_in_the_file_as_it_is_now() -> None:
    report = build_report("x", [moved(lint_agent("A", 10), 12)])
    (found,) = sarif(report)["runs"][0]["results"]
    assert found["locations"][0]["physicalLocation"]["region"]["startLine"] == 12
    assert "line 12: E741" in markdown(report)
    assert "line 12: E741" in html(report)
    assert [(item["row"], item["line"]) for item in report_json(report)["agents"][0]["problems"]] == [(10, 12)]


def test_a_problem_whose_line_changed_since_is_counted_in_sarif_and_told_with_its_old_line() -> None:
    report = build_report("x", [moved(lint_agent("A", 10), None)])
    (log,) = sarif(report)["runs"]
    assert (log["results"], log["artifacts"]) == ([], [])
    (told,) = log["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"].startswith("1 problem not listed")
    assert "line 10 when it was checked, changed since: E741" in markdown(report)


def test_sarif_names_the_version_of_each_file_by_its_digest() -> None:
    agents = [moved(lint_agent("A", 10), 12, "aa"), moved(lint_agent("B", 10), 14, "bb"), lint_agent("C", 19)]
    (log,) = sarif(build_report("x", agents))["runs"]
    indexes = [each["locations"][0]["physicalLocation"]["artifactLocation"]["index"] for each in log["results"]]
    assert [log["artifacts"][index].get("hashes") for index in indexes] == [{"sha-256": "aa"}, {"sha-256": "bb"}, None]


def test_a_problem_that_two_agents_found_is_one_result_of_the_later_one() -> None:
    same_line = [lint_agent("A", 12), moved(lint_agent("B", 10), 12)]
    (found,) = sarif(build_report("x", same_line))["runs"][0]["results"]
    assert found["properties"]["agent"] == "B"
    other_lines = [lint_agent("A", 12), moved(lint_agent("B", 12), 14)]
    assert len(sarif(build_report("x", other_lines))["runs"][0]["results"]) == 2
    twice = replace(lint_agent("A", 12), problems=lint_agent("A", 12).problems * 2)
    assert len(sarif(build_report("x", [twice]))["runs"][0]["results"]) == 2
