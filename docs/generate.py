"""Generates parts of the reference pages from the code. `cog` runs it; `cog --check` fails if a page is out of date."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from remora import errors
from remora.app._scaffold import meanings
from remora.config import Config, EscalationRules, OperationConfig, RungConfig
from remora.events import EVENT_TYPES, UNRECORDED, BlobRef, Call, CandidateAction, Event, FileChange
from remora.mcp_servers import McpServer, McpServerConfig
from remora.nodes import NodeType
from remora.repository import rule_for
from remora.subagent import CandidateRule, CheckRule, CommandRule, SubagentDefinition, ToolEntry


def event_list() -> str:
    """Every event type in one table."""
    rows = [f"| [`{word}`](#{word}) | {_sentence(cls)} |" for word, cls in EVENT_TYPES.items()]
    return "\n".join(["| type | what happened |", "|---|---|", *rows, ""])


def event_fields() -> str:
    """Every event type with the fields of its `data`."""
    parts = []
    for word, cls in EVENT_TYPES.items():
        parts += [
            f"### {word} {{ #{word} }}",
            "",
            _sentence(cls),
            "",
            _field_table(cls, skip=set(Event.model_fields)),
            "",
        ]
    return "\n".join(parts)


def envelope() -> str:
    """The fields of every record."""
    return _field_table(Event, only=set(Event.ENVELOPE)) + "\n"


def shared_values() -> str:
    """The values that several events contain."""
    parts = []
    for cls in (BlobRef, FileChange, Call):
        parts += [f"### {cls.__name__} {{ #{cls.__name__.lower()} }}", "", _sentence(cls), "", _field_table(cls), ""]
    return "\n".join(parts)


def definition_fields() -> str:
    """Every key of a `subagent.yaml`."""
    parts = [_field_table(SubagentDefinition), ""]
    for cls in (ToolEntry, McpServer, CheckRule, CandidateRule, CommandRule):
        parts += [f"### {cls.__name__} {{ #{cls.__name__.lower()} }}", "", _sentence(cls), "", _field_table(cls), ""]
    return "\n".join(parts)


def error_tree() -> str:
    """The tree of errors with their docstrings."""
    lines = ["| error | meaning | code in a stream |", "|---|---|---|"]
    for depth, cls in _family(errors.RemoraError, 0):
        code = f"`{cls.code}`" if issubclass(cls, errors.ToolError) else ""
        lines.append(f"| {'&nbsp;' * 4 * depth}`{cls.__name__}` | {_sentence(cls)} | {code} |")
    return "\n".join([*lines, ""])


def config_keys() -> str:
    """Every setting: type, default, meaning, and whether a repository may set it."""
    rows = [
        f"| `{key}` | {kind} | {default} | {rule_for(key.replace('[]', ''))} | {meaning} |"
        for key, kind, default, meaning in _keys(Config, "")
    ]
    head = ["| key | type | default | a repository may | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def script_modules() -> str:
    """The modules that scripts can import."""
    from remora.scripts._unsupported import MODULES

    return ", ".join(f"`{name}`" for name in sorted(MODULES - {"__future__"})) + "\n"


def commands() -> str:
    """Every command of `remora`."""
    import typer

    from remora.cli._main import app as cli_app

    return "\n".join(_command(typer.main.get_command(cli_app), "remora"))


def _command(command: Any, path: str) -> Iterator[str]:
    below = getattr(command, "commands", {})
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    usage = [_usage(param) for param in arguments]
    yield f"## {path} {{ #{path.replace(' ', '-')} }}"
    yield ""
    yield f"    {' '.join([path, *(['COMMAND'] if below else []), *usage, '[OPTIONS]'])}"
    yield ""
    yield _help(command.help or "")
    yield ""
    if shown:
        yield from ["| argument or option | meaning | default |", "|---|---|---|"]
        yield from (_parameter(param) for param in shown)
        yield ""
    for name, inner in below.items():
        if not inner.hidden:
            yield from _command(inner, f"{path} {name}")


def _usage(argument: Any) -> str:
    name = argument.name.upper() + ("…" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _help(text: str) -> str:
    """The help text of a command. A paragraph after `\\b` keeps its line breaks."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        "\n".join(f"    {line}" for line in part.split("\n")[1:]) if part.startswith("\b") else part
        for part in paragraphs
    )


def _parameter(param: Any) -> str:
    is_argument = param.param_type_name == "argument"
    names = [param.name.upper()] if is_argument else [*param.opts, *param.secondary_opts]
    plain = param.default if isinstance(param.default, str | int | float) and not param.required else None
    default = "required" if param.required else "" if plain in (None, "", False) else f"`{plain}`"
    return f"| {', '.join(f'`{name}`' for name in names)} | {_cell(getattr(param, 'help', '') or '')} | {default} |"


def _keys(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    meanings = {name: text for base in reversed(model.__mro__) for name, text in _meanings(base).items()}
    for name, field in model.model_fields.items():
        inner = field.annotation
        if inner is not None and typing.get_origin(inner) is tuple and prefix + name == "escalation":
            yield name, "list of text or objects", "none", meanings[name]
            yield from _keys(RungConfig, f"{name}[].")
        elif isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _keys(inner, f"{prefix}{name}.")
        elif name == "operations":
            yield from _keys(OperationConfig, f"{prefix}{name}.*.")
        elif prefix + name == "mcp":
            yield from _keys(McpServerConfig, "mcp.*.")
        else:
            yield f"{prefix}{name}", _kind(field), _default(field) or "none", meanings.get(name, "")


def _field_table(cls: type[BaseModel], skip: set[str] = frozenset(), only: set[str] | None = None) -> str:  # type: ignore[assignment]
    meanings = {name: text for base in reversed(cls.__mro__) for name, text in _meanings(base).items()}
    rows = [
        f"| `{field.alias or name}` | {_kind(field)} | {_default(field)} | {meanings.get(name, '')} |"
        for name, field in cls.model_fields.items()
        if name not in skip and (only is None or name in only)
    ]
    return (
        "\n".join(["| field | type | default | meaning |", "|---|---|---|---|", *rows])
        if rows
        else "No fields of its own."
    )


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return ""
    if isinstance(value, tuple) and value:
        return ", ".join(f"`{getattr(item, 'value', item)}`" for item in value)
    return "" if value in ("", None, (), {}, [], UNRECORDED) else f"`{value}`"


def _kind(field: Any) -> str:
    """A field's type in language-neutral words: `text`, `list of text`, `a` or `b`."""
    return _words(field.annotation)


def _words(kind: Any) -> str:
    plain = {
        CandidateAction: "object with `tool`, `args` and `reason`",
        EscalationRules: "object, as `runner.escalation` in the settings",
        NodeType: "`file`, `class`, `function` or `method`",
        str: "text",
        Path: "path",
        int: "integer",
        float: "number",
        bool: "boolean",
        type(None): "null",
        Any: "any",
    }
    parts = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _words(parts[0])
    if kind in plain:
        return plain[kind]
    if origin is typing.Annotated:
        return _words(parts[0])  # the rest are validators
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin is Annotated:
        return _words(parts[0])
    if origin is tuple:
        return f"list of {_words(parts[0])}"
    if origin is dict:
        return "object" if parts[1] is Any else f"object of {_words(parts[1])}"
    if parts:
        return " or ".join(_words(part) for part in parts)
    return f"[{kind.__name__}](#{kind.__name__.lower()})"


def _meanings(cls: type) -> dict[str, str]:
    """The docstring beneath each field in the source."""
    if cls.__module__.split(".")[0] != "remora":
        return {}
    return {name: _cell(text) for name, text in meanings(cls).items()}


def _family(cls: type[Any], depth: int) -> Iterator[tuple[int, type[Any]]]:
    yield depth, cls
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _family(child, depth + 1)


def _sentence(cls: type) -> str:
    return _cell(inspect.getdoc(cls) or "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
