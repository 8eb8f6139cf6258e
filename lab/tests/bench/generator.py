"""The suite's generator, from beside the tests: `tests/benchmarks` would otherwise be taken for its package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]


def part(name: str, suite: str = "tasks") -> ModuleType:
    """A module of `benchmarks.tasks`, or of another suite."""
    tests = {key: sys.modules.pop(key) for key in [*sys.modules] if key.partition(".")[0] == "benchmarks"}
    sys.path.insert(0, str(ROOT))
    try:
        sys.modules.update(_LOADED)
        found = importlib.import_module(f"benchmarks.{suite}.{name}")
        _LOADED.update({key: sys.modules[key] for key in sys.modules if key.partition(".")[0] == "benchmarks"})
        return found
    finally:
        sys.path.remove(str(ROOT))
        for key in _LOADED:
            sys.modules.pop(key, None)
        sys.modules.update(tests)


_LOADED: dict[str, ModuleType] = {}
