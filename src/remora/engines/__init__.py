"""Engines that run agents."""

from remora.engines._local import LocalEngine

__all__ = ["LocalEngine"]
