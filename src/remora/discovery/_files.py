"""Which files of a project are looked at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from remora.errors import ConfigError

STATE_DIR = ".agentfs"
SKIPPED_DIRS = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages"})
VENV_MARK = "pyvenv.cfg"
SUFFIX = ".py"


def python_files(root: Path, paths: Sequence[Path], problems: list[str]) -> list[Path]:
    """The Python files at and below `paths`, as paths below `root`, in order and each once.

    `root` is resolved. What cannot be looked at is added to `problems`. Raises `ConfigError` for a path that is not
    there or lies outside `root`. Symbolic links below `paths` are not followed: agents could not write through them.
    """
    found: set[Path] = set()
    for path in paths:
        place = _inside(root, path)
        if place.is_dir():
            found.update(_walk(place, problems))
        elif place.suffix == SUFFIX and place.is_file():
            found.add(place)
        else:
            problems.append(f"`{path}` is not a Python file, so it was skipped")
    return sorted(_nameable(root, found, problems), key=lambda path: path.as_posix())


def _inside(root: Path, path: Path) -> Path:
    try:
        place = path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(f"`{path}` does not exist: expected a Python file or a folder") from error
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        raise ConfigError(f"`{path}` cannot be looked at: {error}") from error
    if not place.is_relative_to(root):
        raise ConfigError(
            f"`{path}` lies outside the project `{root}`: expected a path inside it",
            hint="A project begins at the nearest `remora.yaml`, else at the root of its Git repository",
        )
    if STATE_DIR in place.relative_to(root).parts:
        raise ConfigError(f"`{path}` lies in `{STATE_DIR}`, which holds Remora's own state: expected code")
    return place


def _walk(folder: Path, problems: list[str]) -> Iterator[Path]:
    def cannot_list(error: OSError) -> None:
        problems.append(f"`{error.filename}` cannot be listed: {error.strerror}")

    for here, dirs, files in os.walk(folder, onerror=cannot_list, followlinks=False):
        dirs[:] = [name for name in dirs if not _is_skipped(Path(here, name))]
        for name in files:
            if name.endswith(SUFFIX) and _is_regular(Path(here, name)):
                yield Path(here, name)


def _is_skipped(folder: Path) -> bool:
    name = folder.name
    if name.startswith(".") or name in SKIPPED_DIRS:
        return True
    try:
        return folder.joinpath(VENV_MARK).is_file()
    except OSError:
        return False  # a folder one may not enter: listing it will say so


def _is_regular(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except OSError:
        return False  # gone since the folder was listed


def _nameable(root: Path, files: set[Path], problems: list[str]) -> Iterator[Path]:
    for file in files:
        relative = file.relative_to(root)
        try:
            str(relative).encode()
        except UnicodeEncodeError:
            problems.append(f"{str(relative)!a} was skipped: its name is not UTF-8")
        else:
            yield relative
