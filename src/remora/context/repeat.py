"""The repeat guard: an agent that does the same again and gets the same is told so, and is then no longer led there."""

from __future__ import annotations

from typing import Any

from remora.context.text import one_line
from remora.events import CandidateAction, PacketDelta, canonical, digest

REPEAT_LIMIT = 3
"""Equal calls with equal results, from which on the call is no longer offered as a candidate."""
REMEMBERED = 256
"""Different calls that are remembered, so that memory does not grow with the run."""


class RepeatGuard:
    """Counts, for the latest calls of one run, how often each gave the same result."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[str, int]] = {}
        """By the digest of a call: the digest of its result, and how many times in a row it was that one."""
        self.times = 0
        """How many times in a row the call noted last has given the same result."""

    def note(self, tool: str, args: dict[str, Any], raw: bytes, delta: PacketDelta) -> PacketDelta:
        """The delta of a call that ended, with a diagnostic if it is a repetition, and without what leads to more."""
        call, result = _call(tool, args), digest(raw)
        before, times = self._latest.pop(call, ("", 0))
        times = times + 1 if before == result else 1
        self._latest[call] = (result, times)
        self.times = times
        if len(self._latest) > REMEMBERED:
            del self._latest[next(iter(self._latest))]
        told = (f"Same call, same result, {times} times: {one_line(tool, 60)} {_bytes(args).decode():.80}",)
        return delta.model_copy(
            update={
                "candidate_actions": self._fresh(delta.candidate_actions),
                "diagnostics": delta.diagnostics + (told if times > 1 else ()),
            }
        )

    def forget(self) -> None:
        """Files have changed: what gave the same result so far may give another one now."""
        self._latest.clear()

    def is_worn_out(self, action: CandidateAction) -> bool:
        """Whether the call has given the same result too often to be offered again."""
        return self._latest.get(_call(action.tool, action.args), ("", 0))[1] >= REPEAT_LIMIT

    def _fresh(self, candidates: tuple[CandidateAction, ...] | None) -> tuple[CandidateAction, ...] | None:
        return tuple(action for action in candidates or () if not self.is_worn_out(action)) or None


def _call(tool: str, args: dict[str, Any]) -> str:
    return digest(tool.encode(errors="surrogatepass") + b"\0" + _bytes(args))


def _bytes(value: Any) -> bytes:
    try:
        return canonical(value)
    except (TypeError, ValueError):
        return repr(value).encode(errors="backslashreplace")
