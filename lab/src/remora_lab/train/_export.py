"""Exports training rows from a project's own traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.app import Project
from remora.errors import ConfigError
from remora_lab.train._rows import RowCounts, TrainingRow, write_rows
from remora_lab.train._trace_rows import Proven, proven, rows_of_stream


@dataclass(frozen=True)
class Exported:
    """The rows that were written, and the streams they came from."""

    path: Path
    counts: RowCounts
    streams: int
    """Streams that were examined."""
    used: int
    """Those that gave rows."""
    unproven: int
    """Those that were not verified, or were wrong."""


async def export_rows(app: Project, fragments: Sequence[str], out: Path, *, unproven: bool = False) -> Exported:
    """Write the rows of these agents or runs, or of all, to `out`. Raises `ConfigError` if there are none.

    `unproven`: also those that ended well but that no check and no person has confirmed.
    """
    agents = _agents(app, fragments)
    known = proven(app.library.run_events())
    wanted = [agent for agent in agents if known.good(agent) or (unproven and _open(known, agent))]
    rows: list[TrainingRow] = []
    used = 0
    for agent in wanted:
        made = await rows_of_stream(list(app.library.events(agent)), app.blobs.get)
        used += bool(made)
        rows += made
    if not rows:
        raise ConfigError(
            f"No rows: {len(agents)} agents were examined, {len(wanted)} of them were verified",
            hint="Accept changes that are right (`remora accept`), or include unverified ones with `--unproven`",
        )
    return Exported(out, write_rows(out, rows), len(agents), used, len(agents) - len(wanted))


def _agents(app: Project, fragments: Sequence[str]) -> list[str]:
    """The agents with these ids: a run stands for all of its agents. No ids: all agents."""
    every = app.library.agents()
    if not fragments:
        return [info.agent_id for info in every]
    named: dict[str, None] = {}
    for fragment in fragments:
        stem = app.library.find(fragment).stem
        of_run = app.library.is_run(fragment)
        named |= dict.fromkeys(info.agent_id for info in every if stem == (info.run_id if of_run else info.agent_id))
    return list(named)


def _open(known: Proven, agent: str) -> bool:
    return agent not in known.rejected and agent not in known.checked
