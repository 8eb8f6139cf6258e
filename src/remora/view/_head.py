"""What every page of an agent says at its top."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from remora.analysis import BY_RULE
from remora.app import Viewing
from remora.context.text import counts_text, one_line
from remora.events import AgentEndEvent, AgentStartEvent
from remora.trace import Outline, is_locked

TONES = {"success": "good", "partial": "warn", "running": "live", "unsealed": "warn", "cancelled": "warn"}
_GOOD = ("clean", "written", "kept", "done")


@dataclass(frozen=True)
class Head:
    """The facts of one agent."""

    agent_id: str
    run_id: str
    title: str
    operation: str
    node_id: str
    goal: str
    model: str
    status: str
    """How it ended, in a word; `running` or `unsealed` if it did not."""
    tone: str
    reason: str
    counts: str
    """What its check counted before and after."""
    started: str
    duration: float
    turns: int
    events: int
    last_seq: int
    parent: str
    """The agent that it came from; empty if there is none."""
    origin: str
    """How it came from it, in words."""
    is_live: bool
    damage: str


def head(viewing: Viewing, outline: Outline) -> Head:
    """Read the facts of one agent: its first and its last event."""
    first, last = viewing.first(outline), viewing.last(outline)
    start = first if isinstance(first, AgentStartEvent) else AgentStartEvent()
    end = last if isinstance(last, AgentEndEvent) else None
    is_live = end is None and outline.damage is None and is_locked(outline.path)
    status = (end.verdict or end.outcome) if end else "running" if is_live else "unsealed"
    parent = start.parent or {}
    model = str(start.model.get("model") or start.model.get("policy") or "")
    return Head(
        agent_id=outline.path.stem,
        run_id=start.run_id,
        title=start.node_id or start.name or str(parent.get("title") or "") or one_line(start.goal, 100) or "Agent",
        operation=start.operation,
        node_id=start.node_id,
        goal=start.goal,
        model=decider(model, sum(outline.column("tokens")), start.operation) if end else model,
        status=status,
        tone=_tone(end, status),
        reason=f"{end.reason}: {end.summary}" if end and end.summary else end.reason if end else "",
        counts=_counts(end),
        started=outline.started,
        duration=_seconds(outline.started, outline.last),
        turns=outline[len(outline) - 1].turn if len(outline) else 0,
        events=outline.events,
        last_seq=outline.events - 1,
        parent=parent_id if isinstance(parent_id := parent.get("agent_id"), str) else "",
        origin=str(parent.get("relation") or ""),
        is_live=is_live,
        damage=str(outline.damage) if outline.damage else "",
    )


def decider(model: str, tokens: int, operation: str) -> str:
    """The model of an agent that ended; `by rule` if there was no prompt, because then no model was asked."""
    return BY_RULE if model and not tokens and operation not in ("", "import") else model


def tone_of(status: str, outcome: str) -> str:
    """The tone of a verdict or an outcome."""
    if outcome in ("error", "degraded"):
        return "bad"
    return TONES.get(status) or ("good" if status in _GOOD else "warn" if outcome != "success" else "plain")


def _tone(end: AgentEndEvent | None, status: str) -> str:
    return tone_of(status, end.outcome if end else status)


def _counts(end: AgentEndEvent | None) -> str:
    if end is None or not end.check:
        return ""
    return f"{counts_text(end.check)} {end.check.get('key', '')}"


def _seconds(first: str, last: str) -> float:
    try:
        return max((datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds(), 0.0)
    except ValueError:
        return 0.0
