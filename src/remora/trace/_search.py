"""What is asked of the index: filters, and words to search for.

Nothing of either ever becomes part of an SQL text or of the search syntax: values are bound, words are quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from remora.context.text import one_line
from remora.errors import ConfigError
from remora.events import Event, timestamp

MAX_QUERY = 1000
_EXCERPT = 160
_INT_MAX = 2**63 - 1


@dataclass(frozen=True)
class Filter:
    """Which events, or streams, are meant. A field that is None does not matter."""

    run: str | None = None
    node: str | None = None
    operation: str | None = None
    tool: str | None = None
    outcome: str | None = None
    """Of the event; where streams are asked for, of the whole stream."""
    since: str | datetime | None = None
    """This moment or later. ISO 8601; UTC where it names no zone."""
    until: str | datetime | None = None
    """Before this moment."""
    type: str | None = None
    turn: int | None = None


@dataclass(frozen=True)
class Condition:
    """A part of an SQL statement after `WHERE`, and the values bound in it."""

    sql: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Found:
    """An event, read from its stream."""

    stream_id: str
    event: Event


@dataclass(frozen=True)
class Hit:
    """An event that holds the words that were searched for."""

    stream_id: str
    event: Event
    key: str
    """The trace key of its turn."""
    excerpt: str
    """One line around the first of the words."""


def event_condition(wanted: Filter) -> Condition:
    """`wanted` of events `e` with their owners `o`. Raises `ConfigError`."""
    return _all(
        ("o.run_id = ?", wanted.run),
        ("o.node_id = ?", wanted.node),
        ("o.operation = ?", wanted.operation),
        ("e.tool = ?", wanted.tool),
        ("e.outcome = ?", wanted.outcome),
        ("e.ts >= ?", _moment(wanted.since)),
        ("e.ts < ?", _moment(wanted.until)),
        ("e.type = ?", wanted.type),
        ("e.turn = ?", _turn(wanted.turn)),
    )


def stream_condition(wanted: Filter) -> Condition:
    """`wanted` of streams `s`, but for `tool`, `type` and `turn`, which only events have. Raises `ConfigError`."""
    return _all(
        ("s.run_id = ?", wanted.run),
        ("s.node_id = ?", wanted.node),
        ("s.operation = ?", wanted.operation),
        ("s.outcome = ?", wanted.outcome),
        ("s.started >= ?", _moment(wanted.since)),
        ("s.started < ?", _moment(wanted.until)),
    )


def match_query(text: str) -> str:
    """The search for events that hold every word of `text`. Raises `ConfigError` if there is none."""
    words = _words(text)
    if not words:
        raise ConfigError(
            "Nothing to search for: expected a word of letters or digits", hint="Give a word, or use filters alone"
        )
    return " ".join(f'"{word}"' for word in words)


def excerpt(body: str, text: str) -> str:
    """One line of `body` around the first word of `text` that is in it."""
    lower = body.lower()
    places = [lower.find(part) for word in _words(text) for part in re.findall(r"\w+", word.lower())]
    first = min((place for place in places if place >= 0), default=0)
    start = max(first - _EXCERPT // 3, 0)
    return ("…" if start else "") + one_line(body[start : start + 2 * _EXCERPT], _EXCERPT)


def _words(text: str) -> list[str]:
    """The words, without what would end a quoted word, or what SQLite cannot hold."""
    plain = text[:MAX_QUERY].encode("utf-8", "replace").decode().replace("\0", " ").replace('"', " ")
    return [word for word in plain.split() if any(letter.isalnum() for letter in word)]


def _all(*parts: tuple[str, str | int | None]) -> Condition:
    given = [(sql, value) for sql, value in parts if value is not None]
    return Condition(" AND ".join(sql for sql, _ in given) or "1", tuple(_bindable(value) for _, value in given))


def _bindable(value: str | int) -> str | int | bytes:
    """`value` as SQLite can hold it. Text with lone surrogates is in no stream: as bytes it equals no text."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def _turn(turn: int | None) -> int | None:
    if turn is not None and not 0 <= turn <= _INT_MAX:
        raise ConfigError(f"Turn {turn} does not exist: expected 0 or more")
    return turn


def _moment(value: str | datetime | None) -> str | None:
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{str(value)[:80]!r} is not a time: expected ISO 8601, such as `2026-11-15` or `2026-11-15T18:20:45Z`"
        ) from error
