"""Writes what a project begins with: a settings file, and an agent of its own."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from pathlib import Path

from pydantic import BaseModel

from remora.config import CONFIG_FILE, NOT_FOR_REPOSITORIES, Config, MemoryConfig
from remora.errors import ConfigError

TEMPLATE = Path(__file__).with_name("new_agent")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def write_settings(root: Path) -> Path:
    """Write a `remora.yaml` with every setting as a comment. Raises `ConfigError` where there is one."""
    file = root / CONFIG_FILE
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(commented())
    except FileExistsError as error:
        raise ConfigError(f"`{file}` is there already: nothing was written") from error
    return file


def write_agent(folder: Path, name: str) -> list[Path]:
    """Write the files of a new agent into `folder`. Raises `ConfigError` for what is no name of an agent."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"`{name}` is not a name for an agent: expected small letters, digits and `_`")
    files = []
    for template in sorted(path for path in TEMPLATE.rglob("*") if path.is_file()):
        target = folder / template.relative_to(TEMPLATE).with_suffix("")
        target = target.with_name(target.name.replace("NAME", name))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(template.read_text(encoding="utf-8").replace("NAME", name), encoding="utf-8")
        files.append(target)
    return files


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
