"""Resolves what a name in one file refers to: a definition in the same file, or in another one. Pure.

A target is `:qualified` for a definition of the same file, else a dotted absolute name such as `shop.stock.take`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from remora.discovery import FileFacts, Mapped

ROOTS = ("", "src/", "lib/")
"""Folders from which Python code is imported, below any ancestor folder of the importing file."""
MAX_HOPS = 3
"""Most re-exporting modules to follow for one name."""


class KnownFile(Protocol):
    """What resolving needs to know about a file."""

    @property
    def nodes(self) -> Collection[str]: ...
    @property
    def imports(self) -> Mapping[str, str]: ...


def absolute_imports(facts: FileFacts, language: Mapped) -> dict[str, str]:
    """The file's imports, with relative ones made absolute."""
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
    """The targets of one node's calls, if its file alone determines them."""
    scope = qualified.rpartition(".")[0]
    for call in calls:
        first, dot, rest = call.partition(".")
        if dot and first in own:
            if f"{scope}.{rest}" in nodes:
                yield f":{scope}.{rest}"
        elif first in imports:
            yield f"{imports[first]}.{rest}" if dot else imports[first]
        elif found := _nearest(call, qualified, nodes):
            yield f":{found}"


def _nearest(call: str, qualified: str, nodes: Collection[str]) -> str:
    """The definition that a plain name refers to inside `qualified`: inner definitions first, then outer ones."""
    scope = qualified
    while scope:
        if f"{scope}.{call}" in nodes:
            return f"{scope}.{call}"
        scope = scope.rpartition(".")[0]
    return call if call in nodes else ""


def resolve(
    target: str, importer: str, language: Mapped, files: Callable[[Sequence[str]], Mapping[str, KnownFile]]
) -> tuple[str, str] | None:
    """Path and qualified name of the target, seen from the file `importer`; None if it is not in the project."""
    if target.startswith(":"):
        return importer, target[1:]
    for _ in range(MAX_HOPS):
        places = places_of(target, importer, language)
        known = files([path for path, _ in places])
        re_exported = ""
        for path, qualified in places:
            if (file := known.get(path)) is None:
                continue
            if not qualified or qualified in file.nodes:
                return path, qualified
            first, dot, rest = qualified.partition(".")
            if not re_exported and first in file.imports:
                re_exported, importer = file.imports[first] + dot + rest, path
        if not re_exported or re_exported == target:
            return None
        target = re_exported
    return None


def places_of(target: str, importer: str, language: Mapped) -> tuple[tuple[str, str], ...]:
    """Candidate files for a dotted name, with its qualified name in each. Empty for a name of the same file."""
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
    """Candidate paths of a module, most likely first: beside the importer, then further up."""
    slash = "/" if folder else ""
    while True:
        for root in ROOTS:
            for end in ends:
                yield f"{folder}{slash}{root}{module}{end}"
        if not folder:
            return
        folder, slash, _ = folder.rpartition("/")
