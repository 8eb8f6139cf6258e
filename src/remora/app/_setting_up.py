"""Beginning: a settings file, an agent of one's own, and what agents there are."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from remora.app._agents import Agents
from remora.config import CONFIG_FILE, NOT_FOR_REPOSITORIES, Config, MemoryConfig
from remora.errors import ConfigError

TEMPLATE = Path(__file__).with_name("new_agent")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class AgentRow:
    """An agent as a list shows it."""

    name: str
    origin: str
    targets: str
    tools: str
    description: str


class SettingUp(Agents):
    """Begins what a project of its own needs."""

    def described_agents(self) -> list[AgentRow]:
        """All agents that can be named with `-o`; one that cannot be loaded says why."""
        return [self._described(name) for name in sorted(self.agent_sources())]

    def init(self) -> Path:
        """A `remora.yaml` in which every setting stands as a comment. Raises `ConfigError` where there is one."""
        file = self.root / CONFIG_FILE
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(commented())
        except FileExistsError as error:
            raise ConfigError(f"`{file}` is there already: nothing was written") from error
        return file

    def new_agent(self, name: str) -> tuple[Path, list[Path]]:
        """The folder of a new agent and its files. Raises `ConfigError` for a name that is taken or is none."""
        if not _NAME.fullmatch(name):
            raise ConfigError(f"`{name}` is not a name for an agent: expected small letters, digits and `_`")
        if name in self.agent_sources():
            raise ConfigError(f"There is an agent `{name}` already: expected another name")
        folder = self.agents_folder() / name
        files = []
        for template in sorted(path for path in TEMPLATE.rglob("*") if path.is_file()):
            target = folder / template.relative_to(TEMPLATE).with_suffix("")
            target = target.with_name(target.name.replace("NAME", name))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(template.read_text(encoding="utf-8").replace("NAME", name), encoding="utf-8")
            files.append(target)
        return folder, files

    def _described(self, name: str) -> AgentRow:
        source = self.agent_sources()[name]
        origin: str = source.origin
        try:
            origin = source.origin if self.is_trusted(source) else f"{source.origin}, not trusted"
            definition = self.load_agents([name])[name].definition
        except ConfigError as error:
            return AgentRow(name, origin, "", "", f"cannot be used: {error.message}")
        targets = ", ".join(kind.value for kind in definition.targets)
        tools = ", ".join(tool.name for tool in definition.tools)
        return AgentRow(name, origin, targets, tools, definition.description)


def commented() -> str:
    """All settings that a repository may have, each as a comment with its default and its meaning."""
    lines = ["# Settings of Remora. What is a comment has its default; `remora config` shows what counts.", ""]
    told = meanings(Config)
    for name, field in Config.model_fields.items():
        if name not in NOT_FOR_REPOSITORIES:
            default = field.get_default(call_default_factory=True)
            lines += _lines(name, field.annotation, default, "", told.get(name, ""))
    lines += [
        "",
        "# Who decides (`server`) and how project code may run (`sandbox`) are set in your own settings only:",
    ]
    return "\n".join([*lines, "# see the reference of the configuration.", ""])


def _lines(name: str, kind: object, default: object, indent: str, meaning: str = "") -> list[str]:
    if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(default, BaseModel):
        told = meanings(kind)
        inner = [
            line
            for key, field in kind.model_fields.items()
            if (kind, key) != (MemoryConfig, "enabled")  # for the user alone, see `remora.repository`
            for line in _lines(key, field.annotation, getattr(default, key), indent + "  ", told.get(key, ""))
        ]
        return ["", f"# {indent}{name}:", *inner]
    comment = f"  # {meaning}" if meaning else ""
    return [f"# {indent}{name}: {_yaml(default)}{comment}"]


def meanings(kind: type) -> dict[str, str]:
    """What stands beneath each field of a class in its source, in one line."""
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body[0]
    pairs = itertools.pairwise(body.body if isinstance(body, ast.ClassDef) else [])
    return {
        field.target.id: " ".join(text.split())
        for field, beneath in pairs
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and (text := _text(beneath))
    }


def _text(statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _yaml(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return "[" + ", ".join(map(str, value)) + "]"
        case dict():
            return "{}"
    return str(value)
