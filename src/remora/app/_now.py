"""What the agents of a run are doing now, read from the ends of their streams."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from remora.errors import RemoraError
from remora.ports import Job

if TYPE_CHECKING:
    from remora.trace import PostgresStore

TAIL = 64 * 1024
"""Bytes of a stream that are read for its newest event."""
AHEAD = 16
"""Jobs without a stream after which no later one is looked for: agents start in the order of the plan."""
AHEAD_IN_STORE = 256
"""Jobs that a store is asked for at once."""
ASK_S = 2.0
"""How often a store is asked."""
_DOING = {
    "agent_start": "starts",
    "turn_start": "starts a turn",
    "model_request": "asks the model",
    "model_response": "reads the reply",
    "submit_result": "submits",
    "agent_end": "ends",
}


@dataclass(frozen=True)
class AgentNow:
    """A running agent."""

    job: Job
    turn: int = 0
    doing: str = "starts"
    """What it does, in a few words: a tool's name while a tool runs."""
    since: float | None = None
    """When it began to, in seconds since 1970; None if that is not known."""


def agents_now(state_dir: Path, waiting: Iterable[Job]) -> list[AgentNow]:
    """Those of the jobs that have begun. `waiting` are the jobs that did not end yet, in the order of the plan."""
    found, without = list[AgentNow](), 0
    for job in waiting:
        line = _newest_line(state_dir / "traces" / f"{job.agent_id}.jsonl")
        if line is None:
            without += 1
            if without >= AHEAD:
                break
        else:
            found.append(_now(job, line))
    return found


class StoreNow:
    """Like `agents_now`, for streams in a store. Asks it now and then, on a connection of its own."""

    def __init__(self, store: PostgresStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader, self._clock = store.reader(), clock
        self._lines: Mapping[str, bytes] = {}
        self._asked = -ASK_S

    def __call__(self, waiting: Iterable[Job]) -> list[AgentNow]:
        """Those of the next jobs that have begun, as the store knew them when it was last asked."""
        jobs = {f"traces/{job.agent_id}": job for job in islice(waiting, AHEAD_IN_STORE)}
        if self._clock() - self._asked >= ASK_S:
            with contextlib.suppress(RemoraError):  # the run itself says what is wrong with the store
                self._lines = self._reader.newest(list(jobs))
            self._asked = self._clock()
        return [_now(job, self._lines[stream_id]) for stream_id, job in jobs.items() if stream_id in self._lines]


def _now(job: Job, line: bytes) -> AgentNow:
    try:
        event = orjson.loads(line)
        kind, turn, data = str(event["type"]), int(event["turn"]), event.get("data") or {}
        since = datetime.fromisoformat(str(event["ts"])).timestamp()
    except (ValueError, KeyError, TypeError, AttributeError):  # nothing is written yet, or a line is too long
        return AgentNow(job)
    tool = data.get("tool") if isinstance(data, dict) else None
    if kind == "tool_call" and isinstance(tool, str):
        return AgentNow(job, turn, tool, since)
    return AgentNow(job, turn, _DOING.get(kind, "reads the result"), since)


def _newest_line(path: Path) -> bytes | None:
    """The last whole line of a stream, or nothing of it if it is too long; None if there is no stream."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - TAIL, 0))
            lines = file.read(TAIL).split(b"\n")
    except OSError:
        return None
    return lines[-2] if len(lines) > 1 else b""
