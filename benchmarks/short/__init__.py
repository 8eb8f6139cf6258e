"""Measures the Short Track. `python -m benchmarks.short` runs it; docs/benchmarks/short-track.md explains it."""
