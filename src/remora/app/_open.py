"""Opens a project: finds its root and state folder, and reads its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.app._project import Project, default_state_dir, environment_secrets, project_root
from remora.app._settings import read_settings
from remora.trace import parse_address

STORE_SETTING = "runner.memory.trace_store"


def open_project(
    start: Path | str = ".", settings: Mapping[str, Any] | None = None, *, state_dir: Path | str | None = None
) -> Project:
    """Open the project that contains `start`, like the command line does.

    `settings` override all other settings. Keys are paths: `{"server.server": "ollama", "server.model": "qwen3:4b"}`.
    `state_dir` is the state folder, or the URL of a Postgres store.
    """
    root = project_root(Path(start))
    settings = dict(settings or {})
    if isinstance(state_dir, str) and "://" in state_dir:
        parse_address(state_dir)  # a wrong one is said by itself, not as a setting
        settings[STORE_SETTING], state_dir = state_dir, None
    state = (Path(state_dir) if state_dir else default_state_dir(root)).absolute()
    merged = read_settings(root, os.environ, settings)
    secrets = environment_secrets(os.environ, merged.config)
    return Project(root, state, merged.config, secrets=secrets, origins=merged.origins)
