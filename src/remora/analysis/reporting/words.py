"""Phrases that every rendering of a report shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.analysis.reporting.agent import AgentReport
from remora.analysis.reporting.places import line_now
from remora.analysis.reporting.totals import Group, Report
from remora.context.text import counts_text as counts_text
from remora.context.text import number
from remora.events import short_id

NONE = "–"
"""Instead of a figure that nobody recorded."""


def totals_line(report: Report) -> str:
    """How many agents, how they ended, and what they took."""
    ends = ", ".join(f"{count} {status}" for status, count in report.statuses.items())
    parts = [f"{number(len(report.agents), 'agent')}: {ends}" if ends else number(0, "agent")]
    parts += [number(report.turns, "turn"), tokens(report)]
    parts += [seconds(report.duration_s)] if report.duration_s else []
    return " · ".join([*parts, *([cost] if (cost := cost_text(report.cost, report.currency)) else [])])


def tokens(of: Report | Group | AgentReport) -> str:
    """Tokens in and, where the server said so, out."""
    out = f" + {of.output_tokens:,} out" if of.output_tokens else ""
    return f"{of.prompt_tokens:,} tokens{' in' if out else ''}{out}"


def share(group: Group) -> str:
    """How many of its agents did everything; a dash if nobody judged them."""
    return NONE if group.succeeded is None else f"{group.succeeded:.0%}"


def seconds(value: float) -> str:
    """A duration: `0.4 s`, `12 s`, `3 min 20 s`; a dash where none is recorded."""
    if not value:
        return NONE
    if value < 60:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes:,} min {rest} s"


def milliseconds(value: float) -> str:
    """A short duration: `35 ms`, or seconds from one second on."""
    return (f"{value:.0f} ms" if value else NONE) if value < 1000 else seconds(value / 1000)


def cost_text(cost: float | None, currency: str) -> str:
    """A cost with its currency; empty if it is unknown."""
    return "" if cost is None else f"{cost:.4f} {currency}".rstrip()


def verdict_text(agent: AgentReport) -> str:
    """The verdict with its counts: `partial: 5 → 1 lint_errors_remaining by run_linter`."""
    check = agent.check
    if not check:
        return agent.word
    return f"{agent.word}: {counts_text(check)} {check.get('key', '')} by {check.get('tool', '')}"


def evidence_text(agent: AgentReport) -> str:
    """The seqs that prove the verdict."""
    seqs = agent.check.get("evidence", ())
    return ", ".join(f"seq {seq}" for seq in seqs) if isinstance(seqs, list | tuple) else ""


def problem_text(item: Mapping[str, Any]) -> str:
    """One problem that a check still found, at its line in the project: `line 19: B008 Do not call …`."""
    line = line_now(item)
    place = f"line {line}" if line is not None else f"line {item['row']} when it was checked, changed since"
    return f"{place}: {item['code']} {item['message']}"


def times(report: Report) -> tuple[str, str]:
    """When the first agent began and the last one ended, to the second; empty without agents."""
    began = min((agent.started for agent in report.agents if agent.started), default="")
    ended = max((agent.ended for agent in report.agents), default="")
    return began[:19].replace("T", " "), ended[:19].replace("T", " ")


def name_of(agent: AgentReport) -> str:
    """What the agent worked on: its node, else the beginning of its goal."""
    return agent.node_id or agent.goal[:80] or short_id(agent.agent_id)


def parent_text(agent: AgentReport) -> str:
    """Where the agent came from; empty if it started by itself."""
    relation, parent = agent.parent.get("relation"), agent.parent.get("agent_id")
    if not relation:
        return ""
    if relation == "fork" and isinstance(parent, str):
        return f"forked from {short_id(parent)} after turn {agent.inherited}"
    if relation == "continue" and isinstance(parent, str):
        return f"continues {short_id(parent)}"
    source = parent if isinstance(parent, str) else agent.parent.get("source", "")
    return f"{relation} of {source}"
