"""Trace keys: `trace:{run_id}:{operation}:{node_id}:{turn}`, one for each turn of an agent.

The parts are percent-encoded, so that a `:` or `%` in a node id stays part of it; `/` is left as it is, to be read.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from remora.errors import ConfigError

_TURN = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


class TraceKey(NamedTuple):
    """The parts of a key, as the events hold them."""

    run_id: str
    operation: str
    node_id: str
    turn: int


def trace_key(run_id: str, operation: str, node_id: str, turn: int) -> str:
    """The key of one turn."""
    parts = (quote(part, safe="/", errors="surrogatepass") for part in (run_id, operation, node_id))
    return ":".join(("trace", *parts, str(turn)))


def parse_key(key: str) -> TraceKey:
    """The parts that `trace_key` made `key` of. Raises `ConfigError` for anything else."""
    word, *parts = key.split(":")
    if word != "trace" or len(parts) != 4 or not _TURN.fullmatch(parts[3]):
        raise _not_a_key(key)
    try:
        run_id, operation, node_id = (unquote(part, errors="surrogatepass") for part in parts[:3])
    except UnicodeDecodeError as error:
        raise _not_a_key(key) from error
    found = TraceKey(run_id, operation, node_id, int(parts[3]))
    if trace_key(*found) != key:  # two spellings of one key would be two keys to whoever compares them
        raise _not_a_key(key)
    return found


def _not_a_key(key: str) -> ConfigError:
    return ConfigError(
        f"{key[:120]!r} is not a trace key: expected `trace:RUN:OPERATION:NODE:TURN`",
        hint="A `:` or `%` inside a part is written `%3A` or `%25`",
    )
