"""A live view of a run on stderr: its progress, the running agents, and an estimate of the time left."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from remora.app import AgentNow, StoreNow, agents_now
from remora.cli._console import err
from remora.cli._progress import time_left
from remora.context.patterns import redact_patterns
from remora.context.text import number, one_line
from remora.orchestrator import Plan
from remora.ports import AgentResult

if TYPE_CHECKING:
    from remora.trace import PostgresStore

SHOWN = 6
"""Running agents that are shown, one in a line."""
RECENT = 30
"""Finished agents from which the time left is estimated."""
LEAST = 3
"""Finished agents before there is an estimate."""
PER_SECOND = 4
BAR = 24
DOING = 22
"""Columns for what an agent does."""


class LiveRun:
    """Shows a run while it goes on, on a terminal: `with LiveRun(plan, state_dir) as live: live.add(result)`."""

    def __init__(
        self,
        plan: Plan,
        state_dir: Path,
        *,
        store: PostgresStore | None = None,
        quiet: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """With `quiet`, or without a terminal, nothing is shown. Streams are in the folder, or in the `store`."""
        self._now = StoreNow(store) if store is not None else partial(agents_now, state_dir)
        self._clock = clock
        self._waiting = {job.agent_id: job for job in plan.jobs}
        self._total, self._started = len(plan.jobs), clock()
        self._ends: deque[float] = deque([self._started], maxlen=RECENT + 1)
        self._verdicts: Counter[str] = Counter()
        self._files: set[str] = set()
        self._known: set[str] = set()
        """Operations of which an agent ended."""
        self._shown = not quiet and err.is_terminal and not err.is_dumb_terminal
        self._live = Live(
            get_renderable=lambda: Group(*map(Text, self.lines(err.width))),
            console=err,
            transient=True,
            refresh_per_second=PER_SECOND,
        )

    def __enter__(self) -> Self:
        if self._shown:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live.is_started:
            self._live.stop()

    def add(self, result: AgentResult) -> None:
        """Count an agent that ended."""
        self._waiting.pop(result.agent_id, None)
        self._verdicts[result.verdict or result.outcome] += 1
        self._files |= {change.path for change in result.files}
        self._known.add(result.operation)
        self._ends.append(self._clock())

    def lines(self, width: int) -> list[str]:
        """The view as lines that fit."""
        done = self._verdicts.total()
        # The last pass adds agents that the plan does not have.
        total = max(self._total, done)
        spent = self._clock() - self._started
        filled = BAR * done // max(total, 1)
        how_far = f"{'━' * filled}{'╌' * (BAR - filled)} {done:,} of {number(total, 'agent')}"
        first = " · ".join(filter(None, (how_far, _duration(spent), self._time_left())))
        return [one_line(line, width) for line in (first, *self._ended())] + self._running(width)

    def seconds_left(self) -> float | None:
        """An estimate from the agents that ended last; None if too few did."""
        ended = len(self._ends) - 1
        if ended < LEAST or not self._waiting:
            return None
        return (self._clock() - self._ends[0]) / ended * len(self._waiting)

    def _time_left(self) -> str:
        """The estimate in words. An operation of which no agent ended yet may take longer."""
        words = time_left(self.seconds_left())
        unknown = {job.operation for job in [*self._waiting.values()]} - self._known
        return words.replace("about", "more than") if unknown else words

    def _ended(self) -> list[str]:
        if not self._verdicts:
            return []
        counts = ", ".join(f"{count:,} {word}" for word, count in self._verdicts.most_common())
        changed = f"; {number(len(self._files), 'file')} changed in workspaces" if self._files else ""
        return [f"ended: {counts}{changed}"]

    def _running(self, width: int) -> list[str]:
        found = self._now([*self._waiting.values()])
        if not found:
            first = next(iter(self._waiting.values()), None)
            what = f"{first.operation} {first.node.node_id}" if first else "checks all changes together"
            return [f"now:   {one_line(what, max(width - 7, 8))}"]
        lines = [f"{'now:   ' if not at else ' ' * 7}{self._agent(now, width)}" for at, now in enumerate(found[:SHOWN])]
        more = len(found) - SHOWN
        return [*lines, *([f"{' ' * 7}… {more} more"] if more > 0 else [])]

    def _agent(self, now: AgentNow, width: int) -> str:
        since = f"{max(self._clock() - now.since, 0):.0f} s" if now.since is not None else ""
        turn = f"turn {now.turn}" if now.turn else ""
        doing = max(min(DOING, width - 43), 8)
        room = max(width - 7 - doing - 18, 18)
        who = _with_end(now.job.operation, one_line(now.job.node.node_id, 1000), room)
        return f"{who:<{room}}  {turn:<7} {one_line(redact_patterns(now.doing), doing):<{doing}} {since:>6}"


def _with_end(operation: str, node: str, room: int) -> str:
    """An operation and its node that fit. The end of a path says more than its beginning."""
    left = max(room - len(operation) - 1, 8)
    return f"{operation} {node if len(node) <= left else f'…{node[-(left - 1) :]}'}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
