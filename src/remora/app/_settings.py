"""Settings files on this machine: the project's, and the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.config import CONFIG_FILE, config_values
from remora.errors import ConfigError
from remora.settings import Layer, Settings, environment_layer, flag_layer, merged

USER_CONFIG_FILE = "config.yaml"
CONFIG_DIR_VARIABLE = "REMORA_CONFIG_DIR"


def read_settings(root: Path, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """All settings for the project at `root`. Raises `ConfigError` naming file and place of every problem."""
    own = user_config_dir(environment) / USER_CONFIG_FILE
    layers = [
        Layer(str(own), _values(own, of_repository=False)),
        Layer(CONFIG_FILE, _values(root / CONFIG_FILE, of_repository=True)),
        environment_layer(environment),
        flag_layer(flags),
    ]
    return merged([layer for layer in layers if layer.values])


def user_config_dir(environment: Mapping[str, str]) -> Path:
    """Where the user's own settings and trusted digests lie."""
    if environment.get(CONFIG_DIR_VARIABLE):
        return Path(environment[CONFIG_DIR_VARIABLE])
    from platformdirs import user_config_path

    return user_config_path("remora", appauthor=False)


def _values(file: Path, *, of_repository: bool) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        return config_values(file.read_text(encoding="utf-8"), file, of_repository=of_repository)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text: expected YAML") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
