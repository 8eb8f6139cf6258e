"""The Hub: a live index of the code. Packets get facts from it only if they are proven fresh."""

from remora.hub._catch_up import CatchUp, index_now
from remora.hub._control import HubStatus, start_daemon, status, stop_daemon
from remora.hub._index import Progress
from remora.hub._lock import Holder
from remora.hub._models import FileIndex, NodeState
from remora.hub._reader import ProjectView, Reader, View
from remora.hub.client import HubClient, refresh_context

__all__ = [
    "CatchUp",
    "FileIndex",
    "Holder",
    "HubClient",
    "HubStatus",
    "NodeState",
    "Progress",
    "ProjectView",
    "Reader",
    "View",
    "index_now",
    "refresh_context",
    "start_daemon",
    "status",
    "stop_daemon",
]
