"""OTLP trace requests as protobuf, from the same values as OTLP/JSON. Every collector must read this encoding.

Only the fields of a trace request that we write are known: `opentelemetry/proto/trace/v1/trace.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

_VARINT, _FIXED64, _SIZED, _FIXED32 = 0, 1, 2, 5
"""Wire types."""
_SCHEMA: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Request": {"resourceSpans": (1, "ResourceSpans")},
    "ResourceSpans": {"resource": (1, "Resource"), "scopeSpans": (2, "ScopeSpans")},
    "Resource": {"attributes": (1, "KeyValue")},
    "ScopeSpans": {"scope": (1, "Scope"), "spans": (2, "Span")},
    "Scope": {"name": (1, "text"), "version": (2, "text")},
    "Span": {
        "traceId": (1, "id"), "spanId": (2, "id"), "parentSpanId": (4, "id"), "name": (5, "text"), "kind": (6, "int"),
        "startTimeUnixNano": (7, "fixed64"), "endTimeUnixNano": (8, "fixed64"), "attributes": (9, "KeyValue"),
        "events": (11, "Event"), "links": (13, "Link"), "status": (15, "Status"),
    },
    "Event": {"timeUnixNano": (1, "fixed64"), "name": (2, "text"), "attributes": (3, "KeyValue")},
    "Link": {"traceId": (1, "id"), "spanId": (2, "id"), "attributes": (4, "KeyValue")},
    "Status": {"message": (2, "text"), "code": (3, "int")},
    "KeyValue": {"key": (1, "text"), "value": (2, "AnyValue")},
    "AnyValue": {
        "stringValue": (1, "text"), "boolValue": (2, "int"), "intValue": (3, "int"), "doubleValue": (4, "double"),
        "arrayValue": (5, "ArrayValue"),
    },
    "ArrayValue": {"values": (1, "AnyValue")},
}  # fmt: skip
"""Number and kind of each field by its name in JSON. A list is a repeated field."""


def encode(message: Mapping[str, Any], kind: str = "Request") -> bytes:
    """A message as protobuf. Raises `KeyError` for a field that is not in the schema."""
    fields = _SCHEMA[kind]
    return b"".join(
        _field(*fields[name], item)
        for name, value in message.items()
        for item in (value if isinstance(value, list) else [value])
    )


def rejected(reply: bytes) -> tuple[int, str]:
    """How many spans a trace response says were rejected, and why. Raises `ValueError` if it is not one."""
    count, why = 0, ""
    for number, partial in _read(reply):
        for inner, value in _read(partial) if number == 1 and isinstance(partial, bytes) else ():
            if inner == 1 and isinstance(value, int):
                count = value
            elif inner == 2 and isinstance(value, bytes):
                why = value.decode(errors="replace")
    return count, why


def _field(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "text":
            return _sized(number, str(value).encode(errors="replace"))
        case "id":
            return _sized(number, bytes.fromhex(value))
        case "int":
            return _varint(number << 3 | _VARINT) + _varint(int(value))
        case "fixed64":
            return _varint(number << 3 | _FIXED64) + struct.pack("<Q", int(value))
        case "double":
            return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)
    return _sized(number, encode(value, kind))


def _sized(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _SIZED) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative number is its two's complement
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _read(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number, and value as a number or as bytes."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        size, at = _read_varint(data, at) if wire == _SIZED else ({_FIXED64: 8, _FIXED32: 4}.get(wire, -1), at)
        if size < 0 or at + size > len(data):
            raise ValueError("This is not a protobuf message")
        yield number, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("This is not a protobuf message")
