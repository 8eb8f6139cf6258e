"""Reads settings files: the project's and the user's own."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remora.config import CONFIG_FILE, TABLE_FILE, config_values, table_values
from remora.errors import ConfigError
from remora.files import read_plain
from remora.settings import Layer, Settings, environment_layer, flag_layer, merged

USER_CONFIG_FILE = "config.yaml"
CONFIG_DIR_VARIABLE = "REMORA_CONFIG_DIR"
MAX_SETTINGS = 256 * 1024
"""Maximum size of a settings file, in bytes."""
MAX_TABLE_FILE = 1024 * 1024
"""Maximum size of a `pyproject.toml` with settings."""
_TABLE = b"[tool.remora"


def read_settings(root: Path, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """Read all settings for the project at `root`. Raises `ConfigError` with the file and place of every problem."""
    own = user_config_dir(environment) / USER_CONFIG_FILE
    layers = [
        Layer(str(own), _parse(own, read_own(own, MAX_SETTINGS, links=True), of_repository=False)),
        Layer(TABLE_FILE, _parse_table(root / TABLE_FILE)),
        Layer(CONFIG_FILE, _parse(root / CONFIG_FILE, _read_project_file(root / CONFIG_FILE), of_repository=True)),
        environment_layer(environment),
        flag_layer(flags),
    ]
    return merged([layer for layer in layers if layer.values])


def user_config_dir(environment: Mapping[str, str]) -> Path:
    """The folder of the user's own settings and trusted digests."""
    if environment.get(CONFIG_DIR_VARIABLE):
        return Path(environment[CONFIG_DIR_VARIABLE])
    from platformdirs import user_config_path

    return user_config_path("remora", appauthor=False)


def check_inside(root: Path, value: Path, key: str) -> Path:
    """Resolve a path that a repository sets. Raises `ConfigError` if it is outside, also through a link."""
    place = root / value
    if place.resolve().is_relative_to(root.resolve()):
        return place
    raise ConfigError(
        f"`{key}`: `{place}` lies outside the project `{root}`: a repository may not name it",
        hint="To use it, set it in your own settings or with a flag",
    )


def read_own(file: Path, most: int, *, links: bool = False) -> bytes | None:
    """Read a file of the user's own. None if there is none. Raises `ConfigError` if someone else can write it."""
    try:
        data = read_plain(file, most, links=links)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"`{file}` cannot be read: {error.strerror}") from error
    check_own(file)
    return data


def write_own(file: Path, data: bytes) -> None:
    """Write a file atomically, with access for the user only."""
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
    """Raises `ConfigError` if someone else can write `path`, or the folder of a file."""
    for place in (path,) if path.is_dir() else (path, path.parent):
        found = place.stat()
        if found.st_uid not in (os.geteuid(), 0):
            raise ConfigError(
                f"`{place}` belongs to another user (id {found.st_uid}): it decides what may run for you",
                hint="Delete it, or change its owner to you",
            )
        if found.st_mode & 0o002 or (found.st_mode & 0o020 and not _is_private_group(found.st_gid)):
            raise ConfigError(
                f"`{place}`: others may write it, and it decides what may run for you",
                hint=f"Check its contents, then run: chmod go-w '{place}'",
            )


def _is_private_group(group: int) -> bool:
    """Whether the user is the only member of a group. Many systems create such a group for each user."""
    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


def has_table(file: Path) -> bool:
    """Whether a `pyproject.toml` has settings of ours. One that cannot be read has none."""
    try:
        return _TABLE in read_plain(file, MAX_TABLE_FILE)
    except (OSError, RuntimeError):
        return False


def _parse_table(file: Path) -> dict[str, Any]:
    """The settings in a `pyproject.toml`. A file without our table is not parsed: it is none of our business."""
    if not has_table(file):
        return {}
    data = _read_project_file(file) or b""
    try:
        return table_values(data.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text: expected TOML") from error


def _read_project_file(file: Path) -> bytes | None:
    """Read the project's file. Raises `ConfigError` for a link to outside, without quoting its contents."""
    root = file.parent
    if not os.path.lexists(file):
        return None
    try:
        place = file.resolve(strict=True)
        if not place.is_relative_to(root.resolve()):
            raise ConfigError(f"`{file}` is a link to outside the project: expected a plain file")
        return read_plain(place, MAX_TABLE_FILE if file.name == TABLE_FILE else MAX_SETTINGS)
    except (OSError, RuntimeError) as error:  # a symlink loop is a RuntimeError before Python 3.13
        why = error.strerror if isinstance(error, OSError) else "it is a loop of symlinks"
        raise ConfigError(f"{file}: cannot be read: {why}") from error


def _parse(file: Path, data: bytes | None, *, of_repository: bool) -> dict[str, Any]:
    if data is None:
        return {}
    try:
        return config_values(data.decode("utf-8-sig"), file, of_repository=of_repository)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text: expected YAML") from error
