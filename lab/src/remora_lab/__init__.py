"""Tools to measure Remora's agents (`bench`) and to train adapters for its embedded model (`train`, `trainer`)."""

from remora_lab._version import __version__

__all__ = ["__version__"]
