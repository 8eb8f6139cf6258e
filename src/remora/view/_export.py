"""One agent's page as one file: no server, no network, everything redacted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from remora.app import Project


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    turns: int
    size: int
    left_out: tuple[str, ...]
    """What did not fit, in sentences."""


def export_agent(project: Project, fragment: str, path: Path, *, max_bytes: int) -> Exported:
    """Write the page of one agent to `path`."""
    raise NotImplementedError
