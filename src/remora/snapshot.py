"""A folder read once: file contents, one digest over all of them, and Python modules loaded from them.

Imports only the standard library: a child process that runs a summarizer from an agent's folder imports this file too.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Snapshot:
    """The files of a folder by relative path, with `/`. Later changes on disk have no effect."""

    folder: Path
    """Where they were read: for messages, and as `__file__` of the modules."""
    files: Mapping[str, bytes]

    @cached_property
    def digest(self) -> str:
        """One digest over the names and bytes of all files."""
        whole = hashlib.sha256()
        for name in sorted(self.files, key=lambda name: name.split("/")):
            raw, data = name.encode(errors="surrogateescape"), self.files[name]
            whole.update(b"%d:%b%d:" % (len(raw), raw, len(data)) + data)
        return f"sha256:{whole.hexdigest()}"

    def __hash__(self) -> int:
        return hash((self.folder, self.digest))

    def module(self, file: str) -> ModuleType:
        """Import the Python module of a file from these bytes. Neither it nor its relative imports read the disk.

        Raises whatever its code raises. The same bytes of the same folder run once per process.
        """
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
        _FINDER.known[self._package] = self
        return importlib.import_module(".".join([self._package, *file.removesuffix(".py").split("/")]))

    @cached_property
    def _package(self) -> str:
        # A unique package name: an agent's `json.py` never shadows Python's, nor the reverse.
        place = hashlib.sha256(f"{self.folder}\0{self.digest}".encode(errors="surrogateescape"))
        return f"_remora_agent_{place.hexdigest()[:16]}"


class _Finder(MetaPathFinder):
    """Finds the modules of snapshots, and no others."""

    def __init__(self) -> None:
        self.known: dict[str, Snapshot] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        snapshot = self.known.get(package)
        if snapshot is None:
            return None
        name = rest.replace(".", "/")
        start = f"{name}/" if name else ""
        for file, is_package in ((f"{start}__init__.py", True), (f"{name}.py", False)):
            if file in snapshot.files:
                return _spec(fullname, snapshot, file, is_package=is_package)
        if any(file.startswith(start) for file in snapshot.files):
            return _spec(fullname, snapshot, "", is_package=True)
        raise ModuleNotFoundError(f"No module named {rest!r} in the agent's folder", name=fullname)


class _SnapshotLoader(Loader):
    """Runs a module from the bytes of a snapshot, without reading or writing `.pyc` files."""

    def __init__(self, snapshot: Snapshot, file: str) -> None:
        self._snapshot = snapshot
        self._file = file

    def exec_module(self, module: ModuleType) -> None:
        source = self._snapshot.files.get(self._file, b"")
        exec(compile(source, str(module.__file__), "exec", dont_inherit=True), vars(module))  # noqa: S102

    def get_source(self, fullname: str) -> str:
        """The source, for tracebacks."""
        return self._snapshot.files.get(self._file, b"").decode("utf-8", "replace")

    def get_data(self, path: str) -> bytes:
        """A data file, for `pkgutil.get_data(__package__, NAME)`."""
        try:
            return self._snapshot.files[Path(path).relative_to(self._snapshot.folder).as_posix()]
        except (KeyError, ValueError) as error:
            raise FileNotFoundError(f"`{path}` is not a file of the agent") from error


def _spec(fullname: str, snapshot: Snapshot, file: str, *, is_package: bool) -> ModuleSpec | None:
    origin = str(snapshot.folder / (file or "__init__.py"))
    spec = spec_from_loader(fullname, _SnapshotLoader(snapshot, file), origin=origin, is_package=is_package)
    if spec is not None:
        spec.has_location = True  # so that modules have a `__file__`; their `__path__` is empty
    return spec


_FINDER = _Finder()
