"""The repeat guard: an agent that does the same again and gets the same is told so, and is then no longer led there."""

from __future__ import annotations

from collections import Counter
from typing import Any

from remora.context.text import one_line
from remora.events import CandidateAction, PacketDelta, canonical, digest

REPEAT_LIMIT = 3
"""Equal calls with equal results, from which on the call is no longer offered as a candidate."""


class RepeatGuard:
    """Counts equal calls with equal results of one run."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, bytes, str]] = Counter()
        self._calls: Counter[tuple[str, bytes]] = Counter()

    def note(self, tool: str, args: dict[str, Any], raw: bytes, delta: PacketDelta) -> PacketDelta:
        """The delta of a call that ended, with a diagnostic if it is a repetition, and without what leads to more."""
        call = (tool, _bytes(args))
        result = (*call, digest(raw))
        self._seen[result] += 1
        self._calls[call] = max(self._calls[call], self._seen[result])
        times = self._seen[result]
        candidates = delta.candidate_actions
        if candidates is not None:
            candidates = tuple(action for action in candidates if not self.is_worn_out(action)) or None
        told = (f"Same call, same result, {times} times: {one_line(tool, 60)} {_bytes(args).decode():.80}",)
        return delta.model_copy(
            update={
                "candidate_actions": candidates,
                "diagnostics": delta.diagnostics + (told if times > 1 else ()),
            }
        )

    def is_worn_out(self, action: CandidateAction) -> bool:
        """Whether the call has given the same result too often to be offered again."""
        return self._calls[(action.tool, _bytes(action.args))] >= REPEAT_LIMIT


def _bytes(value: Any) -> bytes:
    try:
        return canonical(value)
    except (TypeError, ValueError):
        return repr(value).encode()
