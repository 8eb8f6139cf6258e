"""Lines of a stream: valid stream ids, encoding drafts as numbered and chained lines, and parsing lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import orjson

from remora import events
from remora.errors import TraceError, TraceSealed
from remora.events import digest

if TYPE_CHECKING:
    from remora.events import Event
    from remora.ports import Draft

StreamKind = Literal["traces", "runs"]

MAX_LINE = 256 * 1024
"""Maximum bytes of one line. Larger values go to blobs."""

SEAL = "agent_end"

_STREAM_ID = re.compile(r"(traces|runs)/[0-9A-Za-z][0-9A-Za-z_-]{0,63}", re.ASCII)


def check_stream_id(stream_id: str) -> None:
    """Raises `TraceError` unless `stream_id` is safe as a path below the state directory."""
    if not _STREAM_ID.fullmatch(stream_id):
        raise TraceError(f"Stream id {stream_id[:80]!r} is not valid: expected `traces/ID` or `runs/ID`")


@dataclass(frozen=True)
class Batch:
    """Encoded drafts, ready to be written."""

    events: tuple[Event, ...]
    lines: tuple[bytes, ...]
    head: str

    @property
    def sealed(self) -> bool:
        """Whether the last event seals the stream."""
        return self.events[-1].type == SEAL


def number(drafts: Sequence[Draft], *, seq: int, prev: str | None, now: Callable[[], str]) -> Batch:
    """Number `drafts` from `seq`, chain them to `prev` and encode them. Raises `TraceError` if that fails."""
    recorded: list[Event] = []
    lines: list[bytes] = []
    for draft in drafts:
        if recorded and recorded[-1].type == SEAL:
            raise TraceSealed(f"`{draft.type}` would follow `{SEAL}`, which ends a stream")
        event = draft.stamped({"seq": seq + len(recorded), "ts": now(), "prev": prev})
        line = events.encode(event)
        if len(line) > MAX_LINE:
            raise TraceError(
                f"Event `{event.type}` takes {len(line):,} bytes: expected at most {MAX_LINE:,}",
                hint="Put large values into the blob store and record their reference",
            )
        prev = digest(line)
        recorded.append(event)
        lines.append(line)
    return Batch(tuple(recorded), tuple(lines), prev or "")


_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
TS_LENGTH = len("2026-11-15T18:20:45.123456Z")


class Envelope(NamedTuple):
    """The fields of a line that the chain checks need."""

    seq: int
    type: str
    prev: str | None
    fields: dict[str, Any] | None


def parse(raw: bytes) -> Envelope:
    """Parse a whole line. Raises `TraceError` if it is not a record, or not plain JSON."""
    try:
        fields = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise TraceError(f"not JSON: {error}") from error
    if not _writes_back(fields, raw):
        _check_plain(raw)
    if not isinstance(fields, dict) or type(fields.get("seq")) is not int or not isinstance(fields.get("type"), str):
        raise TraceError("not a Remora record: expected a JSON object with `v`, `seq` and `type`")
    prev = fields.get("prev")
    return Envelope(fields["seq"], fields["type"], prev if isinstance(prev, str) else None, fields)


def parse_envelope(raw: bytes, seq: int, prev: str | None) -> Envelope:
    """Like `parse`, but without parsing JSON where the line has the writer's own form and continues `seq` and `prev`.

    In valid JSON a string ends at its first unescaped quote, so neither end of the line can be inside a string.
    """
    front, back = b'{"v":1,"seq":%d,"ts":"' % seq, f',"prev":"{prev}"}}'.encode()
    after_ts = len(front) + TS_LENGTH
    if not (raw.startswith(front) and raw.endswith(back) and raw.startswith(b'","type":"', after_ts)):
        return parse(raw)
    word = after_ts + 10
    return Envelope(seq, raw[word : raw.index(b'"', word)].decode(errors="replace"), prev, None)


def _writes_back(fields: Any, raw: bytes) -> bool:
    """Whether encoding gives the same bytes. Then parsing lost nothing, such as a repeated key."""
    try:
        return orjson.dumps(fields) == raw
    except TypeError:  # nested deeper than the encoder allows
        return False


def _check_plain(raw: bytes) -> None:
    """Raises `TraceError` for JSON that parsers read differently: repeated keys, NaN, integers beyond 64 bits."""
    try:
        json.loads(raw, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_small_int)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"not plain JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object has the same key twice")
    return fields


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _small_int(text: str) -> int:
    if len(text) > 20 or not _INT_MIN <= (value := int(text)) <= _INT_MAX:
        raise ValueError(f"an integer of {len(text)} digits is beyond 64 bits")
    return value
