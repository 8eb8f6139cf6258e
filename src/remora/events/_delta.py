"""What an event changes in the Decision Packet: the delta, part of format 1.

A delta is stored inside its event, so a stream replays to the same packet whatever happens to the code that wrote it.
Default-valued fields are left out of the stored form. The merge rules stand in `remora.context.projection`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

DELTA_VERSION = 1
EVIDENCE_VERSION = 3
"""The version of a delta with evidence: a reader that does not know it must stop, not leave it out."""
READABLE_VERSIONS = (DELTA_VERSION, 2, EVIDENCE_VERSION)
"""Version 2 has evidence without the arguments of calls."""

Outcome = Literal["success", "error", "partial"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ActionDelta(_Part):
    """A tool call that the packet should remember."""

    tool: str
    summary: str
    outcome: Outcome
    nodes: tuple[str, ...] = ()
    """Node ids that the call touched."""


class KnowledgeDelta(_Part):
    """A new value for one knowledge key."""

    value: Any
    supersedes: str | None = None
    """An older key that this one replaces and removes."""
    pinned: bool = False
    """Pinned knowledge is the last to be left out of a prompt."""


class ErrorDelta(_Part):
    """Sets or clears the last error. The count of errors only grows."""

    set: str | None = None
    clear: bool = False


class CandidateAction(_Part):
    """A call that is likely to be right next. The model may choose it or not."""

    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    reason: str = ""


class Excerpt(_Part):
    """A bounded verbatim slice of text that the model must see, such as the code it works on."""

    label: str
    text: str
    start_line: int = 1


class HubDelta(_Part):
    """Facts about code nodes that the Hub could prove, and nodes whose facts it no longer can."""

    set: dict[str, Any] = Field(default_factory=dict)
    remove: tuple[str, ...] = ()


class EvidenceDelta(_Part):
    """Something that happened, as the account of the run may show it: somebody's words, or a call and its output."""

    speaker: Literal["user", "agent", "call"]
    text: str = ""
    """The call in one line."""
    call: str = ""
    """The call as JSON, `name` and `arguments`; `…` stands for lines of `given`. Empty if it is too large."""
    given: tuple[str, ...] = ()
    """Lines of long arguments."""
    lines: tuple[str, ...] = ()
    """Lines of the words, or of the output."""
    kind: str = "text"
    """What the output was read as: `records`, `code`, `diff`, `log` and so on."""
    failed: bool = False
    omitted: int = 0
    """Lines of the output that were left out for its size."""
    identifiers: tuple[tuple[str, str], ...] = ()
    """Keys and values that outlive the output."""


class PacketDelta(_Part):
    """How one event changes the Decision Packet. Fields left at their default change nothing."""

    v: int = DELTA_VERSION
    action: ActionDelta | None = None
    knowledge: dict[str, KnowledgeDelta] = Field(default_factory=dict)
    error: ErrorDelta | None = None
    diagnostics: tuple[str, ...] = ()
    candidate_actions: tuple[CandidateAction, ...] | None = None
    state_summary: str | None = None
    excerpts: tuple[Excerpt, ...] = ()
    hub: HubDelta | None = None
    extensions: dict[str, Any] = Field(default_factory=dict)
    evidence: EvidenceDelta | None = None


class UnreadableDelta(_Part):
    """A stored delta that this version cannot read, kept as it was found."""

    stored: Any
    problem: str
    version: int | None = None
    """The delta's version where it has one we do not know: the projection stops there, and says so."""
