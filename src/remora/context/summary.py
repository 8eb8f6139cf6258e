"""The words of summarizing: who makes a summary, and what one holds. Only the standard library is loaded.

A summarizer that is not ours runs in a child process, which loads this file and the summarizer, and nothing else of
Remora.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


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

    def __init__(self, path: str) -> None:
        self.path = path
        self._loaded: Any = None

    def load(self) -> Any:
        """The summarizer itself."""
        if self._loaded is None:
            module, _, name = self.path.partition(":")
            found: Any = import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            self._loaded = found() if isinstance(found, type) else found
        return self._loaded

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_loaded": None}

    def summarize(self, raw_result: Any) -> str:
        return str(self.load().summarize(raw_result))

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return dict(_optional(self.load(), "extract_knowledge", raw_result) or {})

    def extract_excerpts(self, raw_result: Any) -> Sequence[Any]:
        return tuple(_optional(self.load(), "extract_excerpts", raw_result) or ())


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
