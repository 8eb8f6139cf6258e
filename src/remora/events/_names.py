"""Names for emitting single events."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

from remora.events._base import UNRECORDED, Event
from remora.events._codec import from_record
from remora.events._lines import FORMAT


class EventName(StrEnum):
    """Every type of format 1: `EventName.TOOL_RESULT == "tool_result"`."""

    AGENT_START = "agent_start"
    USER_INPUT = "user_input"
    TURN_START = "turn_start"
    HUB_UPDATE = "hub_update"
    PACKET_UPDATE = "packet_update"
    MODEL_REQUEST = "model_request"
    MODEL_RESPONSE = "model_response"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    SUBMIT_RESULT = "submit_result"
    AGENT_ERROR = "agent_error"
    AGENT_RESUMED = "agent_resumed"
    ESCALATION = "escalation"
    NOTICE = "notice"
    AGENT_END = "agent_end"
    TOOL_OUTPUT = "tool_output"
    RUN_START = "run_start"
    AGENT_SCHEDULED = "agent_scheduled"
    AGENT_FINISHED = "agent_finished"
    WORKSPACE_ACCEPTED = "workspace_accepted"
    WORKSPACE_REJECTED = "workspace_rejected"
    ACCEPT_UNDONE = "accept_undone"
    RUN_END = "run_end"


MemoryEvent = Event
"""An entry of the Long Track."""


class EventEmitter(Protocol):
    """Records single events. `remora.ports.TraceWriter` records batches."""

    async def emit(self, event: Event | Mapping[str, Any]) -> Event:
        """Record the event; return it as recorded."""
        ...


class NullEventEmitter:
    """Records nothing."""

    async def emit(self, event: Event | Mapping[str, Any]) -> Event:
        """The event as it would be recorded."""
        return as_event(event)


def as_event(event: Event | Mapping[str, Any]) -> Event:
    """A plain dict with `type` (or `event`) as a typed event. One that does not match its type is kept as it is."""
    if isinstance(event, Event):
        return event
    fields = dict(event)
    record: dict[str, Any] = {
        "v": FORMAT,
        "seq": UNRECORDED,
        "type": fields.pop("type", None) or fields.pop("event", ""),
    }
    record |= {name: fields.pop(name) for name in Event.ENVELOPE if name in fields}
    data = fields.pop("data", None)
    record["data"] = fields | (dict(data) if isinstance(data, Mapping) else {} if data is None else {"data": data})
    return from_record(record)
