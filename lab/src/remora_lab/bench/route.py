"""A solution that lists its calls: which of them are left to make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remora_lab.bench.results import Choice
from remora_lab.bench.shadow import is_among


class Route:
    """The calls of a solution in their order; those of a list inside the list in any order."""

    def __init__(self, calls: Sequence[Any]) -> None:
        """`calls`: `{tool, args}`, or lists of them."""
        groups = [each if isinstance(each, list) else [each] for each in calls]
        self._left = [[Choice.model_validate(call) for call in group] for group in groups]
        self._asked: tuple[Choice, ...] = ()

    def asked(self, calls: Sequence[Choice]) -> None:
        """Whoever decides has asked for these calls; the next prompt shows what came of them."""
        self._asked = tuple(calls)

    def next(self, actions: Sequence[tuple[str, str]]) -> tuple[Choice, ...]:
        """The calls that are right now. `actions`: tool and outcome of each call that is shown, oldest first."""
        latest = actions[-len(self._asked) :] if self._asked else ()
        for call, (tool, outcome) in zip(self._asked, latest, strict=False):
            if call.tool == tool and outcome != "error":
                self._strike(call)
        self._asked = ()
        return next((tuple(group) for group in self._left if group), ())

    def _strike(self, made: Choice) -> None:
        for group in self._left:
            for call in group:
                if is_among(made, [call]):
                    group.remove(call)
                    return
