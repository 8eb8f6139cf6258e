"""Copy-on-write workspaces (the specification's *Cairn*), and reviewing them: diff, merge, accept."""

from remora.workspaces._batch import Batch, Part
from remora.workspaces._door import Door
from remora.workspaces._files import Clash
from remora.workspaces._journal import forget, load, locked
from remora.workspaces._lines import LineMap
from remora.workspaces._merge import YOU, Collision, Made, made, merge
from remora.workspaces._overlay import OverlayWorkspace, workspace_folder
from remora.workspaces._review import Change, unified
from remora.workspaces._settle import Settled, settle
from remora.workspaces._take import Taken, take

__all__ = [
    "YOU",
    "Batch",
    "Change",
    "Clash",
    "Collision",
    "Door",
    "LineMap",
    "Made",
    "OverlayWorkspace",
    "Part",
    "Settled",
    "Taken",
    "forget",
    "load",
    "locked",
    "made",
    "merge",
    "settle",
    "take",
    "unified",
    "workspace_folder",
]
