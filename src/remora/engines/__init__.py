"""Engines that run agents."""

from remora.engines._fleet import Cluster, FleetEngine, Placement, Worker, WorkerLost, Workers
from remora.engines._local import LocalEngine
from remora.engines._ray import open_ray_engine

__all__ = [
    "Cluster",
    "FleetEngine",
    "LocalEngine",
    "Placement",
    "Worker",
    "WorkerLost",
    "Workers",
    "open_ray_engine",
]
