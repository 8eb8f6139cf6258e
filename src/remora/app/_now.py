"""What the agents of a run are doing now, read from the ends of their streams."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from remora.ports import Job

TAIL = 64 * 1024
"""Bytes of a stream that are read for its newest event."""
AHEAD = 16
"""Jobs without a stream after which no later one is looked for: agents start in the order of the plan."""
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
