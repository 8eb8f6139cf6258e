"""Wires the parts together: the only room that names concrete ones. Every command of the CLI is one method of `App`.

Its parts are loaded when they are first asked for: those who only read streams need no more than the base install, and
a command that only says what it can do says it at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remora.app._agents import AgentSource, bundled_agents
    from remora.app._app import App, open_app, open_project
    from remora.app._deciding import EMBEDDED, NO_MODEL, Deciders, deciders
    from remora.app._functiongemma import FunctionGemmaRunner
    from remora.app._grail import GrailExecutor
    from remora.app._hub import hub_around
    from remora.app._importing import Imported, Imports
    from remora.app._instead import Instead
    from remora.app._local import JsonlEventEmitter, LocalTwoTrack
    from remora.app._models import (
        ensure_weights,
        list_models,
        needs_weights,
        pull_model,
        served_weights,
        weights_counter,
    )
    from remora.app._open_library import open_streams
    from remora.app._project import STATE_DIR, SystemClock, counter_of, default_state_dir, project_root
    from remora.app._reviewing import Accepted, AgentDiff, Rejected
    from remora.app._running import sandbox_name, sandbox_report
    from remora.app._setting_up import AgentRow
    from remora.app._settings import user_config_dir
    from remora.app._tools import ToolRun

__all__ = [
    "EMBEDDED",
    "NO_MODEL",
    "STATE_DIR",
    "Accepted",
    "AgentDiff",
    "AgentRow",
    "AgentSource",
    "App",
    "Deciders",
    "FunctionGemmaRunner",
    "GrailExecutor",
    "Imported",
    "Imports",
    "Instead",
    "JsonlEventEmitter",
    "LocalTwoTrack",
    "Rejected",
    "SystemClock",
    "ToolRun",
    "bundled_agents",
    "counter_of",
    "deciders",
    "default_state_dir",
    "ensure_weights",
    "hub_around",
    "list_models",
    "needs_weights",
    "open_app",
    "open_project",
    "open_streams",
    "project_root",
    "pull_model",
    "sandbox_name",
    "sandbox_report",
    "served_weights",
    "user_config_dir",
    "weights_counter",
]

_PLACES = {
    "_agents": "AgentSource bundled_agents",
    "_app": "App open_app open_project",
    "_deciding": "EMBEDDED NO_MODEL Deciders deciders",
    "_functiongemma": "FunctionGemmaRunner",
    "_grail": "GrailExecutor",
    "_hub": "hub_around",
    "_importing": "Imported Imports",
    "_instead": "Instead",
    "_local": "JsonlEventEmitter LocalTwoTrack",
    "_models": "ensure_weights list_models needs_weights pull_model served_weights weights_counter",
    "_open_library": "open_streams",
    "_project": "STATE_DIR SystemClock counter_of default_state_dir project_root",
    "_reviewing": "Accepted AgentDiff Rejected",
    "_running": "sandbox_name sandbox_report",
    "_setting_up": "AgentRow",
    "_settings": "user_config_dir",
    "_tools": "ToolRun",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"remora.app.{_MODULES[name]}"), name)
