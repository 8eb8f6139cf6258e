"""The base types of summarizing. Imports only the standard library and `remora.snapshot`.

A summarizer that is not built in runs in a child process. That process loads only this file, `remora.snapshot` and the
summarizer.
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
    """Turns a raw result into a line and knowledge, for tools that return none."""

    @abstractmethod
    def summarize(self, raw_result: Any) -> str:
        """The outcome in one line."""

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        """Facts for later turns, by key."""
        return {}

    def extract_excerpts(self, raw_result: Any) -> Sequence[Any]:
        """Slices that the model must see verbatim: `Excerpt`s, or dicts of `label`, `text` and `start_line`."""
        return ()


@dataclass(frozen=True)
class Summarized:
    """The output of a summarizer."""

    summary: str = ""
    """If empty, a generic line is used."""
    knowledge: Mapping[str, Any] = field(default_factory=dict)
    excerpts: Sequence[Any] = ()
    problems: Sequence[str] = ()
    """Failures, each phrased to follow `Summarizer of TOOL`, such as `failed: ValueError`."""


class Imported(Summarizer):
    """A summarizer by its import path, `package.module:Name`. Imported on first use, in the process that uses it."""

    def __init__(self, path: str, outside: str = "") -> None:
        """`outside`: a folder that must not contain the module, such as a project without `remora trust`."""
        self.path = path
        self.outside = outside
        self._loaded: Any = None

    def load(self) -> Any:
        """Import the summarizer. Raises `ImportError` if the folder `outside` contains it."""
        if self._loaded is None:
            module, _, name = self.path.partition(":")
            target: Any = self._module(module)
            for part in name.split("."):
                target = getattr(target, part)
            self._loaded = target() if isinstance(target, type) else target
        return self._loaded

    def refused(self) -> str:
        """Why it may not be imported; empty if it may. Runs none of its code."""
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
        return dict(_call_optional(self.load(), "extract_knowledge", raw_result) or {})

    def extract_excerpts(self, raw_result: Any) -> Sequence[Any]:
        return tuple(_call_optional(self.load(), "extract_excerpts", raw_result) or ())


class OfFolder(Imported):
    """A summarizer in an agent's folder, `file.py:Name`. Runs from the snapshot that was read with the agent."""

    def __init__(self, path: str, files: Snapshot) -> None:
        super().__init__(path)
        self.files = files

    def refused(self) -> str:
        file = self.path.partition(":")[0]
        return "" if file in self.files.files else f"`{file}` is not a Python file in the agent's folder"

    def _module(self, module: str) -> Any:
        return self.files.module(module)


def lies_in(module: str, folder: Path) -> bool:
    """Whether a top-level module would be imported from `folder`, except from packages installed in it."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return False
    if spec is None:
        return False
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.has_location and spec.origin else [])]
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    resolved = [Path(place).resolve() for place in places]
    inside = [place for place in resolved if place.is_relative_to(folder.resolve())]
    return any(not any(place.is_relative_to(where) for where in installed) for place in inside)


def run_summarizer(summarizer: Summarizer, raw_result: Any) -> Summarized:
    """Run `summarizer` in this process. Its exceptions become `problems`."""
    problems: list[str] = []
    summary = _try(lambda: str(summarizer.summarize(raw_result)), "failed", problems)
    knowledge = _try(lambda: dict(summarizer.extract_knowledge(raw_result)), "gave no knowledge", problems)
    excerpts = _try(lambda: tuple(summarizer.extract_excerpts(raw_result)), "gave no excerpts", problems)
    return Summarized(summary or "", knowledge or {}, excerpts or (), tuple(problems))


def _call_optional(owner: Any, name: str, raw_result: Any) -> Any:
    method = getattr(owner, name, None)
    return method(raw_result) if method else None


def _try(make: Callable[[], Any], failure: str, problems: list[str]) -> Any:
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - foreign code: any failure is reported, and the fallback is used
        problems.append(f"{failure}: {type(error).__name__}")
        return None
