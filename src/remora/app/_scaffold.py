"""Creates a settings file or a new agent from templates."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from pathlib import Path

from pydantic import BaseModel

from remora.config import CONFIG_FILE, NOT_FOR_REPOSITORIES, Config
from remora.errors import ConfigError

TEMPLATE = Path(__file__).with_name("new_agent")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def write_settings(root: Path) -> Path:
    """Write a `remora.yaml` with every setting as a comment. Raises `ConfigError` if there is one."""
    file = root / CONFIG_FILE
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(commented_settings())
    except FileExistsError as error:
        raise ConfigError(f"`{file}` already exists: nothing was written") from error
    return file


def write_agent(folder: Path, name: str) -> list[Path]:
    """Write the files of a new agent into `folder`. Raises `ConfigError` for an invalid name."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"`{name}` is not a valid agent name: expected lowercase letters, digits and `_`")
    files = []
    for template in sorted(path for path in TEMPLATE.rglob("*") if path.is_file()):
        target = folder / template.relative_to(TEMPLATE).with_suffix("")
        target = target.with_name(target.name.replace("NAME", name))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(template.read_text(encoding="utf-8").replace("NAME", name), encoding="utf-8")
        files.append(target)
    return files


def commented_settings() -> str:
    """All settings that a repository may set, each as a comment with its default and description."""
    lines = ["# Settings of Remora. Settings in comments have their defaults; `remora config` shows all values.", ""]
    descriptions = meanings(Config)
    for name, field in Config.model_fields.items():
        if name not in NOT_FOR_REPOSITORIES:
            default = field.get_default(call_default_factory=True)
            lines += _setting_lines(name, field.annotation, default, descriptions.get(name, ""))
    lines += [
        "",
        "# Only your own settings can set the model (`server`) and the isolation of project code (`sandbox`).",
    ]
    return "\n".join([*lines, "# See the configuration reference.", ""])


def _setting_lines(path: str, kind: object, default: object, description: str) -> list[str]:
    *blocks, name = path.split(".")
    indent = "  " * len(blocks)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(default, BaseModel):
        descriptions = meanings(kind)
        inner = [
            line
            for key, field in kind.model_fields.items()
            if f"{path}.{key}" not in NOT_FOR_REPOSITORIES
            for line in _setting_lines(
                f"{path}.{key}", field.annotation, getattr(default, key), descriptions.get(key, "")
            )
        ]
        return ["", f"# {indent}{name}:", *inner]
    comment = f"  # {description}" if description else ""
    return [f"# {indent}{name}: {_to_yaml(default)}{comment}"]


def meanings(kind: type) -> dict[str, str]:
    """The docstring of each field of a class, in one line."""
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body[0]
    pairs = itertools.pairwise(body.body if isinstance(body, ast.ClassDef) else [])
    return {
        field.target.id: " ".join(text.split())
        for field, after in pairs
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and (text := _docstring(after))
    }


def _docstring(statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _to_yaml(value: object) -> str:
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
