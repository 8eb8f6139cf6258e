"""Memories of other frameworks. Each module runs in an environment of its own."""
