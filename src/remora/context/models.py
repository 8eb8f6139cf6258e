"""The Short Track's words: the Decision Packet and its parts.

The packet is a projection of the event stream and the only thing the model sees. `remora.context.projection` makes it
from events; the mutating methods here serve those who keep a packet of their own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from pydantic import BaseModel, Field

from remora.context.evidence import Evidence
from remora.events import CandidateAction, Excerpt, Outcome, PacketDelta
from remora.nodes import NodeType

__all__ = [
    "CandidateAction",
    "Constraints",
    "DecisionPacket",
    "Excerpt",
    "KnowledgeEntry",
    "PacketDelta",
    "RecentAction",
]

MAX_RECENT_ACTIONS = 10
MAX_EXCERPTS = 3


class RecentAction(BaseModel):
    """A tool call as the packet remembers it: distilled, never the raw result."""

    turn: int
    tool: str
    summary: str
    outcome: Outcome
    nodes: tuple[str, ...] = ()
    """Node ids that the call touched."""


class KnowledgeEntry(BaseModel):
    """Something learned during the run that later turns should know."""

    key: str
    value: Any
    source_turn: int
    """The turn in which it was learned."""
    supersedes: str | None = None
    """The older key that this one replaced."""
    pinned: bool = False
    seq: int | None = None
    """The event it came from, so that "why did it believe this?" has an answer."""


class Constraints(BaseModel):
    """What the agent may not exceed."""

    max_turns: int | None = None
    safety: list[str] = Field(default_factory=list)


class DecisionPacket(BaseModel):
    """All that the model sees: small, structured, a pure function of the stream."""

    agent_id: str
    turn: int = 0

    goal: str
    operation: str
    node_id: str
    node_summary: str = ""

    recent_actions: list[RecentAction] = Field(default_factory=list)
    """The last 10, oldest first."""

    knowledge: dict[str, KnowledgeEntry] = Field(default_factory=dict)

    last_error: str | None = None
    error_count: int = 0
    """Only grows."""

    hub_context: dict[str, Any] | None = None
    """Facts about code nodes, by node id."""
    hub_freshness: datetime | None = None

    state_summary: str = ""
    diagnostics: list[str] = Field(default_factory=list)
    """The last 8, oldest first."""
    candidate_actions: list[CandidateAction] = Field(default_factory=list)
    constraints: Constraints = Field(default_factory=Constraints)
    excerpts: list[Excerpt] = Field(default_factory=list)
    """The last 3, oldest first."""
    extensions: dict[str, Any] = Field(default_factory=dict)
    evidence: Evidence = Field(default_factory=Evidence)
    """What was said, called and returned, bounded in bytes: what the account of the run is written from."""

    packet_version: str = "1.0"

    def canonical_fields(self) -> dict[str, Any]:
        """The fields that differ from their defaults. Evidence is encoded once an entry, not once a turn."""
        fields = self.model_dump(exclude_defaults=True, exclude={"evidence"})
        if self.evidence.entries or self.evidence.dropped:
            fields["evidence"] = orjson.Fragment(self.evidence.encoded)
        return fields

    @property
    def recent_history(self) -> list[str]:
        """The recent actions as lines. Like the views below, neither a field nor part of the packet's JSON."""
        return [action.summary for action in self.recent_actions]

    @property
    def recent_results(self) -> list[dict[str, str]]:
        """The recent actions as tool and summary."""
        return [{"tool": action.tool, "summary": action.summary} for action in self.recent_actions]

    @property
    def hub_context_freshness(self) -> dict[str, float]:
        """By node with Hub facts, the time of the update in seconds since 1970."""
        if self.hub_freshness is None:
            return {}
        return dict.fromkeys(self.hub_context or {}, self.hub_freshness.timestamp())

    @property
    def node(self) -> dict[str, str]:
        """The target's id, and its type where the summary begins with one."""
        kind = self.node_summary.partition(" ")[0]
        known = {"type": kind} if kind in {each.value for each in NodeType} else {}
        return {"id": self.node_id} | known

    @property
    def session_id(self) -> str:
        """The agent's id."""
        return self.agent_id

    def add_action(self, tool: str, summary: str, outcome: Outcome, max_actions: int = MAX_RECENT_ACTIONS) -> None:
        """Remember an action of this turn; the oldest beyond `max_actions` are forgotten."""
        self.recent_actions.append(RecentAction(turn=self.turn, tool=tool, summary=summary, outcome=outcome))
        del self.recent_actions[: max(0, len(self.recent_actions) - max_actions)]

    def update_knowledge(self, key: str, value: Any) -> None:
        """Know `value` under `key` as of this turn."""
        self.knowledge[key] = KnowledgeEntry(key=key, value=value, source_turn=self.turn)

    def record_error(self, error_summary: str) -> None:
        """Show an error and count it."""
        self.last_error = error_summary
        self.error_count += 1

    def clear_error(self) -> None:
        """Show no error any more; the count stays."""
        self.last_error = None
