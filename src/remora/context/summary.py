"""The words of summarizing: who makes a summary, and what one holds. Only the standard library is loaded.

A summarizer that is not ours runs in a child process, which loads this file, `remora.snapshot` and the summarizer, and
nothing else of Remora.
"""

from __future__ import annotations

import sysconfig
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from remora.snapshot import Snapshot


class Summarizer(ABC):
    """Turns a tool's raw result into a line and knowledge, where the tool gives none itself."""

    @abstractmethod
    def summarize(self, raw_result: Any) -> str:
        """One line on what came out."""

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        """What later turns should know, by key."""
        return {}

    def extract_excerpts(self, raw_result: Any) -> Sequence[Any]:
        """Slices that the model must see word for word: `Excerpt`s, or dicts of `label`, `text` and `start_line`."""
        return ()


@dataclass(frozen=True)
class Summarized:
    """What a summarizer made of a raw result."""

    summary: str = ""
    """Empty where it had nothing to say: the generic line then stands for it."""
    knowledge: Mapping[str, Any] = field(default_factory=dict)
    excerpts: Sequence[Any] = ()
    problems: Sequence[str] = ()
    """What went wrong, each as it reads after `Summarizer of lint`: `failed: ValueError`."""


class Imported(Summarizer):
    """A summarizer by its import path, `package.module:Name`. It is imported when it is first used, and only there."""

    def __init__(self, path: str, outside: str = "") -> None:
        """`outside`: a folder that the module may not lie in, such as a project that `remora trust` does not cover."""
        self.path = path
        self.outside = outside
        self._loaded: Any = None

    def load(self) -> Any:
        """The summarizer itself. Raises `ImportError` for one in the folder that it must lie outside of."""
        if self._loaded is None:
            module, _, name = self.path.partition(":")
            found: Any = self._module(module)
            for part in name.split("."):
                found = getattr(found, part)
            self._loaded = found() if isinstance(found, type) else found
        return self._loaded

    def refused(self) -> str:
        """Why it may not be imported, as things are now; empty if it may. Nothing of it is run."""
        module = self.path.partition(":")[0]
        inside = self.outside and lies_in(module.partition(".")[0], Path(self.outside))
        return f"module `{module}` lies in the project: trust covers only the agent's own folder" if inside else ""

    def _module(self, module: str) -> Any:
        if refused := self.refused():
            raise ImportError(refused)
        return import_module(module)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_loaded": None}

    def summarize(self, raw_result: Any) -> str:
        return str(self.load().summarize(raw_result))

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return dict(_optional(self.load(), "extract_knowledge", raw_result) or {})

    def extract_excerpts(self, raw_result: Any) -> Sequence[Any]:
        return tuple(_optional(self.load(), "extract_excerpts", raw_result) or ())


class OfFolder(Imported):
    """A summarizer of an agent's own folder, `file.py:Name`, run from the bytes that were read with the agent."""

    def __init__(self, path: str, files: Snapshot) -> None:
        super().__init__(path)
        self.files = files

    def refused(self) -> str:
        file = self.path.partition(":")[0]
        return "" if file in self.files.files else f"`{file}` is not a Python file in the agent's folder"

    def _module(self, module: str) -> Any:
        return self.files.module(module)


def lies_in(module: str, folder: Path) -> bool:
    """Whether a top-level module would be imported from `folder`, but not from what is installed there."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return False
    if spec is None:
        return False
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.has_location and spec.origin else [])]
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    found = [Path(place).resolve() for place in places]
    inside = [place for place in found if place.is_relative_to(folder.resolve())]
    return any(not any(place.is_relative_to(where) for where in installed) for place in inside)


def run_summarizer(summarizer: Summarizer, raw_result: Any) -> Summarized:
    """What `summarizer` makes of the result, right here. Whatever it raises is a problem in the answer."""
    problems: list[str] = []
    summary = _part(lambda: str(summarizer.summarize(raw_result)), "failed", problems)
    knowledge = _part(lambda: dict(summarizer.extract_knowledge(raw_result)), "gave no knowledge", problems)
    excerpts = _part(lambda: tuple(summarizer.extract_excerpts(raw_result)), "gave no excerpts", problems)
    return Summarized(summary or "", knowledge or {}, excerpts or (), tuple(problems))


def _optional(owner: Any, name: str, raw_result: Any) -> Any:
    method = getattr(owner, name, None)
    return method(raw_result) if method else None


def _part(make: Callable[[], Any], failure: str, problems: list[str]) -> Any:
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - foreign code: any failure of it means the fallback, and is told
        problems.append(f"{failure}: {type(error).__name__}")
        return None
