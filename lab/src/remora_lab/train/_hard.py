"""Rows in which the obvious call is wrong. They teach to read the rules; most other rows teach to copy a candidate."""

from __future__ import annotations

from typing import Any

import orjson

from remora_lab.train._rows import TrainingRow


def is_hard(row: TrainingRow) -> bool:
    """Whether the first candidate is not the right call, or a call has failed just before. False for a chat."""
    packet, right = _packet(row), orjson.loads(row.answer)
    candidates = packet.get("candidate_actions") or []
    misled = bool(candidates) and _call(candidates[0]) != _call(right)
    return misled or bool(packet.get("last_error"))


def _packet(row: TrainingRow) -> dict[str, Any]:
    """The packet of a prompt, which is the first line of its last message. Empty if there is none."""
    line = str(row.messages[-1]["content"]).partition("\n")[0]
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _call(action: dict[str, Any]) -> tuple[str, Any]:
    return action["tool"], action.get("args") or {}
