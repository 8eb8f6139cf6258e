"""The Long Track's words: typed events, their deltas, and the codec of format 1.

Imports none of Remora's code but `errors`, so a stream can be read when everything else has changed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from remora.events._blobs import Reference, references_of
from remora.events._change import Change, change_of
from remora.events._codec import FORMAT, canonical, decode, digest, encode, from_record, json_value, readable, timestamp
from remora.events._delta import (
    DELTA_VERSION,
    ActionDelta,
    CandidateAction,
    ErrorDelta,
    Excerpt,
    HubDelta,
    KnowledgeDelta,
    Outcome,
    PacketDelta,
    UnreadableDelta,
)
from remora.events._ids import ids_behind, is_id, new_id, next_id, order_of, short_id
from remora.events._names import EventEmitter, EventName, MemoryEvent, NullEventEmitter, as_event
from remora.events._plain import PlainAction, PlainDelta, PlainError, PlainKnowledge
from remora.events._types import (
    EVENT_TYPES,
    UNRECORDED,
    AcceptUndoneEvent,
    AgentEndEvent,
    AgentErrorEvent,
    AgentFinishedEvent,
    AgentResumedEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    BlobRef,
    Call,
    Event,
    FileChange,
    HubUpdateEvent,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    PacketUpdateEvent,
    RunEndEvent,
    RunStartEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolOutputEvent,
    ToolResultEvent,
    TurnStartEvent,
    UnknownEvent,
    UserInputEvent,
    WorkspaceAcceptedEvent,
    WorkspaceRejectedEvent,
    is_check,
)
from remora.events._values import Inline, Packed, pack, unpack

if TYPE_CHECKING:
    from remora.app import JsonlEventEmitter

__all__ = [
    "DELTA_VERSION",
    "EVENT_TYPES",
    "FORMAT",
    "UNRECORDED",
    "AcceptUndoneEvent",
    "ActionDelta",
    "AgentEndEvent",
    "AgentErrorEvent",
    "AgentFinishedEvent",
    "AgentResumedEvent",
    "AgentScheduledEvent",
    "AgentStartEvent",
    "BlobRef",
    "Call",
    "CandidateAction",
    "Change",
    "ErrorDelta",
    "Event",
    "EventEmitter",
    "EventName",
    "Excerpt",
    "FileChange",
    "HubDelta",
    "HubUpdateEvent",
    "Inline",
    "JsonlEventEmitter",
    "KnowledgeDelta",
    "MemoryEvent",
    "ModelRequestEvent",
    "ModelResponseEvent",
    "NoticeEvent",
    "NullEventEmitter",
    "Outcome",
    "Packed",
    "PacketDelta",
    "PacketUpdateEvent",
    "PlainAction",
    "PlainDelta",
    "PlainError",
    "PlainKnowledge",
    "Reference",
    "RunEndEvent",
    "RunStartEvent",
    "SubmitResultEvent",
    "ToolCallEvent",
    "ToolOutputEvent",
    "ToolResultEvent",
    "TurnStartEvent",
    "UnknownEvent",
    "UnreadableDelta",
    "UserInputEvent",
    "WorkspaceAcceptedEvent",
    "WorkspaceRejectedEvent",
    "as_event",
    "canonical",
    "change_of",
    "decode",
    "digest",
    "encode",
    "from_record",
    "ids_behind",
    "is_check",
    "is_id",
    "json_value",
    "new_id",
    "next_id",
    "order_of",
    "pack",
    "readable",
    "references_of",
    "short_id",
    "timestamp",
    "unpack",
]


def __getattr__(name: str) -> Any:
    # The one name here that needs a disk; named by text, so that reading events loads nothing else.
    if name == "JsonlEventEmitter":
        return import_module("remora.app").JsonlEventEmitter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
