"""The events of the Long Track: typed events, their deltas, and the codec of format 1.

Imports none of Remora's code but `errors`, so that a stream can be read when everything else has changed. Names are
loaded when they are first used: building the event classes takes a quarter of a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remora.app import JsonlEventEmitter
    from remora.events._base import UNRECORDED, BlobRef, Call, Event, FileChange
    from remora.events._blobs import MAX_BLOB, Reference, references_of
    from remora.events._change import Change, change_of
    from remora.events._codec import canonical, decode, encode, from_record, json_value, readable
    from remora.events._delta import (
        DELTA_VERSION,
        EVIDENCE_VERSION,
        ActionDelta,
        CandidateAction,
        ErrorDelta,
        EvidenceDelta,
        Excerpt,
        HubDelta,
        KnowledgeDelta,
        Outcome,
        PacketDelta,
        UnreadableDelta,
    )
    from remora.events._ids import ids_behind, is_id, new_id, next_id, order_of, short_id
    from remora.events._lines import FORMAT, digest, timestamp
    from remora.events._names import EventEmitter, EventName, MemoryEvent, NullEventEmitter, as_event
    from remora.events._plain import PlainAction, PlainDelta, PlainError, PlainKnowledge
    from remora.events._types import (
        EVENT_TYPES,
        AcceptUndoneEvent,
        AgentEndEvent,
        AgentErrorEvent,
        AgentFinishedEvent,
        AgentResumedEvent,
        AgentScheduledEvent,
        AgentStartEvent,
        EscalationEvent,
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

__all__ = [
    "DELTA_VERSION",
    "EVENT_TYPES",
    "EVIDENCE_VERSION",
    "FORMAT",
    "MAX_BLOB",
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
    "EscalationEvent",
    "Event",
    "EventEmitter",
    "EventName",
    "EvidenceDelta",
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

_MODULES = {
    "_base": "UNRECORDED BlobRef Call Event FileChange",
    "_blobs": "MAX_BLOB Reference references_of",
    "_change": "Change change_of",
    "_codec": "canonical decode encode from_record json_value readable",
    "_delta": (
        "DELTA_VERSION EVIDENCE_VERSION ActionDelta CandidateAction ErrorDelta EvidenceDelta Excerpt HubDelta "
        "KnowledgeDelta Outcome PacketDelta UnreadableDelta"
    ),
    "_ids": "ids_behind is_id new_id next_id order_of short_id",
    "_lines": "FORMAT digest timestamp",
    "_names": "EventEmitter EventName MemoryEvent NullEventEmitter as_event",
    "_plain": "PlainAction PlainDelta PlainError PlainKnowledge",
    "_types": (
        "EVENT_TYPES AcceptUndoneEvent AgentEndEvent AgentErrorEvent AgentFinishedEvent AgentResumedEvent "
        "AgentScheduledEvent AgentStartEvent EscalationEvent HubUpdateEvent ModelRequestEvent ModelResponseEvent "
        "NoticeEvent PacketUpdateEvent RunEndEvent RunStartEvent SubmitResultEvent ToolCallEvent ToolOutputEvent "
        "ToolResultEvent TurnStartEvent UnknownEvent UserInputEvent WorkspaceAcceptedEvent WorkspaceRejectedEvent "
        "is_check"
    ),
    "_values": "Inline Packed pack unpack",
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}
# The only name here that needs the disk.
_HOMES["JsonlEventEmitter"] = "remora.app"


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found
