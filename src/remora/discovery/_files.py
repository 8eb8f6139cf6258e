"""Which files of a project are looked at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from remora.errors import ConfigError
from remora.ignore import MAX_RULES, OWN_RULES, RULES, STATE_DIR, VENV_MARK, Ignored

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
            found.update(_walk(root, place, problems))
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


def _walk(root: Path, start: Path, problems: list[str]) -> Iterator[Path]:
    def cannot_list(error: OSError) -> None:
        problems.append(f"`{error.filename}` cannot be listed: {error.strerror}")

    rules = {start: _rules_for(root, start)}
    for text, dirs, files in os.walk(start, onerror=cannot_list, followlinks=False):
        here = Path(text)
        held = rules.pop(here)
        if VENV_MARK in files and here != start:
            dirs.clear()
            continue
        before = "" if here == root else here.relative_to(root).as_posix() + "/"
        dirs[:] = [name for name in dirs if not held.hides_folder(before + name)]
        rules |= {here / name: held.within(before + name, _rules(here / name)) for name in dirs}
        code = [name for name in files if name.endswith(SUFFIX) and not held.hides_file(before + name)]
        yield from (here / name for name in code if _is_regular(here / name))


def _rules_for(root: Path, start: Path) -> Ignored:
    """The rules where a walk starts. Where it is hidden itself, only its own hold: whoever names it wants to see it."""
    rules = Ignored().within("", _text(root.joinpath(*OWN_RULES))).within("", _rules(root))
    parts = start.relative_to(root).parts
    for end in range(1, len(parts) + 1):
        inner = "/".join(parts[:end])
        rules = Ignored() if rules.hides_folder(inner) else rules
        rules = rules.within(inner, _rules(root / inner))
    return rules


def _rules(folder: Path) -> bytes | None:
    return _text(folder / RULES)


def _text(file: Path) -> bytes | None:
    """The file's bytes, or None where it is not there, not plain or too large to hold rules."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as opened:
        found = os.fstat(handle)
        return opened.read() if stat.S_ISREG(found.st_mode) and found.st_size <= MAX_RULES else None


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
