"""Summarizers of installed packages."""

from __future__ import annotations

from importlib.metadata import entry_points

GROUP = "remora.summarizers"


def installed_summarizers() -> dict[str, str]:
    """Import paths by name, from the entry point group `remora.summarizers`. Imports none of them."""
    return {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=GROUP)}
