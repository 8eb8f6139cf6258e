"""A report as one HTML file: no scripts, no requests, everything from a stream is escaped text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from remora._version import __version__
from remora.analysis.reporting import words
from remora.analysis.reporting.agent import AgentReport, FileReport
from remora.analysis.reporting.html_style import STYLE
from remora.analysis.reporting.totals import Group, Report
from remora.context.text import one_line, visible
from remora.events import short_id

MAX_DETAILS = 200
"""Agents with details. The ones with problems come first; all are in the table."""
MAX_DIFF_LINES = 400
MAX_ROWS = 2000
_ORDER = ("failed", "unsealed", "unchanged", "partial", "done", "imported")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_FOOTER = "Verdicts come from the agents' checks, never from the model's word"
_LINE_CLASSES = {"+": "add", "-": "del", "@": "hunk"}


def html(report: Report) -> str:
    """The report as a page that opens anywhere."""
    return "\n".join(_page(report)) + "\n"


def text(value: object) -> str:
    """Untrusted text for an element or an attribute: one line, no markup, nothing invisible."""
    return escape(one_line(str(value), 2000), quote=True)


def mono(value: object) -> str:
    """Untrusted text as code."""
    return f"<code>{text(value)}</code>"


def _page(report: Report) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{text(report.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>"
    yield f"<header><h1>{text(report.title)}</h1><p>{text(words.totals_line(report))}</p>{_span(report)}</header>"
    yield _bar(report)
    yield from _cards(report)
    ordered = sorted(report.agents, key=lambda agent: (_ORDER.index(agent.status), agent.agent_id))
    detailed = {agent.agent_id for agent in ordered[:MAX_DETAILS]}
    if len(report.agents) != 1:
        yield from _agent_table(ordered, detailed)
    if len(report.agents) > 1:
        yield from _totals(report)
    for agent in ordered[:MAX_DETAILS]:
        yield from _details(agent, is_open=len(report.agents) == 1)
    if len(ordered) > MAX_DETAILS:
        more = len(ordered) - MAX_DETAILS
        yield f"<p class=note>Details of {more:,} more agents: <code>remora trace report AGENT</code></p>"
    yield f"<footer>Remora {text(__version__)} · {_FOOTER}</footer>"
    yield "</main>\n</body>\n</html>"


def _span(report: Report) -> str:
    """When the agents ran."""
    first, last = words.times(report)
    return f"<p>{text(first)} to {text(last)} UTC</p>" if first else ""


def _bar(report: Report) -> str:
    """How the agents ended, as one bar."""
    total = max(len(report.agents), 1)
    parts = [
        f'<span class="{status}" style="width:{100 * count / total:.2f}%" title="{count} {status}"></span>'
        for status, count in report.statuses.items()
    ]
    return f'<div class="bar" role="img" aria-label="{text(words.totals_line(report))}">{"".join(parts)}</div>'


def _cards(report: Report) -> Iterator[str]:
    cards: list[tuple[str, str, str]] = [(status, f"{count:,}", status) for status, count in report.statuses.items()]
    cards += [("turns", f"{report.turns:,}", ""), ("tokens in", f"{report.prompt_tokens:,}", "")]
    if report.output_tokens:
        cards.append(("tokens out", f"{report.output_tokens:,}", ""))
    cards.append(("agents' time", words.seconds(report.duration_s), ""))
    if report.cost is not None:
        cards.append(("cost", words.cost_text(report.cost, report.currency), ""))
    yield '<section class="cards">'
    for name, value, kind in cards:
        yield f'<div class="card {kind}"><b>{text(value)}</b><span>{text(name)}</span></div>'
    yield "</section>"
    if report.unpriced:
        yield f"<p class=note>The cost leaves out models without a price: {text(', '.join(report.unpriced))}</p>"


def _table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()
) -> Iterator[str]:
    """A table. Cells are HTML already."""
    found = list(rows)
    if not found:
        return
    side = ["num" if name in numbers else "" for name in head]
    cells = "".join(f'<th class="{kind}" scope="col">{text(name)}</th>' for name, kind in zip(head, side, strict=True))
    yield f'<section><h2>{text(title)}</h2><div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>'
    for row in found:
        cells = "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in zip(row, side, strict=True))
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div></section>"


def _agent_table(agents: Sequence[AgentReport], detailed: set[str]) -> Iterator[str]:
    head = ("", "agent", "operation", "on", "verdict", "counts", "turns", "tokens", "time", "files")
    rows = [_agent_row(agent, linked=agent.agent_id in detailed) for agent in agents[:MAX_ROWS]]
    yield from _table("Agents", head, rows, ("turns", "tokens", "time"))
    if len(agents) > MAX_ROWS:
        yield f"<p class=note>{len(agents) - MAX_ROWS:,} more agents are in the totals</p>"


def _agent_row(agent: AgentReport, *, linked: bool) -> tuple[str, ...]:
    name = mono(short_id(agent.agent_id))
    return (
        f'<i class="dot {agent.status}" title="{agent.status}"></i>',
        f'<a href="#{anchor(agent)}">{name}</a>' if linked else name,
        text(agent.operation),
        mono(one_line(words.name_of(agent), 90)),
        text(agent.word),
        text(words.counts_text(agent.check)),
        str(agent.turns - agent.inherited),
        f"{agent.prompt_tokens:,}",
        text(words.seconds(agent.duration_s)),
        _file_counts(agent.files),
    )


def anchor(agent: AgentReport) -> str:
    """The id of the agent's section: letters and digits only."""
    return "a-" + "".join(letter for letter in agent.agent_id if letter.isalnum() and letter.isascii())


def _file_counts(files: Sequence[FileReport]) -> str:
    counts = {word: sum(file.decision == word for file in files) for word in ("open", "accepted", "rejected")}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _totals(report: Report) -> Iterator[str]:
    numbers = (
        "agents",
        "turns",
        "tokens",
        "time",
        "cost",
        "calls",
        "errors",
        "median",
        "95%",
        "slowest",
        "times",
        "words",
    )
    for title, groups in (("By operation", report.operations), ("By model", report.models)):
        head = ("name", "agents", "ended", "turns", "tokens", "time", *(["cost"] if report.cost is not None else []))
        yield from _table(title, head, [_group_row(group, report) for group in groups], numbers)
    tools = [
        (mono(row.tool), f"{row.calls:,}", f"{row.errors:,}", *(text(words.milliseconds(ms)) for ms in row.times))
        for row in report.tools
    ]
    yield from _table("By tool, slowest first", ("tool", "calls", "errors", "median", "95%", "slowest"), tools, numbers)
    failures = [
        (text(row.what), f"{row.count:,}", " ".join(mono(short_id(agent)) for agent in row.agents))
        for row in report.failures
    ]
    yield from _table("Usual failures", ("what", "times", "agents"), failures, numbers)
    losses = [
        (mono(row.tool), f"{row.words:,}", f"{row.turns:,}", " ".join(map(mono, row.examples))) for row in report.losses
    ]
    head = ("tool", "words", "turns", "such as")
    yield from _table("Used by a later call, no longer shown in its prompt", head, losses, ("words", "turns"))


def _group_row(group: Group, report: Report) -> tuple[str, ...]:
    parts = "".join(
        f'<span class="{status}" style="width:{100 * count / group.agents:.2f}%"></span>'
        for status, count in group.statuses.items()
    )
    told = ", ".join(f"{count} {status}" for status, count in group.statuses.items())
    cost = [text(words.cost_text(group.cost, report.currency) or "–")] if report.cost is not None else []
    return (
        mono(group.name),
        f"{group.agents:,}",
        f'<div class="bar small">{parts}</div>{text(told)}',
        f"{group.turns:,}",
        text(words.tokens(group)),
        text(words.seconds(group.duration_s)),
        *cost,
    )


def _details(agent: AgentReport, *, is_open: bool) -> Iterator[str]:
    title = f"<b>{text(words.name_of(agent))}</b> {text(agent.operation)} <code>{text(short_id(agent.agent_id))}</code>"
    yield f"<details{' open' if is_open else ''}><summary>"
    yield f'<i class="dot {agent.status}"></i> {title} <span>{text(words.verdict_text(agent))}</span></summary>'
    # A browser opens the details when a link leads to something inside them.
    yield f'<dl id="{anchor(agent)}">'
    for name, value in _facts(agent):
        yield f"<dt>{text(name)}</dt><dd>{text(value)}</dd>"
    yield "</dl>"
    yield from _steps(agent)
    for file in agent.files:
        yield from _file(file)
    yield "</details>"


def _facts(agent: AgentReport) -> Iterator[tuple[str, str]]:
    yield "asked", agent.goal
    yield from (("a person said", said) for said in agent.said)
    if parent := words.parent_text(agent):
        yield "origin", parent
    yield "verdict", words.verdict_text(agent)
    left = "; ".join(words.problem_text(item) for item in agent.problems[:10])
    own = ("its own words", agent.summary)
    optional = (("evidence", words.evidence_text(agent)), ("left", left), ("why not more", agent.why), own)
    yield from ((name, value) for name, value in optional if value)
    yield "model", agent.decided_by or "none"
    yield "took", f"{agent.turns - agent.inherited} turns, {words.tokens(agent)}, {words.seconds(agent.duration_s)}"
    for refusal in agent.refused[:20]:
        yield "refused", f"turn {refusal.turn}, seq {refusal.seq}: {refusal.what}: {refusal.why}"
    yield from (("notice", notice) for notice in agent.notices[:10])
    if agent.damage:
        yield "damaged", agent.damage


def _steps(agent: AgentReport) -> Iterator[str]:
    rows = [
        (
            str(step.turn),
            mono(step.tool),
            mono(one_line(step.args, 120)),
            f'<span class="{"bad" if step.outcome in ("error", "unknown") else ""}">{text(step.outcome)}</span>',
            text(step.summary),
            text(words.milliseconds(step.duration_ms)),
            str(step.seq),
        )
        for step in agent.steps[:500]
    ]
    head = ("turn", "tool", "arguments", "outcome", "result", "time", "seq")
    yield from _table("What it did", head, rows, ("turn", "time", "seq"))


def _file(file: FileReport) -> Iterator[str]:
    yield f"<h3><code>{text(file.path)}</code> {file.decision}</h3>"
    if not file.diff:
        return
    lines = file.diff.rstrip("\n").split("\n")
    shown = [f'<span class="{_line_class(line)}">{escape(visible(line))}</span>' for line in lines[:MAX_DIFF_LINES]]
    if len(lines) > MAX_DIFF_LINES:
        shown.append(f"<span>… {len(lines) - MAX_DIFF_LINES:,} more lines: <code>remora diff</code></span>")
    yield f'<pre class="diff">{"".join(shown)}</pre>'


def _line_class(line: str) -> str:
    return "file" if line.startswith(("+++ ", "--- ")) else _LINE_CLASSES.get(line[:1], "")
