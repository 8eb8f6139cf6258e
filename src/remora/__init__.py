"""Small local models as tool-calling agents over a codebase, on two tracks.

The Long Track is the event stream: complete, durable, the truth. The Short Track is the Decision Packet: small, within
a token budget, all that the model sees. Importing this package does nothing and loads no optional part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora._lazy import lazy_names
from remora._version import __version__

if TYPE_CHECKING:
    from remora.app import open_project
    from remora.tools import tool
    from remora.twotrack import TwoTrack

__all__ = ["TwoTrack", "__version__", "open_project", "tool"]

_MODULES = {
    "remora.app": "open_project",
    "remora.tools": "tool",
    "remora.twotrack": "TwoTrack",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
