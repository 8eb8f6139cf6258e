"""What a name in one file means: a definition of the same file, or of another one. Pure.

A target is `:qualified` for a definition of the same file, else a dotted absolute name such as `shop.stock.take`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from remora.discovery import FileFacts, Mapped

ROOTS = ("", "src/", "lib/")
"""Folders from which Python code is imported, below any folder that holds the importing file."""
MAX_HOPS = 3
"""Modules that only pass a name on, one after the other."""


class KnownFile(Protocol):
    """What resolving must know of a file."""

    @property
    def nodes(self) -> Collection[str]: ...
    @property
    def imports(self) -> Mapping[str, str]: ...


def absolute_imports(facts: FileFacts, language: Mapped) -> dict[str, str]:
    """The file's imports with relative ones made absolute."""
    return {name: absolute(target, facts.path, language) for name, target in facts.imports.items()}


def absolute(target: str, path: str, language: Mapped) -> str:
    """`.stock.take` in `shop/cart.py` is `shop.stock.take`."""
    name = target.lstrip(".")
    dots = len(target) - len(name)
    if not dots:
        return target
    folder = path.split("/")[:-1]
    above = folder[: len(folder) - (dots - 1)]
    return ".".join([*above, name]) if name else ".".join(above)


def targets_of(
    calls: Sequence[str], qualified: str, imports: Mapping[str, str], nodes: Collection[str], own: Collection[str]
) -> Iterator[str]:
    """What the calls of one node mean, where that can be known from its file alone."""
    around = qualified.rpartition(".")[0]
    for call in calls:
        first, dot, rest = call.partition(".")
        if dot and first in own:
            if f"{around}.{rest}" in nodes:
                yield f":{around}.{rest}"
        elif first in imports:
            yield f"{imports[first]}.{rest}" if dot else imports[first]
        elif found := _nearest(call, qualified, nodes):
            yield f":{found}"


def _nearest(call: str, qualified: str, nodes: Collection[str]) -> str:
    """The definition that a plain name finds from inside `qualified`: its own inner ones first, then outward."""
    around = qualified
    while around:
        if f"{around}.{call}" in nodes:
            return f"{around}.{call}"
        around = around.rpartition(".")[0]
    return call if call in nodes else ""


def resolve(
    target: str, importer: str, language: Mapped, files: Callable[[Sequence[str]], Mapping[str, KnownFile]]
) -> tuple[str, str] | None:
    """Path and qualified name of what `target` means in the file `importer`; None where that is not in the project."""
    if target.startswith(":"):
        return importer, target[1:]
    for _ in range(MAX_HOPS):
        places = places_of(target, importer, language)
        known = files([path for path, _ in places])
        passed_on = ""
        for path, qualified in places:
            if (file := known.get(path)) is None:
                continue
            if not qualified or qualified in file.nodes:
                return path, qualified
            first, dot, rest = qualified.partition(".")
            if not passed_on and first in file.imports:
                passed_on, importer = file.imports[first] + dot + rest, path
        if not passed_on or passed_on == target:
            return None
        target = passed_on
    return None


def places_of(target: str, importer: str, language: Mapped) -> tuple[tuple[str, str], ...]:
    """Where a dotted name may lead: files, and what it would be called in them. None for a name of the same file."""
    return _places(target, importer.rpartition("/")[0], language.suffixes[0], language.package_files)


@lru_cache(maxsize=20_000)
def _places(target: str, folder: str, suffix: str, package_files: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    if target.startswith(":"):
        return ()
    parts = target.split(".")
    ends = [suffix, *(f"/{name}{suffix}" for name in package_files)]
    return tuple(
        (path, ".".join(parts[end:]))
        for end in range(len(parts), max(0, len(parts) - 3), -1)
        for path in _paths("/".join(parts[:end]), folder, ends)
    )


def _paths(module: str, folder: str, ends: Sequence[str]) -> Iterator[str]:
    """Where a module may lie, the most likely place first: beside the importer, then further up."""
    slash = "/" if folder else ""
    while True:
        for root in ROOTS:
            for end in ends:
                yield f"{folder}{slash}{root}{module}{end}"
        if not folder:
            return
        folder, slash, _ = folder.rpartition("/")
