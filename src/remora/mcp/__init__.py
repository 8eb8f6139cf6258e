"""A client of MCP servers, whose tools agents may use. Stands on the official SDK, the extra `mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora._lazy import lazy_names
from remora.errors import MissingExtra

if TYPE_CHECKING:
    from remora.mcp._connection import Launch, McpConnection, OfferedTool
    from remora.mcp._tools import McpTools, offer_all

__all__ = ["Launch", "McpConnection", "McpTools", "OfferedTool", "check_installed", "offer_all"]

_MODULES = {
    "_connection": "Launch McpConnection OfferedTool",
    "_tools": "McpTools offer_all",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)


def check_installed() -> None:
    """Raises `MissingExtra` if the SDK is not installed."""
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise MissingExtra("The MCP SDK", extra="mcp") from error
