"""Tool scripts (`.pym`, the specification's *grail*): load, check and run them within limits."""

from remora.scripts._agents import DEFINITION, Agent, agent_from, load_agent
from remora.scripts._check import CheckResult, check_files
from remora.scripts._declare import Input, external
from remora.scripts._parse import ExternalSpec, InputSpec
from remora.scripts._pool import DEFAULT, PERMISSIVE, STRICT, Limits, ScriptOutput, ScriptPool
from remora.scripts._problems import Problem
from remora.scripts._script import Script, load
from remora.scripts._survey import Survey
from remora.scripts._tools import LIMITS, SYSTEM_INPUTS, ScriptTools, load_scripts, tool_specs

__all__ = [
    "DEFAULT",
    "DEFINITION",
    "LIMITS",
    "PERMISSIVE",
    "STRICT",
    "SYSTEM_INPUTS",
    "Agent",
    "CheckResult",
    "ExternalSpec",
    "Input",
    "InputSpec",
    "Limits",
    "Problem",
    "Script",
    "ScriptOutput",
    "ScriptPool",
    "ScriptTools",
    "Survey",
    "agent_from",
    "check_files",
    "external",
    "load",
    "load_agent",
    "load_scripts",
    "tool_specs",
]
