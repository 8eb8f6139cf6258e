"""A problem in a script, with its position."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One problem. Lines and columns count from 1, columns in characters."""

    line: int
    column: int
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.what}" + (f"; {self.hint}" if self.hint else "")
