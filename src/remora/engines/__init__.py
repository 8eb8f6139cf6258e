"""Where agents run."""

from remora.engines._local import LocalEngine

__all__ = ["LocalEngine"]
