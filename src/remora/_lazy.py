"""Packages whose names are imported on first use, so that importing one loads only what is used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of `package`.

    `modules` maps a module of the package, or one that begins with `remora.`, to its names, separated by spaces.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name] if homes[name].startswith("remora.") else f"{package}.{homes[name]}"
        found = getattr(import_module(home), name)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sorted(sys.modules[package].__all__)
