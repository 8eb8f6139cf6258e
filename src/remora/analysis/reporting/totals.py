"""Totals over many agents: success by operation, model and tool, usual failures, slow tools, lost words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median, quantiles
from typing import Any

from remora.analysis._rungs import BY_RULE
from remora.analysis.reporting.agent import AgentReport, ModelUse, Status
from remora.analysis.reporting.places import line_now

TOP = 10
"""Rows of the tables of failures, slow tools and lost words."""
_VARYING = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\d+")
_EXAMPLES = 5
_NamesOf = Callable[[AgentReport], Iterable[str]]


@dataclass(frozen=True)
class Price:
    """What a model costs for a million tokens."""

    input: float
    output: float = 0.0


@dataclass(frozen=True)
class Group:
    """The agents of one operation, or of one model."""

    name: str
    agents: int
    statuses: Mapping[Status, int]
    turns: int
    prompt_tokens: int
    output_tokens: int
    duration_s: float
    cost: float | None = None
    """None without a price."""

    @property
    def succeeded(self) -> float | None:
        """The share of agents that did everything; None if nobody judged them, as for imported logs."""
        judged = self.agents - self.statuses.get("imported", 0)
        return self.statuses.get("done", 0) / judged if judged else None


@dataclass(frozen=True)
class ToolTotals:
    """All calls of one tool."""

    tool: str
    calls: int
    errors: int
    total_ms: float
    median_ms: float
    p95_ms: float
    slowest_ms: float

    @property
    def times(self) -> tuple[float, float, float]:
        """Median, 95th percentile and maximum, in milliseconds."""
        return self.median_ms, self.p95_ms, self.slowest_ms


@dataclass(frozen=True)
class Failure:
    """A usual failure, without names and numbers if they vary."""

    what: str
    count: int
    agents: tuple[str, ...]
    """Some of the agents with it."""
    example: str


@dataclass(frozen=True)
class Losses:
    """What calls took from the results of one tool although prompts no longer showed it."""

    tool: str
    words: int
    turns: int
    results: int
    """Results of the tool that lost something."""
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """A report on some agents."""

    title: str
    agents: tuple[AgentReport, ...]
    statuses: Mapping[Status, int] = field(default_factory=dict)
    operations: tuple[Group, ...] = ()
    models: tuple[Group, ...] = ()
    tools: tuple[ToolTotals, ...] = ()
    failures: tuple[Failure, ...] = ()
    losses: tuple[Losses, ...] = ()
    turns: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    duration_s: float = 0.0
    """Seconds of all agents together, not of the clock: agents run at once."""
    cost: float | None = None
    """None if no model has a price."""
    unpriced: tuple[str, ...] = ()
    """Models without a price, if others have one."""
    currency: str = ""
    searched_losses: bool = False

    def __repr__(self) -> str:
        """A short text: `asyncio.run` writes its result as text when it ends, and never shows it."""
        return f"<Report {self.title!r}: {len(self.agents)} agents>"


def build_report(
    title: str,
    agents: Sequence[AgentReport],
    prices: Mapping[str, Price] | None = None,
    *,
    currency: str = "",
    searched_losses: bool = False,
) -> Report:
    """Sum up some agents."""
    prices = prices or {}
    models = {use.model for agent in agents for use in agent.models}
    costs = [cost_of(agent.models, prices) for agent in agents]
    return Report(
        title=title,
        agents=tuple(agents),
        statuses=_statuses(agents),
        operations=_groups(agents, prices, lambda agent: [agent.operation or "(none)"]),
        models=_groups(agents, prices, _deciders),
        tools=_tools(agents),
        failures=_failures(agents),
        losses=_losses(agents),
        turns=sum(agent.turns - agent.inherited for agent in agents),
        prompt_tokens=sum(agent.prompt_tokens for agent in agents),
        output_tokens=sum(agent.output_tokens for agent in agents),
        duration_s=sum(agent.duration_s for agent in agents),
        cost=sum(cost or 0.0 for cost in costs) if models & prices.keys() else None,
        unpriced=tuple(sorted(models - prices.keys())) if models & prices.keys() else (),
        currency=currency,
        searched_losses=searched_losses,
    )


def cost_of(uses: Iterable[ModelUse], prices: Mapping[str, Price]) -> float | None:
    """What these requests cost; None if no model of them has a price."""
    priced = [(use, prices[use.model]) for use in uses if use.model in prices]
    if not priced:
        return None
    return sum(use.prompt_tokens * price.input + use.output_tokens * price.output for use, price in priced) / 1e6


def _deciders(agent: AgentReport) -> list[str]:
    """The models that decided, or rules where only they did."""
    return [use.model for use in agent.models] or ([BY_RULE] if agent.by_rule else [])


def _statuses(agents: Sequence[AgentReport]) -> dict[Status, int]:
    counts = Counter(agent.status for agent in agents)
    order: tuple[Status, ...] = ("done", "partial", "unchanged", "failed", "unsealed", "imported")
    return {status: counts[status] for status in order if counts[status]}


def _groups(agents: Sequence[AgentReport], prices: Mapping[str, Price], names_of: _NamesOf) -> tuple[Group, ...]:
    grouped: dict[str, list[AgentReport]] = {}
    for agent in agents:
        for name in dict.fromkeys(names_of(agent)):
            grouped.setdefault(name, []).append(agent)
    return tuple(_group(name, grouped[name], prices) for name in sorted(grouped))


def _group(name: str, agents: Sequence[AgentReport], prices: Mapping[str, Price]) -> Group:
    costs = [cost_of(agent.models, prices) for agent in agents]
    known = [cost for cost in costs if cost is not None]
    return Group(
        name=name,
        agents=len(agents),
        statuses=_statuses(agents),
        turns=sum(agent.turns - agent.inherited for agent in agents),
        prompt_tokens=sum(agent.prompt_tokens for agent in agents),
        output_tokens=sum(agent.output_tokens for agent in agents),
        duration_s=sum(agent.duration_s for agent in agents),
        cost=sum(known) if known else None,
    )


def _tools(agents: Sequence[AgentReport]) -> tuple[ToolTotals, ...]:
    times: dict[str, list[float]] = {}
    errors: Counter[str] = Counter()
    for agent in agents:
        for step in agent.steps:
            times.setdefault(step.tool, []).append(step.duration_ms)
            errors[step.tool] += step.outcome in ("error", "unknown")
    rows = [
        ToolTotals(tool, len(each), errors[tool], sum(each), median(each), _p95(each), max(each))
        for tool, each in times.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.total_ms, -row.calls, row.tool)))  # logs have no times


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


def _failures(agents: Sequence[AgentReport]) -> tuple[Failure, ...]:
    found: dict[str, list[tuple[str, str]]] = {}
    whole: dict[str, set[str]] = {}
    for agent in agents:
        for kind, why in _failures_of(agent):
            what = f"{kind}: {without_names(why)}"
            found.setdefault(what, []).append((agent.agent_id, why))
            whole.setdefault(what, set()).add(f"{kind}: {why}")
    rows = [
        Failure(
            min(whole[what]) if len(whole[what]) == 1 else what,  # nothing varies: names and numbers may stay
            len(each),
            tuple(dict.fromkeys(agent for agent, _ in each))[:_EXAMPLES],
            each[0][1],
        )
        for what, each in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.what))[:TOP])


def _failures_of(agent: AgentReport) -> Iterable[tuple[str, str]]:
    if agent.status in ("failed", "partial", "unchanged") and agent.why:
        yield f"agent {agent.word}", agent.why
    for step in agent.steps:
        if step.outcome in ("error", "unknown"):
            yield step.tool, step.summary
    for refusal in agent.refused:
        yield f"refused, {refusal.what}", refusal.why


def without_names(text: str) -> str:
    """The text without quoted names and numbers, so that equal failures count as one."""
    return _VARYING.sub("…", text)


def _losses(agents: Sequence[AgentReport]) -> tuple[Losses, ...]:
    words: dict[str, list[tuple[str, int, int, str]]] = {}
    for agent in agents:
        for lost in agent.lost:
            words.setdefault(lost.tool, []).append((agent.agent_id, lost.turn, lost.seq, lost.word))
    rows = [
        Losses(
            tool,
            len(each),
            len({(agent, turn) for agent, turn, _, _ in each}),
            len({(agent, seq) for agent, _, seq, _ in each}),
            tuple(dict.fromkeys(word for *_, word in each))[:_EXAMPLES],
        )
        for tool, each in words.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.words, row.tool))[:TOP])


def report_json(report: Report) -> dict[str, Any]:
    """The report for JSON, with the values that are computed from others."""
    agents = [
        asdict(agent)
        | {"files": [{"path": file.path, "decision": file.decision, "diff": file.diff} for file in agent.files]}
        | {"problems": [{**item, "line": line_now(item)} for item in agent.problems]}
        | {name: getattr(agent, name) for name in _COMPUTED}
        for agent in report.agents
    ]
    groups = {
        name: [asdict(group) | {"succeeded": group.succeeded} for group in getattr(report, name)]
        for name in ("operations", "models")
    }
    return asdict(replace(report, agents=())) | groups | {"agents": agents}


_COMPUTED = ("status", "why", "prompt_tokens", "output_tokens", "duration_s")
