"""Opens a project: finds its root and state folder, and reads its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.app._project import Project, default_state_dir, environment_secrets, project_root
from remora.app._settings import read_settings


def open_project(
    start: Path | str = ".", settings: Mapping[str, Any] | None = None, *, state_dir: Path | None = None
) -> Project:
    """Open the project that contains `start`, like the command line does.

    `settings` override all other settings. Keys are paths: `{"server.server": "ollama", "server.model": "qwen3:4b"}`.
    """
    root = project_root(Path(start))
    state = (state_dir or default_state_dir(root)).absolute()
    merged = read_settings(root, os.environ, settings or {})
    secrets = environment_secrets(os.environ, merged.config)
    return Project(root, state, merged.config, secrets=secrets, origins=merged.origins)
