"""Wires the parts together. No other package imports concrete implementations. Programs and the CLI use a `Project`.

Names are imported on first use. So reading streams needs only the base install, and `--help` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora._lazy import lazy_names

if TYPE_CHECKING:
    from remora.app._agents import AgentRow, Agents, AgentSource, bundled_agents
    from remora.app._answers import Answers
    from remora.app._catalogue import (
        ModelRow,
        catalogue,
        ensure_weights,
        list_models,
        needs_weights,
        pull_model,
        served_weights,
    )
    from remora.app._deciding import EMBEDDED, NO_MODEL, Deciders, deciders
    from remora.app._escalating import Answer
    from remora.app._forking import ForkPlan
    from remora.app._functiongemma import FunctionGemmaRunner
    from remora.app._grail import GrailExecutor
    from remora.app._hub import hub_around
    from remora.app._importing import Imported, Imports
    from remora.app._ladder import LADDER_START, missing_weights
    from remora.app._merged_diff import MergedDiff
    from remora.app._models import weights_counter
    from remora.app._naming import Named
    from remora.app._now import AgentNow, StoreNow, agents_now
    from remora.app._open import STORE_SETTING, open_project
    from remora.app._overrides import RunOverrides
    from remora.app._project import STATE_DIR, Project, SystemClock, counter_of, default_state_dir, project_root
    from remora.app._review import Accepted, AgentDiff, Rejected
    from remora.app._runs import sandbox_name, sandbox_report
    from remora.app._settings import user_config_dir
    from remora.app._speed import ModelHere, best_fit, free_memory, measure_models, models_here
    from remora.app._stores import copy_store, describe_store, make_store, reindex_store
    from remora.app._tools import ToolRun
    from remora.app._viewing import Brief, OutputWindow, Prompt, Sightings, TurnEvents, Viewing, outputs_of
    from remora.app._what_if import OtherRules, WhatIfRuns
    from remora.app._wiring import JsonlEventEmitter, latest_stream, local_parent, local_wiring
    from remora.otlp import send_spans

__all__ = [
    "EMBEDDED",
    "LADDER_START",
    "NO_MODEL",
    "STATE_DIR",
    "STORE_SETTING",
    "Accepted",
    "AgentDiff",
    "AgentNow",
    "AgentRow",
    "AgentSource",
    "Agents",
    "Answer",
    "Answers",
    "Brief",
    "Deciders",
    "ForkPlan",
    "FunctionGemmaRunner",
    "GrailExecutor",
    "Imported",
    "Imports",
    "JsonlEventEmitter",
    "MergedDiff",
    "ModelHere",
    "ModelRow",
    "Named",
    "OtherRules",
    "OutputWindow",
    "Project",
    "Prompt",
    "Rejected",
    "RunOverrides",
    "Sightings",
    "StoreNow",
    "SystemClock",
    "ToolRun",
    "TurnEvents",
    "Viewing",
    "WhatIfRuns",
    "agents_now",
    "best_fit",
    "bundled_agents",
    "catalogue",
    "copy_store",
    "counter_of",
    "deciders",
    "default_state_dir",
    "describe_store",
    "ensure_weights",
    "free_memory",
    "hub_around",
    "latest_stream",
    "list_models",
    "local_parent",
    "local_wiring",
    "make_store",
    "measure_models",
    "missing_weights",
    "models_here",
    "needs_weights",
    "open_project",
    "outputs_of",
    "project_root",
    "pull_model",
    "reindex_store",
    "sandbox_name",
    "sandbox_report",
    "send_spans",
    "served_weights",
    "user_config_dir",
    "weights_counter",
]

_MODULES = {
    "_agents": "AgentRow Agents AgentSource bundled_agents",
    "_answers": "Answers",
    "_now": "AgentNow StoreNow agents_now",
    "_open": "STORE_SETTING open_project",
    "_deciding": "EMBEDDED NO_MODEL Deciders deciders",
    "_escalating": "Answer",
    "_forking": "ForkPlan",
    "_functiongemma": "FunctionGemmaRunner",
    "_grail": "GrailExecutor",
    "_hub": "hub_around",
    "_importing": "Imported Imports",
    "_ladder": "LADDER_START missing_weights",
    "_merged_diff": "MergedDiff",
    "_overrides": "RunOverrides",
    "_catalogue": "ModelRow catalogue ensure_weights list_models needs_weights pull_model served_weights",
    "_models": "weights_counter",
    "_naming": "Named",
    "_project": "STATE_DIR Project SystemClock counter_of default_state_dir project_root",
    "_review": "Accepted AgentDiff Rejected",
    "_runs": "sandbox_name sandbox_report",
    "_stores": "copy_store describe_store make_store reindex_store",
    "_settings": "user_config_dir",
    "_speed": "ModelHere best_fit free_memory measure_models models_here",
    "_tools": "ToolRun",
    "_viewing": "Brief OutputWindow Prompt Sightings TurnEvents Viewing outputs_of",
    "_what_if": "OtherRules WhatIfRuns",
    "_wiring": "JsonlEventEmitter latest_stream local_parent local_wiring",
    "remora.otlp": "send_spans",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
