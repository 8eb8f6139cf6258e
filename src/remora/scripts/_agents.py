"""Agents as they lie on the disk: a definition and its scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from remora.errors import ConfigError, DefinitionError
from remora.files import read_folder
from remora.scripts._modules import TOOLS
from remora.scripts._script import Script
from remora.scripts._tools import load_scripts
from remora.snapshot import Snapshot
from remora.subagent import SubagentDefinition, parse_definition

DEFINITION = "subagent.yaml"


@dataclass(frozen=True)
class Agent:
    """A definition with its scripts, all of it checked."""

    definition: SubagentDefinition
    scripts: Mapping[str, Script]
    files: Snapshot
    """All files of its folder, as they were read: everything that is loaded of the agent comes from here."""


def load_agent(folder: Path, name: str) -> Agent:
    """The agent in `folder/name`. Raises `ConfigError` that names the others, or every problem of this one."""
    known = sorted(path.parent.name for path in folder.glob(f"*/{DEFINITION}"))
    if name not in known:
        names = ", ".join(f"`{agent}`" for agent in known)
        raise ConfigError(f"There is no operation `{name}`: expected one of {names}")
    return agent_from(read_folder(folder / name, links=True))


@lru_cache(maxsize=32)
def agent_from(files: Snapshot) -> Agent:
    """The agent that these files make. Raises `ConfigError` with every problem.

    Cached by content: planning a run and running it parse an agent once.
    """
    file = files.folder / DEFINITION
    try:
        text = files.files[DEFINITION].decode("utf-8-sig")
    except KeyError as error:
        raise ConfigError(f"`{files.folder}` holds no agent: expected a `{DEFINITION}`") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(file, ["not UTF-8: expected YAML"]) from error
    definition = parse_definition(text, file)
    return Agent(definition, load_scripts(files.folder / TOOLS, definition, files.files), files)
