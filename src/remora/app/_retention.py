"""Carries out the retention settings at the end of a run, and records what was deleted."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from remora.app._project import Project
from remora.context.text import number
from remora.errors import RemoraError
from remora.events import NoticeEvent
from remora.ports import TraceWriter
from remora.trace import Library, PruneResult, Retention


async def carry_out_retention(project: Project, writer: TraceWriter, run_id: str) -> str:
    """Delete what the settings name. Returns a sentence, which the run's stream has too; empty if retention is off.

    Keeps the run that just ended, and every agent whose changes are neither accepted nor rejected. A failure is such a
    sentence as well: it never fails the run.
    """
    if not project.config.retention.is_on:
        return ""
    try:
        sentence = _sentence(*await asyncio.to_thread(_prune, project, run_id))
    except RemoraError as error:
        sentence = f"retention: nothing was deleted: {error.message}"
    if sentence:
        notice = NoticeEvent(code="retention", message=sentence, run_id=run_id)
        await writer.append(f"runs/{run_id}", [notice])
    return sentence


def _prune(project: Project, run_id: str) -> tuple[PruneResult, int]:
    """What was deleted, and how many streams stay only because their runs have open changes."""
    settings, library = project.config.retention, project.library
    rules = Retention(settings.max_age_days, settings.max_total_bytes, settings.keep_last, settings.keep_failed)
    plan = library.plan_prune(rules, project.clock.now())
    waiting = _undecided(library)
    others = [each for each in plan.streams if each.run_id != run_id]
    runs = {each.run_id for each in others if each.stream_id in waiting}
    chosen = tuple(each for each in others if each.run_id not in runs)
    return library.prune(replace(plan, streams=chosen)), len(others) - len(chosen)


def _undecided(library: Library) -> set[str]:
    """The streams of agents with open changes."""
    decided: dict[str, bool] = {}
    for event in library.picked_events(("workspace_accepted", "workspace_rejected", "accept_undone")):
        decided[event.agent_id] = event.type != "accept_undone"
    changed = (info for info in library.agents() if info.changes)
    return {info.stream_id for info in changed if not decided.get(info.agent_id)}


def _sentence(result: PruneResult, open_streams: int) -> str:
    deleted = f"{number(len(result.streams), 'stream')} and {number(len(result.blobs), 'blob')}"
    stay = f"{number(open_streams, 'stream')} of runs with changes that are neither accepted nor rejected"
    parts = [f"deleted {deleted}, {result.bytes_freed:,} bytes"] if result.streams or result.blobs else []
    parts += [f"kept {stay}"] if open_streams else []
    return f"retention: {'; '.join(parts)}" if parts else ""
