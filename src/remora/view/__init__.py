"""`remora view`: a local page that shows both tracks of every agent, live and back in time. It changes nothing.

Names are loaded when they are first used: the page needs the extra `view`, the cards of a turn do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora._lazy import lazy_names

if TYPE_CHECKING:
    from remora.view._app import make_app
    from remora.view._cards import Card, Cards, Line, Output
    from remora.view._export import Exported, export_agent
    from remora.view._server import Server, check_extra

__all__ = ["Card", "Cards", "Exported", "Line", "Output", "Server", "check_extra", "export_agent", "make_app"]

_MODULES = {
    "_app": "make_app",
    "_cards": "Card Cards Line Output",
    "_export": "Exported export_agent",
    "_server": "Server check_extra",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
