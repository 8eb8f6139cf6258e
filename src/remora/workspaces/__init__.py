"""Copy-on-write workspaces (the specification's *Cairn*), and what a person does with them: diff, merge, accept."""

from remora.workspaces._door import Door
from remora.workspaces._merge import merge
from remora.workspaces._overlay import OverlayWorkspace
from remora.workspaces._review import Change, accept, unified

__all__ = ["Change", "Door", "OverlayWorkspace", "accept", "merge", "unified"]
