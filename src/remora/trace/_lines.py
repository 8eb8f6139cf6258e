"""What both writers agree on: which names a stream may have, and how drafts become numbered, chained lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from remora.errors import TraceError, TraceSealed
from remora.events import Event, digest, encode
from remora.ports import Draft

StreamKind = Literal["traces", "runs"]

MAX_LINE = 256 * 1024
"""Bytes of one line. What is larger belongs into a blob."""

SEAL = "agent_end"

_STREAM_ID = re.compile(r"(traces|runs)/[0-9A-Za-z][0-9A-Za-z_-]{0,63}", re.ASCII)


def check_stream_id(stream_id: str) -> None:
    """`stream_id` is safe as a path below the state directory. Raises `TraceError` for anything else."""
    if not _STREAM_ID.fullmatch(stream_id):
        raise TraceError(f"Stream id {stream_id[:80]!r} is not valid: expected `traces/ID` or `runs/ID`")


@dataclass(frozen=True)
class Batch:
    """Drafts as they will stand in the stream."""

    events: tuple[Event, ...]
    lines: tuple[bytes, ...]
    head: str

    @property
    def sealed(self) -> bool:
        """Whether the stream has ended once this is written."""
        return self.events[-1].type == SEAL


def number(drafts: Sequence[Draft], *, seq: int, prev: str | None, now: Callable[[], str]) -> Batch:
    """`drafts` numbered from `seq` and chained to `prev`. Raises `TraceError` for what no line can hold."""
    events: list[Event] = []
    lines: list[bytes] = []
    for draft in drafts:
        if events and events[-1].type == SEAL:
            raise TraceSealed(f"`{draft.type}` would follow `{SEAL}`, which ends a stream")
        event = draft.model_copy(update={"seq": seq + len(events), "ts": now(), "prev": prev})
        line = encode(event)
        if len(line) > MAX_LINE:
            raise TraceError(
                f"Event `{event.type}` takes {len(line):,} bytes: expected at most {MAX_LINE:,}",
                hint="Put large values into the blob store and record their reference",
            )
        prev = digest(line)
        events.append(event)
        lines.append(line)
    return Batch(tuple(events), tuple(lines), prev or "")
