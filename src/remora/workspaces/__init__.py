"""Copy-on-write workspaces (the specification's *Cairn*), and what a person does with them: diff, merge, accept."""

from remora.workspaces._door import Door
from remora.workspaces._journal import forget, load, locked
from remora.workspaces._merge import merge
from remora.workspaces._overlay import OverlayWorkspace, workspace_folder
from remora.workspaces._review import Change, unified
from remora.workspaces._settle import Settled, settle
from remora.workspaces._take import Taken, take

__all__ = [
    "Change",
    "Door",
    "OverlayWorkspace",
    "Settled",
    "Taken",
    "forget",
    "load",
    "locked",
    "merge",
    "settle",
    "take",
    "unified",
    "workspace_folder",
]
