"""The models of the Short Track: the Decision Packet and its parts.

The packet is a projection of the event stream and the only thing that the model sees. `remora.context.projection`
builds it from events. The mutating methods are for code that manages a packet of its own.
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
FOR_DRAFTS = "draft: "
"""How the label of an excerpt begins that only prompts for drafts show."""


class RecentAction(BaseModel):
    """A tool call in the packet: its summary, never the raw result."""

    turn: int
    tool: str
    summary: str
    outcome: Outcome
    nodes: tuple[str, ...] = ()
    """Node ids that the call touched."""


class KnowledgeEntry(BaseModel):
    """A fact learned during the run, for later turns."""

    key: str
    value: Any
    source_turn: int
    """The turn in which it was learned."""
    supersedes: str | None = None
    """The older key that this one replaced."""
    pinned: bool = False
    seq: int | None = None
    """The event that it came from, for provenance."""


class Constraints(BaseModel):
    """Limits of the agent."""

    max_turns: int | None = None
    safety: list[str] = Field(default_factory=list)


class DecisionPacket(BaseModel):
    """Everything that the model sees: small, structured, a pure function of the stream."""

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
    """Never decreases."""

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
    """Messages, calls and outputs, bounded in bytes. The account of the run is written from them."""

    packet_version: str = "1.0"

    def canonical_fields(self) -> dict[str, Any]:
        """The fields that differ from their defaults. Each entry of evidence is encoded once, not in every turn."""
        fields = self.model_dump(exclude_defaults=True, exclude={"evidence"})
        if self.evidence.entries or self.evidence.dropped:
            fields["evidence"] = orjson.Fragment(self.evidence.encoded)
        return fields

    @property
    def recent_history(self) -> list[str]:
        """The summaries of the recent actions. Like the properties below, not part of the packet's JSON."""
        return [action.summary for action in self.recent_actions]

    @property
    def recent_results(self) -> list[dict[str, str]]:
        """Tool and summary of the recent actions."""
        return [{"tool": action.tool, "summary": action.summary} for action in self.recent_actions]

    @property
    def hub_context_freshness(self) -> dict[str, float]:
        """By node with Hub facts, the Unix time of the update. Includes those that `refresh_context` fetched."""
        noted = self.extensions.get("hub_context_freshness")
        fetched = dict(noted) if isinstance(noted, dict) else {}
        if self.hub_freshness is None:
            return fetched
        return dict.fromkeys(self.hub_context or {}, self.hub_freshness.timestamp()) | fetched

    @property
    def node(self) -> dict[str, str]:
        """The target's id, and its type if the summary starts with one."""
        kind = self.node_summary.partition(" ")[0]
        known = {"type": kind} if kind in {each.value for each in NodeType} else {}
        return {"id": self.node_id} | known

    @property
    def session_id(self) -> str:
        """The agent's id."""
        return self.agent_id

    def add_action(self, tool: str, summary: str, outcome: Outcome, max_actions: int = MAX_RECENT_ACTIONS) -> None:
        """Add an action of this turn, and drop the oldest ones beyond `max_actions`."""
        self.recent_actions.append(RecentAction(turn=self.turn, tool=tool, summary=summary, outcome=outcome))
        del self.recent_actions[: max(0, len(self.recent_actions) - max_actions)]

    def update_knowledge(self, key: str, value: Any) -> None:
        """Set `key` to `value`, learned in this turn."""
        self.knowledge[key] = KnowledgeEntry(key=key, value=value, source_turn=self.turn)

    def record_error(self, error_summary: str) -> None:
        """Set the last error and count it."""
        self.last_error = error_summary
        self.error_count += 1

    def clear_error(self) -> None:
        """Clear the last error. The count stays."""
        self.last_error = None
