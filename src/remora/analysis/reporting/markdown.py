"""A report as GitHub-flavoured Markdown, for a pull request or a job summary.

Everything from a stream stands in code spans and fenced blocks: no name, summary or diff can add a link, a mention, an
image or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from remora.analysis.reporting import words
from remora.analysis.reporting.agent import AgentReport
from remora.analysis.reporting.totals import Report
from remora.context.text import one_line, visible
from remora.events import short_id

MAX_CHARACTERS = 60_000
"""A comment on GitHub has at most 65,536 characters."""
MAX_DIFF_LINES = 200
MAX_ROWS = 50
"""Agents in the table. The ones with problems come first."""
MAX_TOOLS = 20
"""Tools in the table. Those that took the most time come first, without times those with the most calls."""
_ORDER = ("failed", "unsealed", "unchanged", "partial", "done", "imported")
_MARKS = {"done": "✅", "partial": "🟡", "unchanged": "⚪", "failed": "❌", "unsealed": "⏸", "imported": "📄"}
_TICKS = re.compile(r"`+")
_WORDS = re.compile(r"[A-Za-z0-9 ,…:-]+")


def markdown(report: Report) -> str:
    """The report as Markdown. Details that do not fit are counted at the end."""
    lines = [f"## {heading(report.title)}", "", words.totals_line(report), ""]
    lines += _agents(report.agents)
    if len(report.agents) > 1:
        lines += _totals(report)
    text = "\n".join(lines)
    left_out = 0
    for agent in _ordered(report.agents):
        block = "\n".join(_details(agent))
        if len(text) + len(block) > MAX_CHARACTERS:
            left_out += 1
        else:
            text = f"{text}\n{block}"
    if left_out:
        text += (
            f"\n\nThe details of {left_out} agents are left out: this report has at most {MAX_CHARACTERS:,} characters."
        )
    return text.rstrip() + "\n"


def heading(text: str) -> str:
    """A title: as it is if it has only letters, digits and spaces, else as code."""
    return text if _WORDS.fullmatch(text) else code(text)


def code(text: str, limit: int = 200) -> str:
    """Untrusted text as a code span, also inside a table."""
    line = one_line(text, limit).replace("|", "\\|")
    if not line:
        return ""
    ticks = "`" * (1 + max(map(len, _TICKS.findall(line)), default=0))
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def fenced(text: str, language: str = "") -> list[str]:
    """Untrusted text as a fenced block."""
    ticks = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    lines = visible(text).rstrip("\n").split("\n")
    more = len(lines) - MAX_DIFF_LINES
    shown = [*lines[:MAX_DIFF_LINES], *([f"… {more} more lines"] if more > 0 else [])]
    return [f"{ticks}{language}", *shown, ticks]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> list[str]:
    """A table; columns named in `numbers` are aligned to the right."""
    found = [f"| {' | '.join(row)} |" for row in rows]
    if not found:
        return []
    rule = " | ".join("---:" if name in numbers else "---" for name in head)
    return [f"| {' | '.join(head)} |", f"| {rule} |", *found, ""]


def _ordered(agents: Sequence[AgentReport]) -> list[AgentReport]:
    return sorted(agents, key=lambda agent: (_ORDER.index(agent.status), agent.agent_id))


def _agents(agents: Sequence[AgentReport]) -> list[str]:
    head = ("", "agent", "operation", "on", "verdict", "counts", "turns", "tokens", "files")
    shown = _ordered(agents)[:MAX_ROWS]
    lines = table(head, map(_agent_row, shown), ("turns", "tokens"))
    if len(agents) > len(shown):
        lines += [f"{len(agents) - len(shown)} more agents are in the totals below.", ""]
    return lines


def _agent_row(agent: AgentReport) -> tuple[str, ...]:
    files = [f"{code(file.path)} {'' if file.decision == 'open' else file.decision}".rstrip() for file in agent.files]
    return (
        _MARKS[agent.status],
        code(short_id(agent.agent_id)),
        code(agent.operation),
        code(words.name_of(agent), 80),
        code(agent.word),
        words.counts_text(agent.check) if agent.check else "",
        str(agent.turns - agent.inherited),
        f"{agent.prompt_tokens:,}",
        "<br>".join(files[:3]) + (f"<br>{len(files) - 3} more" if len(files) > 3 else ""),
    )


def _totals(report: Report) -> Iterator[str]:
    numbers = (
        "agents",
        "done",
        "turns",
        "tokens",
        "time",
        "calls",
        "errors",
        "median",
        "95%",
        "slowest",
        "times",
        "words",
    )
    for title, groups in (("operation", report.operations), ("model", report.models)):
        head = (title, "agents", "done", "turns", "tokens", "time")
        rows = [
            (code(group.name), str(group.agents), words.share(group), f"{group.turns:,}", words.tokens(group),
             words.seconds(group.duration_s))
            for group in groups
        ]  # fmt: skip
        yield from table(head, rows, numbers)
    tools = [
        (code(row.tool), f"{row.calls:,}", f"{row.errors:,}", *map(words.milliseconds, row.times))
        for row in report.tools[:MAX_TOOLS]
    ]
    yield from table(("tool", "calls", "errors", "median", "95%", "slowest"), tools, numbers)
    if len(report.tools) > MAX_TOOLS:
        yield from (f"{len(report.tools) - MAX_TOOLS} more tools are in the page and in JSON.", "")
    failures = [
        (code(row.what), str(row.count), ", ".join(code(short_id(a)) for a in row.agents)) for row in report.failures
    ]
    yield from table(("usual failures", "times", "agents"), failures, numbers)
    losses = [(code(row.tool), str(row.words), ", ".join(map(code, row.examples))) for row in report.losses]
    yield from table(("used later, no longer shown, from", "words", "such as"), losses, numbers)


def _details(agent: AgentReport) -> Iterator[str]:
    title = " · ".join(filter(None, (words.name_of(agent), agent.operation, short_id(agent.agent_id))))
    line = f"<code>{html_text(title)}</code> <code>{html_text(words.verdict_text(agent))}</code>"
    yield f"<details><summary>{_MARKS[agent.status]} {line}</summary>\n"
    yield from _facts(agent)
    rows = [
        (str(step.turn), code(step.tool), code(step.args, 60), step.outcome, code(step.summary, 120), str(step.seq))
        for step in agent.steps
    ]
    yield ""
    yield from table(("turn", "tool", "arguments", "outcome", "result", "seq"), rows)
    for file in agent.files:
        if file.diff:
            yield from fenced(file.diff, "diff")
    yield "\n</details>\n"


def _facts(agent: AgentReport) -> Iterator[str]:
    yield f"- asked: {code(agent.goal, 400)}"
    for text in agent.said:
        yield f"- a person said: {code(text, 400)}"
    if parent := words.parent_text(agent):
        yield f"- {code(parent)}"
    if evidence := words.evidence_text(agent):
        yield f"- evidence of the verdict: {code(evidence)}"
    for item in agent.problems[:10]:
        yield f"- left: {code(words.problem_text(item))}"
    if agent.why:
        yield f"- why not more: {code(agent.why, 400)}"
    if agent.summary:
        yield f"- in its own words: {code(agent.summary, 400)}"
    if agent.by_rule and not agent.model:
        yield "- decided by rule: no model was asked"
    elif agent.model:
        yield f"- decided by {code(agent.model)}: {words.tokens(agent)}, {words.seconds(agent.duration_s)}"
    for refusal in agent.refused[:10]:
        yield f"- refused in turn {refusal.turn} (seq {refusal.seq}): {code(refusal.what)} because {code(refusal.why)}"
    if agent.damage:
        yield f"- damaged: {code(agent.damage, 400)}"


def html_text(text: str) -> str:
    """Untrusted text inside an HTML element: no markup, and nothing that Markdown would read, such as a URL."""
    return re.sub(r"[^\w\s.,;/→·%-]", lambda match: f"&#{ord(match[0])};", one_line(text))
