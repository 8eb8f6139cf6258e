"""Engines that run agents."""

from remora.engines._local import LocalEngine
from remora.engines._ray import Placement, RayEngine

__all__ = ["LocalEngine", "Placement", "RayEngine"]
