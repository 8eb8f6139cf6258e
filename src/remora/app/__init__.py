"""Wires the parts together: the only room that names concrete ones. Every command of the CLI is one method of `App`.

Parts are imported where they are first needed, so that those who only read streams need no more than the base install.
"""

from __future__ import annotations

import os
from pathlib import Path

from remora.app._importing import Imported, Importing, Imports
from remora.app._local import JsonlEventEmitter, LocalTwoTrack
from remora.app._project import (
    STATE_DIR,
    SystemClock,
    counter_of,
    default_state_dir,
    environment_secrets,
    project_root,
    read_config,
)
from remora.app._reading import Reading
from remora.app._reviewing import Accepted, AgentDiff, Reviewing
from remora.app._running import POLICIES, PolicyName, Running, bundled_agents, sandbox_name

__all__ = [
    "POLICIES",
    "STATE_DIR",
    "Accepted",
    "AgentDiff",
    "App",
    "Imported",
    "Imports",
    "JsonlEventEmitter",
    "LocalTwoTrack",
    "PolicyName",
    "SystemClock",
    "bundled_agents",
    "counter_of",
    "default_state_dir",
    "open_app",
    "project_root",
    "sandbox_name",
]


class App(Running, Reading, Importing, Reviewing):
    """A project, opened with its settings."""


def open_app(start: Path, *, state_dir: Path | None = None) -> App:
    """The project around `start`, with the settings of its `remora.yaml`."""
    root = project_root(start)
    state = (state_dir or default_state_dir(root)).absolute()
    return App(root, state, read_config(root), secrets=environment_secrets(os.environ))
