"""Raw values, kept exactly: inside the record where JSON can hold them, else as the bytes of a blob.

What JSON cannot hold is written as `exact-json`: JSON in which an object with a single key that starts with `$` is a
tag.

    {"$float": "nan"}            also "inf" and "-inf"
    {"$int": "-0x1f…"}           an integer beyond 64 bits, hexadecimal
    {"$str": "…"}                base64 of a text with lone surrogates (UTF-8, surrogates passed)
    {"$bytes": "…"}              base64
    {"$tuple": […]}  {"$set": […]}  {"$frozenset": […]}
    {"$dict": [[key, value], …]} an object whose keys are not all plain text, or that would look like a tag
    {"$decimal": "1.50"}  {"$complex": [1.0, -0.0]}
    {"$datetime": "…"}  {"$date": "…"}  {"$time": "…"}     ISO 8601
    {"$timedelta": [days, seconds, microseconds]}

Read back, a value equals what was packed, in its builtin type: a named tuple comes back as a tuple.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal

import orjson

from remora.errors import TraceError

INLINE_LIMIT = 16 * 1024

Encoding = Literal["bytes", "utf-8", "json", "exact-json"]


@dataclass(frozen=True)
class Inline:
    """A value that its record can contain: a copy, so that later changes do not affect it."""

    value: Any


@dataclass(frozen=True)
class Packed:
    """A value as the bytes of a blob."""

    data: bytes
    encoding: Encoding


def pack(value: Any, limit: int = INLINE_LIMIT) -> Inline | Packed:
    """`value` in a form that keeps it exactly. Raises `TraceError` for an unknown type, or too deep nesting."""
    if isinstance(value, bytes | bytearray):
        return Packed(bytes(value), "bytes")
    plain = _plain_json(value)
    if plain is None:
        return Packed(_exact_json(value), "exact-json")
    encoded, copy = plain
    if len(encoded) <= limit:
        return Inline(copy)
    return Packed(value.encode(), "utf-8") if isinstance(value, str) else Packed(encoded, "json")


def unpack(data: bytes, encoding: Encoding) -> Any:
    """The value that was packed. Raises `TraceError` if the bytes are not what `encoding` says."""
    if encoding == "bytes":
        return data
    try:
        if encoding == "utf-8":
            return data.decode()
        return orjson.loads(data) if encoding == "json" else _untag(json.loads(data))
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise TraceError(f"A value cannot be read as `{encoding}`: {type(error).__name__}: {error}") from error


def _plain_json(value: Any) -> tuple[bytes, Any] | None:
    """JSON that gives exactly `value` back, with that copy of it; None if there is none."""
    try:
        # Wrapped, because it will be nested deeper in its record, and the encoder stops at 254 levels.
        encoded = orjson.dumps([[[[value]]]])[4:-4]
        copy = orjson.loads(encoded)
        return (encoded, copy) if copy == value else None
    except (TypeError, ValueError, RecursionError):
        return None


def _exact_json(value: Any) -> bytes:
    try:
        return json.dumps(_tag(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError as error:
        raise TraceError("A value is nested too deeply: expected a few hundred levels at most") from error


def _tag(value: Any) -> Any:
    """`value` in JSON types; other types are tagged."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if _is_text(value) else {"$str": _base64(value.encode("utf-8", "surrogatepass"))}
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else {"$int": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, list):
        return [_tag(item) for item in value]
    if isinstance(value, dict):
        return _tag_dict(value)
    return _tag_other(value)


def _tag_dict(value: dict[Any, Any]) -> dict[str, Any]:
    plain = all(isinstance(key, str) and _is_text(key) for key in value)
    if plain and not (len(value) == 1 and next(iter(value)).startswith("$")):
        return {str(key): _tag(item) for key, item in value.items()}
    return {"$dict": [[_tag(key), _tag(item)] for key, item in value.items()]}


def _tag_other(value: Any) -> dict[str, Any]:
    for kind, word, to_json in _TAGS:
        if isinstance(value, kind):
            return {word: to_json(value)}
    name = type(value).__name__
    raise TraceError(
        f"A value of type `{name}` has no exact form in a stream: expected builtin types",
        hint="Return plain data, such as `model_dump()` or `dataclasses.asdict()` gives",
    )


def _untag(value: Any) -> Any:
    if isinstance(value, list):
        return [_untag(item) for item in value]
    if not isinstance(value, dict):
        return value
    word, content = next(iter(value.items())) if len(value) == 1 else ("", None)
    if not word.startswith("$"):
        return {key: _untag(item) for key, item in value.items()}
    if word not in _READ:
        raise ValueError(f"unknown tag `{word[:40]}`")
    return _READ[word](content)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _items(values: Any) -> list[Any]:
    return [_tag(item) for item in values]


def _sorted_items(values: Any) -> list[Any]:
    """A set's items in an order that does not depend on hashes, so that equal sets have the same blob."""
    return sorted(_items(values), key=lambda item: json.dumps(item, sort_keys=True))


_TAGS: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (bytes, "$bytes", _base64),
    (bytearray, "$bytes", _base64),
    (tuple, "$tuple", _items),
    (frozenset, "$frozenset", _sorted_items),
    (set, "$set", _sorted_items),
    (Decimal, "$decimal", str),
    (complex, "$complex", lambda value: _items((value.real, value.imag))),
    (datetime, "$datetime", datetime.isoformat),
    (date, "$date", date.isoformat),
    (time, "$time", time.isoformat),
    (timedelta, "$timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
)

_READ: dict[str, Callable[[Any], Any]] = {
    "$float": float,
    "$int": lambda text: int(text, 16),
    "$str": lambda text: _unbase64(text).decode("utf-8", "surrogatepass"),
    "$bytes": _unbase64,
    "$tuple": lambda items: tuple(_untag(items)),
    "$set": lambda items: set(_untag(items)),
    "$frozenset": lambda items: frozenset(_untag(items)),
    "$dict": lambda pairs: {_untag(key): _untag(item) for key, item in pairs},
    "$decimal": Decimal,
    "$complex": lambda parts: complex(*_untag(parts)),
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$timedelta": lambda parts: timedelta(*parts),
}
