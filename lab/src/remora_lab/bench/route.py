"""A solution that lists its calls: which of them remain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remora_lab.bench.results import Choice
from remora_lab.bench.shadow import is_among


class Route:
    """The calls of a solution in order; those in an inner list in any order."""

    def __init__(self, calls: Sequence[Any]) -> None:
        """`calls` contains `{tool, args}`, or lists of them."""
        groups = [each if isinstance(each, list) else [each] for each in calls]
        self._left = [[Choice.model_validate(call) for call in group] for group in groups]
        self._asked: tuple[Choice, ...] = ()

    def note_calls(self, calls: Sequence[Choice]) -> None:
        """Record the calls of the policy. The next prompt shows their outcome."""
        self._asked = tuple(calls)

    def next(self, actions: Sequence[tuple[str, str]]) -> tuple[Choice, ...]:
        """The right calls now. `actions`: tool and outcome of each shown call, oldest first."""
        latest = actions[-len(self._asked) :] if self._asked else ()
        for call, (tool, outcome) in zip(self._asked, latest, strict=False):
            if call.tool == tool and outcome != "error":
                self._remove(call)
        self._asked = ()
        return next((tuple(group) for group in self._left if group), ())

    def _remove(self, made: Choice) -> None:
        for group in self._left:
            for call in group:
                if is_among(made, [call]):
                    group.remove(call)
                    return
