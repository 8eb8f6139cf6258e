"""The events of format 1: frozen, flat, past tense.

An event's own fields are what its record holds under `data`; the fields of `Event` are the record's envelope. A draft
is an event that no writer has recorded yet: its `seq` is -1, and the writer alone assigns `seq`, `ts` and `prev`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from remora.events._base import UNRECORDED, BlobRef, Call, Event, FileChange


class AgentStartEvent(Event):
    """A run of one agent began. Holds all that a reader needs to understand the run alone. Turn 0."""

    type: Literal["agent_start"] = "agent_start"
    format: int = 0
    remora: str = ""
    name: str = ""
    """A name that the user gave to the run."""
    goal: str = ""
    system: str = ""
    """The system text of an imported log, where no prompt of the stream has it."""
    system_ref: BlobRef | None = None
    """Where all of it lies when it is large; `system` is then its beginning."""
    node: dict[str, Any] = Field(default_factory=dict)
    definition: dict[str, Any] = Field(default_factory=dict)
    tools: tuple[dict[str, Any], ...] = ()
    budget: dict[str, Any] = Field(default_factory=dict)
    constraints: dict[str, Any] = Field(default_factory=dict)
    projector: str = ""
    renderer: str = ""
    model: dict[str, Any] = Field(default_factory=dict)
    check: dict[str, Any] = Field(default_factory=dict)
    """What the agent's check would find in its files `before` it began, as the agent `by` found in the whole file. In
    older streams, what its own check found."""
    parent: dict[str, Any] | None = None


class UserInputEvent(Event):
    """A person said something to the agent."""

    type: Literal["user_input"] = "user_input"
    text: str = ""
    text_ref: BlobRef | None = None
    """Where all of the text lies when it is large; `text` is then its beginning."""


class TurnStartEvent(Event):
    """A turn began. The first is turn 1."""

    type: Literal["turn_start"] = "turn_start"


class HubUpdateEvent(Event):
    """Facts about code nodes were pulled from the Hub; the delta holds them."""

    type: Literal["hub_update"] = "hub_update"
    nodes: tuple[str, ...] = ()
    """All nodes whose facts the packet holds now; the delta has those that are new, changed or gone."""
    hashes: dict[str, str] = Field(default_factory=dict)
    """By file, the SHA-256 of the bytes that the facts were proven against."""
    freshness: dict[str, str] = Field(default_factory=dict)
    """By node, how: `index` where the index held these very bytes, `workspace` where they were just extracted."""


class PacketUpdateEvent(Event):
    """Middleware, a person or an escalation's answer changed the packet."""

    type: Literal["packet_update"] = "packet_update"
    source: str = ""
    origin: dict[str, Any] = Field(default_factory=dict)
    """For what a stream takes over from its parent: the `agent_id` and `seq` of the event that it came from."""


class ModelRequestEvent(Event):
    """The receipt of one prompt: exactly what the model was shown, and what was left out of it."""

    type: Literal["model_request"] = "model_request"
    packet_sha256: str = ""
    prompt_sha256: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    """The messages as sent. A constant part may be `{"role": …, "content_ref": BlobRef}`."""
    tokens: dict[str, int] = Field(default_factory=dict)
    """By field, and `total`."""
    limit: int = 0
    left_out: dict[str, int] = Field(default_factory=dict)
    offered: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    """The schemas of the tools, where they differ from those that the stream has so far."""
    tools_ref: BlobRef | None = None
    """Where the schemas lie when they are large."""
    counter: dict[str, Any] = Field(default_factory=dict)
    renderer: str = ""
    rung: str = ""
    """The rung of the ladder that was asked; empty without a ladder."""


class ModelResponseEvent(Event):
    """The policy answered."""

    type: Literal["model_response"] = "model_response"
    text: str = ""
    text_ref: BlobRef | None = None
    """Where all of the text lies when it is large; `text` is then its beginning."""
    reasoning: str = ""
    """What the model thought before it answered, where the server or the log gives it. Long Track only."""
    reasoning_ref: BlobRef | None = None
    """Where all of it lies when it is large; `reasoning` is then its beginning."""
    calls: tuple[Call, ...] = ()
    model: str = ""
    usage: dict[str, Any] = Field(default_factory=dict)
    finish: str = ""
    duration_ms: float = 0.0
    error: str = ""
    """Why there is no call in it that can be made: the code of a `DecisionError`. The delta tells the model."""
    rule: str = ""
    """Why no model was asked, for a turn that was decided by rule. No `model_request` comes before it."""
    fit: dict[str, Any] = Field(default_factory=dict)
    """If the model was also asked whether its call does what was asked: the call as `proposed`, the `messages` of the
    question, the `answer`, and whether it `fits`. If not, `calls` declines instead."""
    drafts: tuple[dict[str, Any], ...] = ()
    """The texts that the model wrote for an argument of `calls`, each with `seed` and `temperature`. The calls are then
    alternatives, the best first: they are made in turn until one succeeds."""


Purpose = Literal["", "check"]
"""Why a tool ran: empty for a call of the agent, `check` for the agent's check, which the model never sees."""


class ToolCallEvent(Event):
    """A tool is about to run: the intent, durable before the effect."""

    type: Literal["tool_call"] = "tool_call"
    call_id: str
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    effects: Literal["none", "workspace", "outside"] = "outside"
    purpose: Purpose = ""


class ToolResultEvent(Event):
    """A tool finished. Closes the `ToolCallEvent` with the same `call_id`."""

    type: Literal["tool_result"] = "tool_result"
    call_id: str
    tool: str
    outcome: Literal["success", "error", "partial", "unknown"]
    outcome_given: bool = False
    """Whether who recorded the result knew its outcome. If not, it was read from `raw`."""
    duration_ms: float = 0.0
    raw: Any = None
    """Exactly what the tool returned. Long Track only."""
    raw_ref: BlobRef | None = None
    """Where `raw` lies when it is large, or when JSON cannot hold it exactly."""
    parsed: Any = None
    """The value that `raw` is, where that is a short text of JSON."""
    attachments: tuple[dict[str, Any], ...] = ()
    """Prints and command outputs: `{"name": …, "ref": BlobRef}`."""
    files: tuple[FileChange, ...] = ()
    redactions: int = 0
    purpose: Purpose = ""
    check: dict[str, Any] = Field(default_factory=dict)
    """What the agent's check found: `count`, and where they are known `problem`, `notes` and `said`."""


def is_check(event: Event) -> bool:
    """Whether the event belongs to the agent's check: recorded as evidence, never shown to the model."""
    return isinstance(event, ToolCallEvent | ToolResultEvent) and event.purpose == "check"


class SubmitResultEvent(Event):
    """The agent said that it is done, in its own words."""

    type: Literal["submit_result"] = "submit_result"
    call_id: str = ""
    result: dict[str, Any] = Field(default_factory=dict)


class AgentErrorEvent(Event):
    """Something stopped the agent."""

    type: Literal["agent_error"] = "agent_error"
    code: str = ""
    message: str = ""


class AgentResumedEvent(Event):
    """The run goes on after a crash."""

    type: Literal["agent_resumed"] = "agent_resumed"
    reason: str = ""


class EscalationEvent(Event):
    """The agent moved to another model of its ladder: up when it was stuck, down when that step was done."""

    type: Literal["escalation"] = "escalation"
    direction: Literal["up", "down"] = "up"
    source: str = ""
    """The rung that it left."""
    target: str = ""
    """The rung that decides from now on."""
    rule: str = ""
    """The rule that moved it, such as `repeats`, `done` or `max_decisions`."""
    reason: str = ""
    """The rule with its numbers, as a sentence. In the agent's own words if it asked."""
    call_id: str = ""
    """The agent's own call of `escalate`, if it asked."""
    handed: dict[str, Any] = Field(default_factory=dict)
    """What the target reads: its prompt limit, and the results of the Long Track that it may be shown, by seq."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Facts about the target's model, as in `agent_start`."""


class NoticeEvent(Event):
    """Something a reader should know that changes nothing: degraded, truncated, skipped."""

    type: Literal["notice"] = "notice"
    code: str = ""
    message: str = ""


class AgentEndEvent(Event):
    """The run is over. Seals the stream: nothing follows."""

    type: Literal["agent_end"] = "agent_end"
    outcome: Literal["success", "partial", "error", "cancelled", "degraded"] = "success"
    reason: str = ""
    summary: str = ""
    verdict: str = ""
    """What the agent's check says about the files, never the model's word."""
    check: dict[str, Any] = Field(default_factory=dict)
    """The check's numbers; `evidence` has the seqs of its results in this stream, before and after."""


class ToolOutputEvent(Event):
    """A chunk of a tool's output while it runs. Reserved."""

    type: Literal["tool_output"] = "tool_output"
    call_id: str = ""


class RunStartEvent(Event):
    """A `remora analyze` began."""

    type: Literal["run_start"] = "run_start"
    format: int = 0
    remora: str = ""
    root: str = ""
    paths: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    policy: str = ""
    limits: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    """Who decided and how, by the paths of the settings: what a resume needs to go on in the same way."""
    parent: dict[str, Any] | None = None
    """For a fork: the agent that it forks, and after which turn."""


class AgentScheduledEvent(Event):
    """An agent was scheduled; the envelope names it. A later one for the same agent replaces the earlier."""

    type: Literal["agent_scheduled"] = "agent_scheduled"
    stage: str = ""
    """`first` for one on a whole file before the others, `last` for one that looks at what the changes of the agents
    before it come to together; else empty."""
    over: tuple[FileChange, ...] = ()
    """What its workspace begins with: the files as those agents leave them together."""
    after: tuple[str, ...] = ()
    """Those agents: what it changes is for a project that has their changes."""
    answer: str = ""
    """The stream of a larger model's answer, which the agent starts with."""
    node: dict[str, Any] = Field(default_factory=dict)
    """Then also what it works on, as in `agent_start`: the project has no such node."""


class AgentFinishedEvent(Event):
    """An agent ended; `head` seals its stream from outside."""

    type: Literal["agent_finished"] = "agent_finished"
    outcome: str = ""
    reason: str = ""
    summary: str = ""
    head: str = ""
    """SHA-256 of the agent stream's last line."""
    last_seq: int = UNRECORDED
    verdict: str = ""
    """What the files say, never the model's word."""
    check: dict[str, Any] = Field(default_factory=dict)
    worker: str = ""
    """Which worker of a cluster ran it: `HOST:PROCESS`. Empty if the run's own process did."""


class WorkspaceAcceptedEvent(Event):
    """An agent's changes were written into the project."""

    type: Literal["workspace_accepted"] = "workspace_accepted"
    files: tuple[FileChange, ...] = ()
    """What was really written, merged content included."""
    accept_id: str = ""
    """Shared by everything that one command accepted."""
    paths: tuple[str, ...] = ()
    """The agent's files that were accepted, written or there already; empty in older streams, which mean all."""
    made: tuple[str, ...] = ()
    """Folders that did not exist before."""


class WorkspaceRejectedEvent(Event):
    """An agent's changes were turned down."""

    type: Literal["workspace_rejected"] = "workspace_rejected"
    reason: str = ""
    paths: tuple[str, ...] = ()
    """The agent's files that were turned down."""


class AcceptUndoneEvent(Event):
    """An accept was taken back."""

    type: Literal["accept_undone"] = "accept_undone"
    files: tuple[FileChange, ...] = ()
    accept_id: str = ""
    """Which accept it was, with the agent of the envelope."""
    paths: tuple[str, ...] = ()
    """The agent's files that are open again."""


class RunEndEvent(Event):
    """Scheduling ended. Accept, reject and undo may still follow."""

    type: Literal["run_end"] = "run_end"
    outcome: str = ""
    counts: dict[str, int] = Field(default_factory=dict)


class UnknownEvent(Event):
    """A record of a type or shape that this version does not know, kept verbatim."""

    v: int = 1
    data: dict[str, Any] = Field(default_factory=dict)
    problem: str = ""

    def body(self) -> dict[str, Any]:
        return self.data


EVENT_TYPES: dict[str, type[Event]] = {
    cls.model_fields["type"].default: cls
    for cls in (
        AgentStartEvent, UserInputEvent, TurnStartEvent, HubUpdateEvent, PacketUpdateEvent, ModelRequestEvent,
        ModelResponseEvent, ToolCallEvent, ToolResultEvent, SubmitResultEvent, AgentErrorEvent, AgentResumedEvent,
        EscalationEvent, NoticeEvent, AgentEndEvent, ToolOutputEvent, RunStartEvent, AgentScheduledEvent,
        AgentFinishedEvent, WorkspaceAcceptedEvent, WorkspaceRejectedEvent, AcceptUndoneEvent, RunEndEvent,
    )
}  # fmt: skip
"""Every type of format 1, by its word."""
