"""Wires the parts together: the only room that names concrete ones. Every command of the CLI is one method of `App`.

Parts are imported where they are first needed, so that those who only read streams need no more than the base install.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.app._agents import AgentSource, bundled_agents
from remora.app._deciding import EMBEDDED, NO_MODEL
from remora.app._functiongemma import FunctionGemmaRunner
from remora.app._grail import GrailExecutor
from remora.app._importing import Imported, Importing, Imports
from remora.app._local import JsonlEventEmitter, LocalTwoTrack
from remora.app._models import ensure_weights, list_models, needs_weights, pull_model
from remora.app._project import (
    STATE_DIR,
    SystemClock,
    counter_of,
    default_state_dir,
    environment_secrets,
    project_root,
)
from remora.app._reading import Reading
from remora.app._reviewing import Accepted, AgentDiff, Rejected, Reviewing
from remora.app._running import sandbox_name, sandbox_report
from remora.app._setting_up import AgentRow, SettingUp
from remora.app._settings import read_settings, user_config_dir
from remora.app._tools import Authoring, ToolRun
from remora.app._watching import Watching

__all__ = [
    "EMBEDDED",
    "NO_MODEL",
    "STATE_DIR",
    "Accepted",
    "AgentDiff",
    "AgentRow",
    "AgentSource",
    "App",
    "FunctionGemmaRunner",
    "GrailExecutor",
    "Imported",
    "Imports",
    "JsonlEventEmitter",
    "LocalTwoTrack",
    "Rejected",
    "SystemClock",
    "ToolRun",
    "bundled_agents",
    "counter_of",
    "default_state_dir",
    "ensure_weights",
    "list_models",
    "needs_weights",
    "open_app",
    "open_project",
    "project_root",
    "pull_model",
    "sandbox_name",
    "sandbox_report",
    "user_config_dir",
]


class App(Watching, SettingUp, Reading, Importing, Reviewing, Authoring):
    """A project, opened with its settings."""


def open_app(start: Path, *, state_dir: Path | None = None, flags: Mapping[str, Any] | None = None) -> App:
    """The project around `start`. `flags` are settings by path, such as `runner.max_turns`, above all others."""
    root = project_root(start)
    state = (state_dir or default_state_dir(root)).absolute()
    settings = read_settings(root, os.environ, flags or {})
    app = App(root, state, settings.config, secrets=environment_secrets(os.environ), origins=settings.origins)
    app.settle()
    return app


def open_project(start: Path | str = ".", settings: Mapping[str, Any] | None = None) -> App:
    """The project around `start`, for programs: plan, run, resume, review and read, all that the command line can do.

    `settings` are values by path above all others: `{"server.server": "ollama", "server.model": "qwen3:4b"}`.
    """
    return open_app(Path(start), flags=settings)
