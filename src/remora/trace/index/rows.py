"""The index row of one event: its offset, what it is filtered by, and its searchable text.

All of it is derived from the event's line. An event found through the index is shown only if its line, read back from
the stream, gives the same row.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from remora.errors import TraceError
from remora.trace.files.blobs import FileBlobs

MAX_TEXT = 4096
"""Characters of a raw value that are indexed."""

_INT_MAX = 2**63 - 1
_WORDS = ("goal", "text", "message", "summary", "reason")
_TEXTUAL = ("utf-8", "json", "exact-json")
_READ_ERRORS = (OSError, EOFError, zlib.error, TraceError)


class Owner(NamedTuple):
    """The run, agent, operation and node of an event."""

    run_id: str
    agent_id: str
    operation: str
    node_id: str


class EventRow(NamedTuple):
    """One event, without its text."""

    seq: int
    offset: int
    length: int
    ts: str
    type: str
    turn: int | None
    tool: str | None
    outcome: str | None
    owner: Owner


def event_row(offset: int, length: int, fields: dict[str, Any]) -> EventRow:
    """The row of a parsed line. Values of the wrong type are ignored."""
    data = fields.get("data")
    data = data if isinstance(data, dict) else {}
    turn = fields.get("turn", 0)
    return EventRow(
        fields["seq"],
        offset,
        length,
        _text(fields.get("ts")) or "",
        fields["type"],
        turn if type(turn) is int and 0 <= turn <= _INT_MAX else None,
        _text(data.get("tool")),
        _text(data.get("outcome")),
        owner_of(fields),
    )


def owner_of(fields: dict[str, Any]) -> Owner:
    """The owner of a parsed line's event."""
    get = fields.get
    return Owner(
        _text(get("run_id")) or "",
        _text(get("agent_id")) or "",
        _text(get("operation")) or "",
        _text(get("node_id")) or "",
    )


class Texts:
    """Extracts searchable text from events, and from the beginning of blobs in `state_dir`."""

    def __init__(self, state_dir: Path) -> None:
        self._blobs = FileBlobs(state_dir)

    def extract(self, fields: dict[str, Any]) -> str:
        """Summaries, errors, goals, messages, and the beginning of the raw value; empty if there are none."""
        data = fields.get("data")
        if not isinstance(data, dict):
            return ""
        found = [data.get(word) for word in _WORDS]
        found.append(_at(data, "result", "summary"))
        found.append(_at(data, "delta", "action", "summary"))
        found.append(_at(data, "delta", "error", "set"))
        found.append(self._raw(data))
        texts = [text[:MAX_TEXT] for text in found if isinstance(text, str) and text]
        return "\n".join(dict.fromkeys(texts)) if texts else ""

    def _raw(self, data: dict[str, Any]) -> str:
        raw = data.get("raw")
        if raw is None:
            reference = data.get("raw_ref")
            return self._blob(reference) if isinstance(reference, dict) else ""
        return raw[:MAX_TEXT] if isinstance(raw, str) else _json_head(raw)

    def _blob(self, reference: dict[str, Any]) -> str:
        """The beginning of the blob; empty if it is missing or damaged."""
        digest = reference.get("blob")
        if not isinstance(digest, str) or reference.get("encoding") not in _TEXTUAL:
            return ""
        try:
            path = self._blobs.path(digest)
            if path is None:
                return ""
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                return _head(file.read(MAX_TEXT * 4))
        except _READ_ERRORS:
            return ""


def _head(data: bytes) -> str:
    return data[: MAX_TEXT * 4].decode("utf-8", "ignore")[:MAX_TEXT]


def _json_head(value: Any) -> str:
    try:
        return _head(orjson.dumps(value))
    except TypeError:  # nested deeper than the encoder allows
        return ""


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
