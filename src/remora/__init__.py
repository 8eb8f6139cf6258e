"""Small local models as tool-calling agents over a codebase, on two tracks.

The Long Track is the event stream: complete, durable, the truth. The Short Track is the Decision Packet: small, within
a token budget, all that the model sees. Importing this package does nothing and loads no optional part.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from remora._version import __version__

if TYPE_CHECKING:
    from remora.app import open_project
    from remora.tools import tool
    from remora.twotrack import TwoTrack

__all__ = ["TwoTrack", "__version__", "open_project", "tool"]

_MODULES = {"TwoTrack": "remora.twotrack", "open_project": "remora.app", "tool": "remora.tools"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
