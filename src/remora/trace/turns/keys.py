"""Trace keys: `trace:{run_id}:{operation}:{node_id}:{turn}`, one for each turn of an agent.

The parts are percent-encoded, so that a `:` or `%` in a node id stays part of it; `/` is left readable.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from remora.errors import ConfigError

_TURN = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


Indexing = Literal["node", "run", "operation"]
"""What turns can be listed by."""
_INDEXES: tuple[Indexing, ...] = ("node", "run", "operation")


class TraceKey(NamedTuple):
    """The decoded parts of a key."""

    run_id: str
    operation: str
    node_id: str
    turn: int


def trace_key(run_id: str, operation: str, node_id: str, turn: int) -> str:
    """The key of one turn."""
    return ":".join(("trace", quote_part(run_id), quote_part(operation), quote_part(node_id), str(turn)))


def quote_part(part: str) -> str:
    """One part of a key, percent-encoded."""
    return quote(part, safe="/", errors="surrogatepass")


def parse_key(key: str) -> TraceKey:
    """The parts from which `trace_key` made `key`. Raises `ConfigError` for anything else."""
    word, *parts = key.split(":")
    if word != "trace" or len(parts) != 4 or not _TURN.fullmatch(parts[3]):
        raise _invalid_key(key)
    try:
        run_id, operation, node_id = (unquote(part, errors="surrogatepass") for part in parts[:3])
    except UnicodeDecodeError as error:
        raise _invalid_key(key) from error
    found = TraceKey(run_id, operation, node_id, int(parts[3]))
    if trace_key(*found) != key:  # each turn has exactly one key, so that keys can be compared as text
        raise _invalid_key(key)
    return found


def parse_index_key(key: str) -> tuple[Indexing, str] | None:
    """What an index key lists turns by, and the value: `index:node:src/a.py:load`. None for another kind of key.

    The value is written as it is, as in the specification, or percent-encoded, as in a trace key.
    """
    word, _, rest = key.partition(":")
    if word != "index":
        return None
    by, _, value = rest.partition(":")
    found = next((each for each in _INDEXES if each == by), None)
    if found is None:
        raise ConfigError(
            f"{key[:120]!r} is not an index key: expected `index:node:…`, `index:run:…` or `index:operation:…`"
        )
    decoded = unquote(value, errors="surrogatepass")
    return found, decoded if quote_part(decoded) == value else value


def _invalid_key(key: str) -> ConfigError:
    return ConfigError(
        f"{key[:120]!r} is not a trace key: expected `trace:RUN:OPERATION:NODE:TURN`",
        hint="A `:` or `%` inside a part is written `%3A` or `%25`",
    )
