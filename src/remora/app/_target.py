"""Pins the code that an agent works on: later saves do not change what its workspace sees."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from remora.analysis import fold_files
from remora.errors import TargetChanged, WorkspaceError
from remora.events import AgentStartEvent, Event, FileChange, ToolResultEvent
from remora.nodes import CodeNode
from remora.ports import BlobStore

if TYPE_CHECKING:
    from remora.discovery import TreeSitterDiscovery
    from remora.workspaces import OverlayWorkspace

TICK_NS = 20_000_000
"""File times can lag behind the clock by one tick of the kernel."""


@dataclass(frozen=True)
class Target:
    """A node, and the version of its file that its lines and text refer to."""

    node: CodeNode
    base: bytes | None
    problem: TargetChanged | None = None
    """Why an interrupted agent cannot be resumed."""


async def pin_target(
    workspace: OverlayWorkspace, node: CodeNode, discovery: Callable[[], TreeSitterDiscovery]
) -> Target:
    """Pin the node's file in the workspace and find the node in it. Raises `TargetChanged` if it is gone."""
    base = await _pin(workspace, node)
    if base is None:
        raise TargetChanged(
            f"`{node.file_path.as_posix()}` can no longer be read: it was there when the run was planned"
        )
    if hashlib.sha256(base).hexdigest() == node.digest:
        return Target(node, base)
    found = discovery().again(node, base)
    if found is None:
        raise TargetChanged(f"`{node.node_id}` is no longer in its file, which was saved after the run was planned")
    return Target(found, base)


async def restore_target(
    workspace: OverlayWorkspace,
    node: CodeNode,
    past: Sequence[Event],
    blobs: BlobStore,
    over: Mapping[str, bytes],
) -> Target:
    """Restore the workspace and the target of an interrupted agent from its events.

    `over` has the files of other agents that it builds on. If the agent had not written its target yet, the file must
    be unchanged since its start.
    """
    changes = [change for event in past if isinstance(event, ToolResultEvent) for change in event.files]
    await workspace.restore({**over, **await contents_after(fold_files(changes), blobs)}, began_ns=_start_ns(past))
    target = node.file_path.as_posix()
    written = next((change for change in changes if change.path == target), None)
    if written is not None:
        return Target(node, None if written.before is None else await blobs.get(written.before))
    if target in over:
        return Target(node, over[target])
    base = await _pin(workspace, node)
    if not node.digest or (base is not None and hashlib.sha256(base).hexdigest() == node.digest):
        return Target(node, base)
    message = f"`{target}` was saved while the agent was interrupted: it had read the file as it was before"
    return Target(node, base, TargetChanged(message, hint="Run the agent again on the new text"))


async def fork_target(
    workspace: OverlayWorkspace,
    node: CodeNode,
    past: Sequence[Event],
    blobs: BlobStore,
    over: Mapping[str, bytes],
    changes: Sequence[FileChange],
) -> Target:
    """Restore the workspace of a fork as it was after its `past`.

    `over` has the files as they were before the agent, where the project has changed since. `changes` are all changes
    of the agent that is forked: they hold the old text of its target, if it ever wrote it.
    """
    written = fold_files(change for event in past if isinstance(event, ToolResultEvent) for change in event.files)
    await workspace.restore({**over, **await contents_after(written, blobs)})
    target = node.file_path.as_posix()
    before = next((change.before for change in changes if change.path == target), None)
    if before is not None:
        return Target(node, await blobs.get(before))
    base = over[target] if target in over else await _pin(workspace, node)
    if not node.digest or (base is not None and hashlib.sha256(base).hexdigest() == node.digest):
        return Target(node, base)
    message = f"`{target}` was saved since the agent read it, and its stream does not hold the old text"
    return Target(node, base, TargetChanged(message, hint="Run the agent again on the new text"))


async def _pin(workspace: OverlayWorkspace, node: CodeNode) -> bytes | None:
    try:
        return await workspace.pin(node.file_path.as_posix())
    except (OSError, WorkspaceError):
        return None


async def contents_after(files: Sequence[FileChange], blobs: BlobStore) -> dict[str, bytes]:
    """The contents after the changes, by path. Deleted files are left out."""
    return {change.path: await blobs.get(change.after) for change in files if change.after is not None}


def _start_ns(past: Sequence[Event]) -> int:
    """When the agent's start was recorded, in nanoseconds; 0 if unknown. The agent read no file before."""
    started = next((event.ts for event in past if isinstance(event, AgentStartEvent)), "")
    try:
        return int(datetime.fromisoformat(started).timestamp() * 1_000_000) * 1000 - TICK_NS
    except (ValueError, OverflowError):
        return 0
