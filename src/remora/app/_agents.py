"""Finds and loads agents: those that ship with Remora, and the project's own, trusted or not.

Each folder is read once. Trust is checked against the digest of the same bytes that are loaded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson

from remora.app._functions import load_functions
from remora.app._project import Project
from remora.app._settings import check_inside, read_own, user_config_dir, write_own
from remora.config import CONFIG_FILE, TABLE_FILE, Config
from remora.context.summarizers import Imported, Summarizer, SummarizerRegistry, is_built_in
from remora.errors import ConfigError, DefinitionError
from remora.files import read_folder
from remora.snapshot import Snapshot
from remora.subagent import SubagentDefinition
from remora.tools import FunctionTool

if TYPE_CHECKING:
    from remora.scripts import Agent

DEFINITION = "subagent.yaml"
TRUSTED_FILE = "trusted.json"
MAX_TRUSTED = 16 * 1024 * 1024


@dataclass(frozen=True)
class AgentSource:
    """Where an agent comes from."""

    name: str
    folder: Path
    origin: Literal["bundled", "project"]

    def read(self) -> Snapshot:
        """Read its files. Raises `ConfigError` for links, except in a bundled agent, and for other special files."""
        return read_folder(self.folder, links=self.origin == "bundled")


@dataclass(frozen=True)
class AgentRow:
    """One row of `remora agents`."""

    name: str
    origin: str
    targets: str
    tools: str
    description: str


class Agents:
    """The agents of a project: finds, loads, trusts and creates them."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @cached_property
    def summarizers(self) -> SummarizerRegistry:
        """The summarizers by the names that agent definitions use."""
        return SummarizerRegistry(_installed_summarizers, outside=str(self._project.root))

    def sources(self) -> dict[str, AgentSource]:
        """All agents by name. A project's agent never replaces a bundled one."""
        own = {source.name: source for source in self._own_sources()}
        bundled = {path.parent.name: path.parent for path in sorted(bundled_agents().glob(f"*/{DEFINITION}"))}
        return own | {name: AgentSource(name, folder, "bundled") for name, folder in bundled.items()}

    def load(self, operations: Sequence[str]) -> dict[str, Agent]:
        """Load agents by name. Raises `ConfigError` for one that is unknown, invalid, or needs trust that it lacks."""
        sources = self.sources()
        unknown = [name for name in operations if name not in sources]
        if unknown:
            known = ", ".join(f"`{name}`" for name in sources)
            raise ConfigError(f"There is no operation `{unknown[0]}`: expected one of {known}")
        return {name: self._load(sources[name]) for name in operations}

    def trust(self, folder: Path) -> list[AgentSource]:
        """Trust every agent at or below `folder` as it is now: record its digest in the user's configuration."""
        folder = folder.resolve()
        found = sorted(path.parent for path in (*folder.glob(DEFINITION), *folder.glob(f"*/{DEFINITION}")))
        if not found:
            raise ConfigError(f"`{folder}` holds no agent: expected a `{DEFINITION}` there, or one folder below")
        sources = [AgentSource(path.name, path, "project") for path in found]
        _write_trusted(_read_trusted() | {str(source.folder): source.read().digest for source in sources})
        return sources

    def is_trusted(self, source: AgentSource) -> bool:
        """Whether the agent is bundled, or the user trusts it in its current version."""
        return source.origin == "bundled" or self._is_trusted(source.read())

    def _is_trusted(self, files: Snapshot) -> bool:
        known = files.digest in self._project.trusted
        return known or _read_trusted().get(str(files.folder.resolve())) == files.digest

    def describe(self) -> list[AgentRow]:
        """List all agents that `-o` accepts. The row of an agent that cannot be loaded gives the reason."""
        return [self._describe(name, source) for name, source in sorted(self.sources().items())]

    def new(self, name: str) -> tuple[Path, list[Path]]:
        """Create an agent and return its folder and files. Raises `ConfigError` for a taken or invalid name."""
        from remora.app._scaffold import write_agent

        if name in self.sources():
            raise ConfigError(f"There is already an agent `{name}`: expected another name")
        folder = self.folder() / name
        return folder, write_agent(folder, name)

    def functions(self, agent: Agent) -> dict[str, FunctionTool]:
        """Load the agent's tools that are Python functions. `load` has checked that the agent is trusted."""
        return load_functions(agent.files, agent.definition)

    def folder(self) -> Path:
        """The folder of the project's agents. Raises `ConfigError` if it is outside and the user did not set it."""
        return self.folder_of("agents_dir", self._project.config.agents_dir)

    def folder_of(self, key: str, value: Path) -> Path:
        """The folder that a setting names. It must be inside the project unless the user set it."""
        origin = self._project.settings.origins.get(key)
        by_repository = origin in (CONFIG_FILE, TABLE_FILE) or (origin is None and value == Config().agents_dir)
        return check_inside(self._project.root, value, key) if by_repository else self._project.root / value

    def _describe(self, name: str, source: AgentSource) -> AgentRow:
        origin: str = source.origin
        try:
            origin = source.origin if self.is_trusted(source) else f"{source.origin}, not trusted"
            definition = self.load([name])[name].definition
        except ConfigError as error:
            return AgentRow(name, origin, "", "", f"cannot be used: {error.message}")
        targets = ", ".join(kind.value for kind in definition.targets)
        tools = ", ".join(tool.name for tool in definition.tools)
        return AgentRow(name, origin, targets, tools, definition.description)

    def _own_sources(self) -> list[AgentSource]:
        folder = self.folder()
        if not folder.is_dir() or folder.resolve() == bundled_agents().resolve():
            return []
        return [
            AgentSource(path.parent.name, path.parent, "project") for path in sorted(folder.glob(f"*/{DEFINITION}"))
        ]

    def _load(self, source: AgentSource) -> Agent:
        from remora.scripts import agent_from

        files = source.read()
        agent = agent_from(files)
        if agent.definition.name != source.name:
            problem = f"$.name: `{agent.definition.name}`: expected `{source.name}`, the name of its folder"
            raise DefinitionError(source.folder / DEFINITION, [problem])
        if (places := agent.definition.needs_trust()) and source.origin == "project" and not self._is_trusted(files):
            raise DefinitionError(
                source.folder / DEFINITION,
                [f"{place}: needs trust; read the agent, then `remora trust {source.folder}`" for place in places],
            )
        self._check_summarizers(agent)
        return agent

    def summarizers_of(self, definition: SubagentDefinition, files: Snapshot) -> dict[str, Summarizer]:
        """The summarizers of an agent by tool."""
        mode = self._project.config.runner.memory.summarizer_mode
        return self.summarizers.for_agent(definition.summarizers, mode, files)

    def _check_summarizers(self, agent: Agent) -> None:
        """Raises `ConfigError` for a summarizer that is unknown, or that the child process cannot run."""
        from remora.sandbox import SummaryChild

        for tool, summarizer in self.summarizers_of(agent.definition, agent.files).items():
            if isinstance(summarizer, Imported) and (refused := summarizer.refused()):
                raise DefinitionError(
                    agent.files.folder / DEFINITION,
                    [f"$.summarizers.{tool}: {refused}"],
                    hint="Put it into a file of the agent's folder and name it `file.py:Name`",
                )
            if not is_built_in(summarizer):
                SummaryChild().check(tool, summarizer)


def bundled_agents() -> Path:
    """The folder of the bundled agents: in the wheel, or beside the sources of a checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "agents"
    return shipped if shipped.is_dir() else package.parents[1] / "agents"


def _read_trusted() -> dict[str, str]:
    """Read the trusted digests by folder. Raises `ConfigError` if someone else can write the file."""
    file = user_config_dir(os.environ) / TRUSTED_FILE
    data = read_own(file, MAX_TRUSTED)
    if data is None:
        return {}
    try:
        found = orjson.loads(data)
    except ValueError as error:
        raise ConfigError(
            f"{file}: not JSON: expected digests by folder", hint="Delete it and run `remora trust` again"
        ) from error
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def _write_trusted(trusted: dict[str, str]) -> None:
    file = user_config_dir(os.environ) / TRUSTED_FILE
    write_own(file, orjson.dumps(trusted, option=orjson.OPT_INDENT_2) + b"\n")


def _installed_summarizers() -> dict[str, str]:
    from remora.sandbox import installed_summarizers

    return installed_summarizers()
