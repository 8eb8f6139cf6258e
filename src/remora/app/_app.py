"""The app itself: every command of the CLI is one method of `App`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.app._hub import Hubs
from remora.app._importing import Importing
from remora.app._project import default_state_dir, environment_secrets, project_root
from remora.app._reading import Reading
from remora.app._reviewing import Reviewing
from remora.app._setting_up import SettingUp
from remora.app._settings import read_settings
from remora.app._tools import Authoring
from remora.app._watching import Watching


class App(Watching, SettingUp, Reading, Importing, Reviewing, Authoring, Hubs):
    """A project, opened with its settings."""


def open_app(start: Path, *, state_dir: Path | None = None, flags: Mapping[str, Any] | None = None) -> App:
    """The project around `start`. `flags` are settings by path, such as `runner.max_turns`, above all others."""
    root = project_root(start)
    state = (state_dir or default_state_dir(root)).absolute()
    settings = read_settings(root, os.environ, flags or {})
    return App(root, state, settings.config, secrets=environment_secrets(os.environ), origins=settings.origins)


def open_project(start: Path | str = ".", settings: Mapping[str, Any] | None = None) -> App:
    """The project around `start`, for programs: plan, run, resume, review and read, all that the command line can do.

    `settings` are values by path above all others: `{"server.server": "ollama", "server.model": "qwen3:4b"}`.
    """
    return open_app(Path(start), flags=settings)
