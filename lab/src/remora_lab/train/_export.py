"""Exports the training rows of a project's traces to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.app import Project
from remora.errors import ConfigError
from remora_lab.train._rows import RowCounts, TrainingRow, write_rows
from remora_lab.train._trace_rows import Verdicts, read_verdicts, rows_of_stream


@dataclass(frozen=True)
class ExportResult:
    """Rows that were written, and the streams that they came from."""

    path: Path
    counts: RowCounts
    streams: int
    """Streams that were looked at."""
    used: int
    """Those that gave rows."""
    unproven: int
    """Those whose end nobody verified, or that turned out wrong."""


async def export_rows(app: Project, fragments: Sequence[str], out: Path, *, unproven: bool = False) -> ExportResult:
    """Write the rows of these agents or runs, or of all, to `out`. Raises `ConfigError` if there are none.

    `unproven`: also those that ended well and that no check and no person has confirmed.
    """
    agents = _agents(app, fragments)
    known = read_verdicts(app.library.run_events())
    wanted = [agent for agent in agents if known.good(agent) or (unproven and _open(known, agent))]
    rows: list[TrainingRow] = []
    used = 0
    for agent in wanted:
        made = await rows_of_stream(list(app.library.events(agent)), app.blobs.get)
        used += bool(made)
        rows += made
    if not rows:
        raise ConfigError(
            f"No rows: {len(agents)} agents were looked at, {len(wanted)} of them were verified",
            hint="Accept changes that are right (`remora accept`), or take unverified ones too with `--unproven`",
        )
    return ExportResult(out, write_rows(out, rows), len(agents), used, len(agents) - len(wanted))


def _agents(app: Project, fragments: Sequence[str]) -> list[str]:
    """The agents of these ids: a run stands for all of its agents, nothing for all there are."""
    every = app.library.agents()
    if not fragments:
        return [info.agent_id for info in every]
    named: dict[str, None] = {}
    for fragment in fragments:
        stem = app.library.find(fragment).stem
        of_run = app.library.is_run(fragment)
        named |= dict.fromkeys(info.agent_id for info in every if stem == (info.run_id if of_run else info.agent_id))
    return list(named)


def _open(known: Verdicts, agent: str) -> bool:
    return agent not in known.rejected and agent not in known.checked
