"""Small local models as tool-calling agents over a codebase, on two tracks.

The Long Track is the event stream: complete, durable, the truth. The Short Track is the Decision Packet: small, within
a token budget, all that the model sees. Importing this package does nothing and loads no optional part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remora._version import __version__

if TYPE_CHECKING:
    from remora.app import LocalTwoTrack as TwoTrack
    from remora.app import open_project
    from remora.tools import tool

__all__ = ["TwoTrack", "__version__", "open_project", "tool"]


def __getattr__(name: str) -> Any:
    if name == "TwoTrack":
        from remora.app import LocalTwoTrack

        return LocalTwoTrack
    if name == "open_project":
        from remora.app import open_project

        return open_project
    if name == "tool":
        from remora.tools import tool

        return tool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
