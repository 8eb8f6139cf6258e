"""Finds the code files of a project."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from remora.errors import ConfigError
from remora.ignore import MAX_RULES, OWN_RULES, RULES, STATE_DIR, VENV_MARK, Ignored

SUFFIX = ".py"
MAX_FILE = 4_000_000
"""Bytes of the largest file to parse: about what a tool script can receive."""


def python_files(
    root: Path, paths: Sequence[Path], problems: list[str], suffixes: tuple[str, ...] = (SUFFIX,)
) -> list[Path]:
    """The code files at and below `paths`, relative to `root`, sorted and without duplicates.

    `root` must be resolved. Unreadable paths are added to `problems`. Raises `ConfigError` for a path that does not
    exist or is outside `root`. Symbolic links below `paths` are not followed: agents could not write through them.
    """
    found: set[Path] = set()
    for path in paths:
        place = _resolve_inside(root, path)
        if place.is_dir():
            found.update(_walk(root, place, problems, suffixes))
        elif place.suffix in suffixes and place.is_file():
            found.add(place)
        else:
            problems.append(f"`{path}` is not a Python file")
    return sorted(_with_utf8_names(root, found, problems), key=lambda path: path.as_posix())


def _resolve_inside(root: Path, path: Path) -> Path:
    try:
        place = path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(f"`{path}` does not exist: expected a Python file or a folder") from error
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        raise ConfigError(f"`{path}` cannot be read: {error}") from error
    if not place.is_relative_to(root):
        raise ConfigError(
            f"`{path}` is outside the project `{root}`: expected a path inside it",
            hint="A project begins at the nearest `remora.yaml`, else at the root of its Git repository",
        )
    if STATE_DIR in place.relative_to(root).parts:
        raise ConfigError(f"`{path}` is in `{STATE_DIR}`, which contains Remora's own state: expected code")
    return place


def _walk(root: Path, start: Path, problems: list[str], suffixes: tuple[str, ...]) -> Iterator[Path]:
    def cannot_list(error: OSError) -> None:
        problems.append(f"`{error.filename}` cannot be listed: {error.strerror}")

    rules = {start: _rules_for(root, start)}
    for text, dirs, files in os.walk(start, onerror=cannot_list, followlinks=False):
        here = Path(text)
        active = rules.pop(here)
        if VENV_MARK in files and here != start:
            dirs.clear()
            continue
        before = "" if here == root else here.relative_to(root).as_posix() + "/"
        dirs[:] = [name for name in dirs if not active.hides_folder(before + name)]
        rules |= {here / name: active.within(before + name, _rules(here / name)) for name in dirs}
        code = [name for name in files if name.endswith(suffixes) and not active.hides_file(before + name)]
        yield from (here / name for name in code if _is_regular(here / name))


def _rules_for(root: Path, start: Path) -> Ignored:
    """The ignore rules where a walk starts.

    In an ignored folder only its own rules apply, because the caller named it.
    """
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
    """The file's bytes, or None if it does not exist, is not a regular file or is too large."""
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


def _with_utf8_names(root: Path, files: set[Path], problems: list[str]) -> Iterator[Path]:
    for file in files:
        relative = file.relative_to(root)
        try:
            str(relative).encode()
        except UnicodeEncodeError:
            problems.append(f"{str(relative)!a} was skipped: its name is not UTF-8")
        else:
            yield relative


class CodeFiles:
    """Decides which files of the project at `root` are code, one by one or all of them."""

    def __init__(
        self,
        root: Path,
        *,
        state_dir: Path | None = None,
        exclude: Sequence[str] = (),
        suffixes: tuple[str, ...] = (SUFFIX,),
    ) -> None:
        """`exclude` are patterns as in a `.gitignore`."""
        self.suffixes = suffixes
        self.root = root.resolve()
        self._state_dir = state_dir.resolve() if state_dir else None
        self._exclude = Ignored().within("", "\n".join(exclude).encode())
        self._rules: dict[str, Ignored | None] = {}

    def all(self, folder: str = "") -> list[str]:
        """Every code file at and below a folder, relative to the root."""
        if folder and self._in_folder(folder) is None:
            return []
        place = self.root / folder
        found = python_files(self.root, [place], [], self.suffixes) if place.is_dir() else []
        return [path.as_posix() for path in found if self._is_allowed(path.as_posix())]

    def shows(self, path: str) -> bool:
        """Whether the file exists and is code of the project."""
        active = self._in_folder(path.rpartition("/")[0])
        hidden = active is None or not path.endswith(self.suffixes) or active.hides_file(path)
        return not hidden and _is_regular(self.root / path) and self._is_allowed(path)

    def forget(self) -> None:
        """Drop cached ignore rules: they may have changed."""
        self._rules.clear()

    def _is_allowed(self, path: str) -> bool:
        place = self.root / path
        if self._exclude.hides_file(path) or (self._state_dir and place.is_relative_to(self._state_dir)):
            return False
        try:
            path.encode()
            return place.lstat().st_size <= MAX_FILE
        except (OSError, UnicodeEncodeError):
            return False

    def _in_folder(self, folder: str) -> Ignored | None:
        """The ignore rules in a folder; None if it is ignored."""
        if folder not in self._rules:
            self._rules[folder] = self._read_rules(folder)
        return self._rules[folder]

    def _read_rules(self, folder: str) -> Ignored | None:
        if not folder:
            return _rules_for(self.root, self.root)
        outer = self._in_folder(folder.rpartition("/")[0])
        place = self.root / folder
        if outer is None or outer.hides_folder(folder) or place.is_symlink() or (place / VENV_MARK).exists():
            return None
        return outer.within(folder, _rules(place))
