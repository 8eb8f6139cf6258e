"""Precedence of settings: flag, then environment, then `remora.yaml`, then your own file, then the default.

Everything is merged once, at the start, and each value keeps its origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora.config import Config
from remora.validation import parse_yaml, validate

ENVIRONMENT_PREFIX = "REMORA_"
_PASSWORD = re.compile(r"(?<=://)([^/@:?#]*):[^/@]*(?=@)|(?<=[?&])(password)=[^&]*")


@dataclass(frozen=True)
class Layer:
    """The settings of one source, nested as written."""

    origin: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """One value and its origin."""

    path: str
    value: Any
    origin: str


@dataclass(frozen=True)
class Settings:
    """All settings after merging."""

    config: Config = field(default_factory=Config)
    origins: Mapping[str, str] = field(default_factory=dict)

    def listed(self) -> list[Setting]:
        """Every value by its path, such as `runner.memory.packet_size_limit`, with its origin."""
        return [
            Setting(path, without_passwords(value), self.origin_of(path))
            for path, value in _leaves(self.config.model_dump(mode="json"))
        ]

    def origin_of(self, path: str) -> str:
        """Where a value comes from: `flag`, `environment`, a file, or `default`."""
        return next((self.origins[each] for each in _with_parents(path) if each in self.origins), "default")


def merged(layers: Sequence[Layer]) -> Settings:
    """Merge the layers, later ones over earlier ones. Raises `ConfigError` naming the layer at fault."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        validate(Config, dict(layer.values), layer.origin)
        values = _merge(values, layer.values)
        for path, _ in _leaves(layer.values):
            origins[path] = layer.origin
    return Settings(validate(Config, values, "settings"), origins)


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """`REMORA_RUNNER__MAX_TURNS=5` sets `runner.max_turns`; values are parsed as YAML.

    A name without `__` that is not a setting, such as `REMORA_CACHE_DIR`, is ignored.
    """
    values: dict[str, Any] = {}
    for name in sorted(environment):
        path = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        if name.startswith(ENVIRONMENT_PREFIX) and (len(path) > 1 or path[0] in Config.model_fields):
            values = _merge(values, nested(path, parse_yaml(environment[name], f"${name}")))
    return Layer("environment", values)


def without_passwords(value: Any) -> Any:
    """A value for people to see: a URL without the password in it."""
    return _PASSWORD.sub(lambda found: found[1] or "password=…", value) if isinstance(value, str) else value


def flag_layer(flags: Mapping[str, Any]) -> Layer:
    """Flags by path; those that were not given are None."""
    values: dict[str, Any] = {}
    for path, value in flags.items():
        if value is not None:
            values = _merge(values, nested(path.split("."), value))
    return Layer("flag", values)


def nested(path: Sequence[str], value: Any) -> dict[str, Any]:
    """Nest `value` at `path` in dictionaries."""
    for part in reversed(path):
        value = {part: value}
    return dict(value)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merge(below[key], value) if isinstance(value, Mapping) and isinstance(below.get(key), Mapping) else value
        for key, value in above.items()
    }
    return {**below, **both}


def _leaves(values: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def _with_parents(path: str) -> Iterator[str]:
    """The path itself, then its parents."""
    while path:
        yield path
        path = path.rpartition(".")[0]
