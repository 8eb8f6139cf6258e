"""`Change`: the part of an event that the fold needs. Cheaper to read than a typed event."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, NamedTuple

from remora.events._base import Event, readable_delta
from remora.events._codec import from_record
from remora.events._delta import PacketDelta, UnreadableDelta
from remora.events._lines import FORMAT
from remora.events._plain import PlainDelta, plain_delta

_TEXTS = itemgetter("ts", "type", "run_id", "agent_id", "operation", "node_id")
_NEEDS_ALL = "agent_start"


class Change(NamedTuple):
    """What one event changes in the Decision Packet. Folds to the same packet as its typed event."""

    type: str
    seq: int
    turn: int
    ts: str
    delta: PacketDelta | PlainDelta | UnreadableDelta | None
    tool: str = ""


def change_of(record: dict[str, Any]) -> Change | Event:
    """The change of a parsed record; the typed event if the fold needs more, or if the record is unusual.

    Raises `TraceError` as `from_record` does.
    """
    try:
        # `join` raises for anything but text: the cheapest check of the envelope's types.
        "".join(_TEXTS(record))
        kind, turn, data = record["type"], record["turn"], record["data"]
    except (KeyError, TypeError):
        return from_record(record)
    if kind == _NEEDS_ALL or record.get("v") != FORMAT or type(turn) is not int or type(data) is not dict:
        return from_record(record)
    delta = data.get("delta")
    read = None if delta is None else plain_delta(delta) or readable_delta(delta)
    return Change(kind, record["seq"], turn, record["ts"], read, str(data.get("tool", "")))
