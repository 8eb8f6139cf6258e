"""The repeat guard: reports repeated calls with equal results, and stops offering them as candidates."""

from __future__ import annotations

from typing import Any

from remora.context.text import one_line
from remora.events import CandidateAction, PacketDelta, canonical, digest

REPEAT_LIMIT = 3
"""After this many equal calls with equal results, the call is no longer offered."""
FAILURE_LIMIT = 2
"""After this many equal calls with equal failures in a row, the tool is not offered in the next turn."""
REMEMBERED = 256
"""Number of different calls to remember, so that memory stays bounded."""


class RepeatGuard:
    """Counts how often each recent call of one run returned the same result."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[str, int]] = {}
        """By the digest of a call: the digest of its result, and how many times in a row it returned that."""
        self.times = 0
        """How many times in a row the latest call returned the same result."""

    def note(self, tool: str, args: dict[str, Any], raw: bytes, delta: PacketDelta) -> PacketDelta:
        """Count a finished call. Adds a diagnostic to its delta if it is a repeat, and removes repeated candidates."""
        call, result = _call_digest(tool, args), digest(raw)
        before, times = self._latest.pop(call, ("", 0))
        times = times + 1 if before == result else 1
        self._latest[call] = (result, times)
        self.times = times
        if len(self._latest) > REMEMBERED:
            del self._latest[next(iter(self._latest))]
        changed: dict[str, Any] = {}
        if delta.candidate_actions is not None:
            changed["candidate_actions"] = self._without_worn_out(delta.candidate_actions)
        if times > 1:
            repeated = f"Same call, same result, {times} times: {one_line(tool, 60)} {_bytes(args).decode():.80}"
            changed["diagnostics"] = (*delta.diagnostics, repeated)
        return delta.model_copy(update=changed) if changed else delta

    def forget(self) -> None:
        """Forget all counts. Called when files change, because the same call may now return another result."""
        self._latest.clear()

    def is_worn_out(self, action: CandidateAction, limit: int = REPEAT_LIMIT) -> bool:
        """Whether the call returned the same result `limit` times, so that it is not offered again."""
        return self._latest.get(_call_digest(action.tool, action.args), ("", 0))[1] >= limit

    def _without_worn_out(self, candidates: tuple[CandidateAction, ...]) -> tuple[CandidateAction, ...] | None:
        return tuple(action for action in candidates if not self.is_worn_out(action)) or None


def _call_digest(tool: str, args: dict[str, Any]) -> str:
    return digest(tool.encode(errors="surrogatepass") + b"\0" + _bytes(args))


def _bytes(value: Any) -> bytes:
    try:
        return canonical(value)
    except (TypeError, ValueError):
        return repr(value).encode(errors="backslashreplace")
