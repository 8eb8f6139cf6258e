"""Settings, read once: flag, then `remora.yaml`, then default. After that nobody asks again."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from remora.errors import ConfigError, DefinitionError, MissingExtra

CONFIG_FILE = "remora.yaml"

Model = TypeVar("Model", bound=BaseModel)


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MemoryConfig(_Block):
    """The two tracks."""

    packet_size_limit: int = Field(default=1000, ge=100)
    """Tokens that the whole prompt may take: system text, tool schemas, packet, template."""
    summarizer_mode: Literal["tool_specific", "fallback"] = "tool_specific"
    """Who sums up a result without a summary of its own: the tool's summarizer, or only the generic one."""


class RunnerConfig(_Block):
    """How one agent runs."""

    memory: MemoryConfig = MemoryConfig()
    max_turns: int | None = Field(default=None, ge=1)
    """Caps every agent definition's own limit."""
    max_concurrent: int = Field(default=4, ge=1)
    """Agents that run at once."""


class EventStreamConfig(_Block):
    """How the Long Track is written."""

    sync: Literal["always", "turn", "off"] = "always"
    """When an event is on the disk: before it is acknowledged, at turn boundaries and side effects, or whenever."""


class Config(_Block):
    """All settings of a project."""

    runner: RunnerConfig = RunnerConfig()
    event_stream: EventStreamConfig = EventStreamConfig()


def parse_config(text: str, file: Path | str) -> Config:
    """The settings in a `remora.yaml`. Raises `ConfigError` naming the place of every problem."""
    value = parse_yaml(text, file)
    return validate(Config, {} if value is None else value, file)


def parse_yaml(text: str, file: Path | str) -> Any:
    """What a YAML text holds. Raises `ConfigError` with file, line and column."""
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("PyYAML, which reads settings and agent definitions,", extra="agents") from error
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{mark.line + 1}:{mark.column + 1}: " if mark else ""
        raise DefinitionError(file, [f"{where}not YAML: {error.problem}"]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DefinitionError(file, [f"not YAML: {error}"]) from error


def validate(model: type[Model], value: Any, file: Path | str) -> Model:
    """`value` as a `model`. Raises `ConfigError` that names each problem by its path, such as `$.tools[2].path`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = [_problem(model, item["loc"], item["type"], item["msg"]) for item in error.errors(include_url=False)]
        raise DefinitionError(file, problems) from error


def _problem(model: type[BaseModel], loc: tuple[int | str, ...], kind: str, message: str) -> str:
    place = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    if kind != "extra_forbidden":
        return f"{place}: {message}"
    known = _fields_at(model, loc[:-1])
    close = difflib.get_close_matches(str(loc[-1]), known, n=1)
    expected = f"did you mean `{close[0]}`?" if close else "expected one of " + ", ".join(f"`{name}`" for name in known)
    return f"{place}: unknown key; {expected}"


def _fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    for part in loc:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return list(model.model_fields)


__all__ = [
    "CONFIG_FILE",
    "Config",
    "ConfigError",
    "EventStreamConfig",
    "MemoryConfig",
    "RunnerConfig",
    "parse_config",
    "parse_yaml",
    "validate",
]
