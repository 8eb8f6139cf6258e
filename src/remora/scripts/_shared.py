"""Code that a script takes in from files beside it: one text runs, and every line is still found where it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Beside = Callable[[str], str | None]
"""The text of a module that lies beside the script; None for one that does not."""


@dataclass(frozen=True)
class Shared:
    """Code that a script takes in from a file beside it."""

    file: str
    source: str


def joined(shared: Sequence[Shared], source: str) -> str:
    """One text that runs: what is taken in, then the script."""
    return "\n".join([*(part.source for part in shared), source])


def place_of(line: int, file: str, shared: Sequence[Shared]) -> tuple[str, int]:
    """The file and line that a line of the joined text stands in."""
    for part in shared:
        lines = part.source.count("\n") + 1
        if line <= lines:
            return part.file, line
        line -= lines
    return file, line
