"""The code that an agent works on, at the moment when it begins: the file as its workspace has it from then on."""

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
"""Files are stamped with a clock that lags behind by up to a tick of the system's."""


@dataclass(frozen=True)
class Target:
    """A node, and the bytes of its file that its lines and text are of."""

    node: CodeNode
    base: bytes | None
    problem: TargetChanged | None = None
    """Why an agent that was interrupted cannot go on."""


async def begin(workspace: OverlayWorkspace, node: CodeNode, discovery: Callable[[], TreeSitterDiscovery]) -> Target:
    """The node as it is now, and its file held for the agent. Raises `TargetChanged` if the node is no longer there."""
    base = await _pinned(workspace, node)
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


async def take_up(
    workspace: OverlayWorkspace,
    node: CodeNode,
    past: Sequence[Event],
    blobs: BlobStore,
    over: Mapping[str, bytes],
) -> Target:
    """The workspace as the stream says it was, and the target as the agent saw it.

    `over` is what other agents had left there before it began. Where the agent had not written its target yet, the file
    must be the one that it began with.
    """
    changes = [change for event in past if isinstance(event, ToolResultEvent) for change in event.files]
    await workspace.restore({**over, **await contents(fold_files(changes), blobs)}, began_ns=_began_ns(past))
    target = node.file_path.as_posix()
    written = next((change for change in changes if change.path == target), None)
    if written is not None:
        return Target(node, None if written.before is None else await blobs.get(written.before))
    if target in over:
        return Target(node, over[target])
    base = await _pinned(workspace, node)
    if not node.digest or (base is not None and hashlib.sha256(base).hexdigest() == node.digest):
        return Target(node, base)
    message = f"`{target}` was saved while the agent was interrupted: it had read the file as it was before"
    return Target(node, base, TargetChanged(message, hint="Run the agent again on the new text"))


async def _pinned(workspace: OverlayWorkspace, node: CodeNode) -> bytes | None:
    try:
        return await workspace.pin(node.file_path.as_posix())
    except (OSError, WorkspaceError):
        return None


async def contents(files: Sequence[FileChange], blobs: BlobStore) -> dict[str, bytes]:
    """By path, what the changes leave there."""
    return {change.path: await blobs.get(change.after) for change in files if change.after is not None}


def _began_ns(past: Sequence[Event]) -> int:
    """When the agent's start was recorded: before that, nothing was shown to anyone. 0 if nobody knows."""
    began = next((event.ts for event in past if isinstance(event, AgentStartEvent)), "")
    try:
        return int(datetime.fromisoformat(began).timestamp() * 1_000_000) * 1000 - TICK_NS
    except (ValueError, OverflowError):
        return 0
