"""Agents that can be run: those that ship with Remora, and the project's own, trusted or not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson

from remora.app._functions import load_functions
from remora.app._project import Project
from remora.app._settings import user_config_dir
from remora.context.summarizers import Summarizer, SummarizerRegistry, is_built_in
from remora.errors import ConfigError, DefinitionError
from remora.subagent import SubagentDefinition
from remora.tools import FunctionTool

if TYPE_CHECKING:
    from remora.scripts import Agent

DEFINITION = "subagent.yaml"
TRUSTED_FILE = "trusted.json"
_CACHES = frozenset({"__pycache__", ".pytest_cache"})


@dataclass(frozen=True)
class AgentSource:
    """Where an agent comes from."""

    name: str
    folder: Path
    origin: Literal["bundled", "project"]
    trusted: bool
    """Whether the user has said that this very content may do what a bundled agent may."""


class Agents(Project):
    """Finds agents and loads them, each checked as far as it is trusted."""

    @cached_property
    def summarizers(self) -> SummarizerRegistry:
        """By the names that agent definitions use."""
        return SummarizerRegistry(_installed_summarizers)

    def agent_sources(self) -> dict[str, AgentSource]:
        """All agents by name; the project's own never stand in for a bundled one."""
        own = {source.name: source for source in self._own_sources()}
        bundled = {path.parent.name: path.parent for path in sorted(bundled_agents().glob(f"*/{DEFINITION}"))}
        return own | {name: AgentSource(name, folder, "bundled", True) for name, folder in bundled.items()}

    def load_agents(self, operations: Sequence[str]) -> dict[str, Agent]:
        """The agents of these names. Raises `ConfigError` for one that is unknown, unsound, or not trusted enough."""
        sources = self.agent_sources()
        unknown = [name for name in operations if name not in sources]
        if unknown:
            known = ", ".join(f"`{name}`" for name in sources)
            raise ConfigError(f"There is no operation `{unknown[0]}`: expected one of {known}")
        return {name: self._loaded(sources[name]) for name in operations}

    def trust(self, folder: Path) -> list[AgentSource]:
        """Keep the digest of every agent at or below `folder`, as it is now, among what the user trusts."""
        folder = folder.resolve()
        found = sorted(path.parent for path in (*folder.glob(DEFINITION), *folder.glob(f"*/{DEFINITION}")))
        if not found:
            raise ConfigError(f"`{folder}` holds no agent: expected a `{DEFINITION}` there, or one folder below")
        trusted = _read_trusted() | {str(path): agent_digest(path) for path in found}
        _write_trusted(trusted)
        return [AgentSource(path.name, path, "project", True) for path in found]

    def functions(self, definition: SubagentDefinition) -> dict[str, FunctionTool]:
        """The agent's tools that are Python functions; loading it has made sure that it is trusted."""
        if not any(tool.python for tool in definition.tools):
            return {}
        return load_functions(self.agent_sources()[definition.name].folder, definition)

    def _own_sources(self) -> list[AgentSource]:
        folder = (self.root / self.config.agents_dir).resolve()
        if not folder.is_dir() or folder == bundled_agents().resolve():
            return []
        trusted = _read_trusted()
        found = [path.parent for path in sorted(folder.glob(f"*/{DEFINITION}"))]
        return [
            AgentSource(path.name, path, "project", trusted.get(str(path.resolve())) == agent_digest(path))
            for path in found
        ]

    def _loaded(self, source: AgentSource) -> Agent:
        from remora.scripts import load_agent

        agent = load_agent(source.folder.parent, source.name)
        if not source.trusted and (places := agent.definition.needs_trust()):
            raise DefinitionError(
                source.folder / DEFINITION,
                [f"{place}: needs trust; read the agent, then `remora trust {source.folder}`" for place in places],
            )
        self._check_summarizers(agent.definition)
        return agent

    def _summarizers_of(self, definition: SubagentDefinition) -> dict[str, Summarizer]:
        return self.summarizers.for_agent(definition.summarizers, self.config.runner.memory.summarizer_mode)

    def _check_summarizers(self, definition: SubagentDefinition) -> None:
        """Raises `ConfigError` for a summarizer that is not known, or that the guard could never run."""
        from remora.sandbox import SummaryChild

        for tool, summarizer in self._summarizers_of(definition).items():
            if not is_built_in(summarizer):
                SummaryChild().check(tool, summarizer)


def agent_digest(folder: Path) -> str:
    """One digest over the names and bytes of all files of an agent. A link in it has none: it could change unseen."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise ConfigError(f"`{path}` is a link: an agent is plain files, so that it can be trusted as it is")
        if path.is_file() and not _CACHES.intersection(path.parts):
            name = path.relative_to(folder).as_posix().encode(errors="surrogateescape")
            data = path.read_bytes()
            whole.update(b"%d:%b%d:" % (len(name), name, len(data)) + data)
    return f"sha256:{whole.hexdigest()}"


def bundled_agents() -> Path:
    """Where the agents that ship with Remora lie: in the wheel, or beside the sources of a checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "agents"
    return shipped if shipped.is_dir() else package.parents[1] / "agents"


def _read_trusted() -> dict[str, str]:
    file = user_config_dir(os.environ) / TRUSTED_FILE
    try:
        found = orjson.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ConfigError(f"{file}: not JSON: expected digests by folder", hint="Delete it, and trust again") from error
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def _write_trusted(trusted: dict[str, str]) -> None:
    file = user_config_dir(os.environ) / TRUSTED_FILE
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_bytes(orjson.dumps(trusted, option=orjson.OPT_INDENT_2) + b"\n")
    new.replace(file)


def _installed_summarizers() -> dict[str, str]:
    from remora.sandbox import installed_summarizers

    return installed_summarizers()
