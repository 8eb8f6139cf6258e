"""Agents as they lie on the disk: a definition and its scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from remora.errors import ConfigError
from remora.scripts._script import Script
from remora.scripts._tools import load_scripts
from remora.subagent import SubagentDefinition, parse_definition


@dataclass(frozen=True)
class Agent:
    """A definition with its scripts, all of it checked."""

    definition: SubagentDefinition
    scripts: Mapping[str, Script]


def load_agent(folder: Path, name: str) -> Agent:
    """The agent in `folder/name`. Raises `ConfigError` that names the others, or every problem of this one."""
    known = sorted(path.parent.name for path in folder.glob("*/subagent.yaml"))
    if name not in known:
        names = ", ".join(f"`{agent}`" for agent in known)
        raise ConfigError(f"There is no operation `{name}`: expected one of {names}")
    file = folder / name / "subagent.yaml"
    definition = parse_definition(file.read_text(encoding="utf-8"), file)
    return Agent(definition, load_scripts(folder / name / "tools", definition))
