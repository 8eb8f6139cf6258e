"""Settings files on this machine: the project's, and the user's own."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.config import CONFIG_FILE, config_values
from remora.errors import ConfigError
from remora.files import read_plain
from remora.settings import Layer, Settings, environment_layer, flag_layer, merged

USER_CONFIG_FILE = "config.yaml"
CONFIG_DIR_VARIABLE = "REMORA_CONFIG_DIR"
MAX_SETTINGS = 256 * 1024
"""Bytes of a settings file."""


def read_settings(root: Path, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """All settings for the project at `root`. Raises `ConfigError` naming file and place of every problem."""
    own = user_config_dir(environment) / USER_CONFIG_FILE
    layers = [
        Layer(str(own), _values(own, read_own(own, MAX_SETTINGS, links=True), of_repository=False)),
        Layer(CONFIG_FILE, _values(root / CONFIG_FILE, _read_projects(root), of_repository=True)),
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


def check_place(root: Path, value: Path, key: str) -> Path:
    """The place that a repository means by `value`. Raises `ConfigError` if it lies, or a link leads, outside of it."""
    place = root / value
    if place.resolve().is_relative_to(root.resolve()):
        return place
    raise ConfigError(
        f"`{key}`: `{place}` lies outside the project `{root}`: a repository may not name it",
        hint="If you want it, name it in your own settings or by a flag",
    )


def read_own(file: Path, most: int, *, links: bool = False) -> bytes | None:
    """A file of the user's own; None where there is none. Raises `ConfigError` where somebody else could write it."""
    try:
        data = read_plain(file, most, links=links)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"`{file}` cannot be read: {error.strerror}") from error
    check_own(file)
    return data


def write_own(file: Path, data: bytes) -> None:
    """The file holds `data`, all of it or as before, and nobody else may read or write it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_own(file.parent)
    handle, new = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(handle)
        Path(new).replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(new).unlink()
        raise


def check_own(path: Path) -> None:
    """Returns if only the user can change what lies at `path`, and the folder around a file. Raises `ConfigError`."""
    for place in (path,) if path.is_dir() else (path, path.parent):
        found = place.stat()
        if found.st_uid not in (os.geteuid(), 0):
            raise ConfigError(
                f"`{place}` belongs to another user (id {found.st_uid}): it decides what may run for you",
                hint="Delete it, or make it yours",
            )
        if found.st_mode & 0o002 or (found.st_mode & 0o020 and not _is_private_group(found.st_gid)):
            raise ConfigError(
                f"`{place}`: others may write it, and it decides what may run for you",
                hint=f"If you know what it holds: chmod go-w '{place}'",
            )


def _is_private_group(group: int) -> bool:
    """Whether a group is the user's alone, as where every user has one of the same name: writable by it is usual."""
    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


def _read_projects(root: Path) -> bytes | None:
    """The bytes of the project's file. Raises `ConfigError` for a link that leads outside, and quotes nothing of it."""
    file = root / CONFIG_FILE
    if not os.path.lexists(file):
        return None
    try:
        place = file.resolve(strict=True)
        if not place.is_relative_to(root.resolve()):
            raise ConfigError(f"`{file}` is a link that leads out of the project: expected a plain file")
        return read_plain(place, MAX_SETTINGS)
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        why = error.strerror if isinstance(error, OSError) else "its links lead in a circle"
        raise ConfigError(f"{file}: cannot be read: {why}") from error


def _values(file: Path, data: bytes | None, *, of_repository: bool) -> dict[str, Any]:
    if data is None:
        return {}
    try:
        return config_values(data.decode("utf-8-sig"), file, of_repository=of_repository)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text: expected YAML") from error
