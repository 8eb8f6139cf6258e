"""Format 1: one event, one line of JSON, chained by the raw bytes of the line before it.

    {"v":1,"seq":12,"ts":"2026-11-15T18:20:45.123456Z","type":"tool_result","run_id":"…","agent_id":"…",
     "operation":"lint","node_id":"src/a.py:load","turn":3,"data":{…},"prev":"sha256:…"}

`prev` is the SHA-256 of the previous line's bytes without its newline, so a reader can check a stream without parsing
it. A line is never rewritten: older formats are brought forward by `upcast` while reading.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from remora.errors import TraceError
from remora.events._base import Event
from remora.events._lines import FORMAT
from remora.events._types import EVENT_TYPES, UnknownEvent

UPCASTS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Converts a record of an older format to the next one. Empty while format 1 is the only one."""


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and without default-valued fields. Digests of values are taken over these bytes."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS)


def readable(value: Any) -> str:
    """A value as text for people: text unchanged, anything else as indented JSON if possible."""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_INDENT_2).decode()
    except (TypeError, ValueError):
        return repr(value)


def encode(event: Event) -> bytes:
    """The record's line, without its newline. Raises `TraceError` for a value that JSON cannot represent."""
    record = {
        "v": FORMAT,
        "seq": event.seq,
        "ts": event.ts,
        "type": event.type,
        "run_id": event.run_id,
        "agent_id": event.agent_id,
        "operation": event.operation,
        "node_id": event.node_id,
        "turn": event.turn,
        "data": event.body(),
        "prev": event.prev,
    }
    try:
        return orjson.dumps(record, default=_plain)
    except (TypeError, ValueError) as error:
        raise TraceError(f"Event `{event.type}` has a value that JSON cannot represent: {error}") from error


def json_value(event: Event) -> dict[str, Any]:
    """The event as its parsed record. Raises `TraceError` for a value that JSON cannot represent."""
    record: dict[str, Any] = orjson.loads(encode(event))
    return record


def decode(line: bytes) -> Event:
    """The event of one line. Raises `TraceError` if it is not a record. Keeps an unknown type or shape verbatim."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise TraceError(f"not JSON: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("seq"), int) or "type" not in record:
        raise TraceError("not a Remora record: expected a JSON object with `v`, `seq` and `type`")
    return from_record(record)


def from_record(record: dict[str, Any]) -> Event:
    """The typed event of a parsed record, or an `UnknownEvent` that keeps all of it."""
    version = record.get("v")
    while isinstance(version, int) and version in UPCASTS:
        record = UPCASTS[version](record)
        version = record["v"]
    data = record.get("data")
    data = data if isinstance(data, dict) else {}
    envelope = {name: value for name in Event.ENVELOPE if (value := record.get(name)) is not None}
    kind = EVENT_TYPES.get(record["type"]) if isinstance(record["type"], str) else None
    if kind is None or version != FORMAT:
        return _unknown(envelope, version, data, f"type `{record['type']}`, version {version} is not known")
    try:
        return kind.model_validate(data | envelope)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return _unknown(envelope, version, data, f"`{place}` of `{record['type']}`: {first['msg']}")


def _unknown(envelope: dict[str, Any], version: Any, data: dict[str, Any], problem: str) -> UnknownEvent:
    try:
        return UnknownEvent.model_validate(
            envelope | {"v": version, "data": data, "problem": problem, "delta": data.get("delta")}
        )
    except ValidationError as error:
        raise TraceError(f"not a Remora record: {problem}") from error


@cache
def _own_fields(kind: type[BaseModel]) -> Callable[[BaseModel], dict[str, Any]] | None:
    """A packet gives its fields itself: parts of them are encoded already. Cached, because pydantic searches slowly."""
    return getattr(kind, "canonical_fields", None)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        own = _own_fields(type(value))
        return own(value) if own else value.model_dump(exclude_defaults=True)
    raise TypeError(f"{type(value).__name__} is not a JSON value")
