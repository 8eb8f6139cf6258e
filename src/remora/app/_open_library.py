"""Opening the streams of a project, for commands that only read them. Loads nothing that runs agents."""

from __future__ import annotations

import os
from pathlib import Path

from remora.app._project import Project, default_state_dir, project_root
from remora.app._settings import read_settings


def open_streams(start: Path, *, state_dir: Path | None = None) -> Project:
    """The project around `start` with its settings: state folder, library and blobs. Raises `ConfigError`."""
    root = project_root(start)
    settings = read_settings(root, os.environ, {})
    state = (state_dir or default_state_dir(root)).absolute()
    return Project(root, state, settings.config, origins=settings.origins)
