"""The open changes of many agents as one diff: what `accept` would write into the files as they are now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.app._changes import Proposed
from remora.errors import WorkspaceError
from remora.events import short_id


@dataclass(frozen=True)
class MergedDiff:
    """One unified diff over the changes of all agents."""

    text: str
    files: tuple[str, ...]
    agents: int
    """Agents whose changes are in the diff."""
    left_out: tuple[str, ...] = ()
    """A sentence for each agent whose changes conflict with those of the others, or with your files."""


async def merge_diffs(
    root: Path, agents: Sequence[Proposed], clean: Callable[[str], str], progress: Callable[[int], None]
) -> MergedDiff:
    """Merge the changes of `agents` in their order, as `accept` does, and write nothing."""
    from remora.workspaces import Batch, unified

    batch, left_out, taken = Batch(root), list[str](), set[str]()
    for at, each in enumerate(agents):
        progress(at)
        agent_id = str(each.note["agent_id"])
        try:
            if missing := each.missing(taken):
                raise WorkspaceError(missing)
            await asyncio.to_thread(batch.add, await each.load(), agent_id)
        except WorkspaceError as error:
            paths = ", ".join(f"`{clash.path}`" for clash in batch.clashes)
            why = f"it changes the same lines of {paths} as others, or as you" if paths else error.message
            left_out.append(f"agent {short_id(agent_id)} is not in the diff: {why}")
            continue
        taken.add(agent_id)
    changes = sorted(batch.changes(), key=lambda change: change.path)
    text = clean(unified(changes))
    return MergedDiff(text, tuple(change.path for change in changes), len(agents) - len(left_out), tuple(left_out))
