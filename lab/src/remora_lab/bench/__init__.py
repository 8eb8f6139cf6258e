"""Benchmark of policies on tasks: whether the packet helps a small model, and whether the model helps at all."""
