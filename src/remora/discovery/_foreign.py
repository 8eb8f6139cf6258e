"""Files in a project that are not its own code: copies of other projects, inputs of its tests, files of a program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_COPIED = re.compile(r"_?vendor(?:ed|s)?|_?extern|_?third_?party|3rd_?party|node_modules|site-packages", re.I)
_MADE = re.compile(r"(?:versioneer|ez_setup|distribute_setup|get-pip)\.py|\w+_pb2(?:_grpc)?\.py")
_TESTS = re.compile(r"tests?|testing|unit_?tests?|\w+_tests")
_INPUTS = re.compile(
    r"(?:test_?)?(?:data|files|inputs?|samples?|examples|resources|snippets|assets|corpus|expected|snapshots?|golden)"
    r"|fixtures"
)

_GENERATED = re.compile(
    rb"(?im)^\s*(?:#|\"\"\").*(?:\bauto(?:matically)?[- ]?generated\b|\bgenerated (?:by|from|file)\b|@generated\b"
    rb"|\$ANTLR\b|\bdo not edit\b)"
)
_BEGUN = re.compile(rb"(?i)sphinx-quickstart|configuration values are present in this")
"""A program wrote such a file once, for people to go on with."""
_IN_TESTS = re.compile(r"(?:tests?|conftest|__init__|__main__|test_?\w+|\w+_?tests?)\.pyi?")
"""Names of tests, of what belongs to them, and of parts of a package."""
_IMPORT = re.compile(rb"(?m)^[ \t]*(?:from|import)\b[^\n]*|import_module\([^\n]*")
_TESTING = re.compile(rb"(?m)\b(?:unittest|pytest)\b|^\s*(?:async )?def test")
_WORD = re.compile(rb"\w+")
MOST_HEAD, HEAD = 2000, 12
"""A comment within so many bytes and lines at the start says that a program wrote the file."""


def is_generated(data: bytes) -> bool:
    """Whether a program wrote a file, as its first lines say."""
    head = b"\n".join(data.splitlines()[:HEAD])
    return bool(_GENERATED.search(head)) and not _BEGUN.search(head)


def is_foreign(parts: Sequence[str]) -> bool:
    """Whether a path, relative to a folder that a person named, leads to code that this project does not maintain."""
    folders = parts[:-1]
    if any(_COPIED.fullmatch(name) for name in folders) or _MADE.fullmatch(parts[-1]) or "migrations" in folders:
        return True
    tests = next((place for place, name in enumerate(folders) if _TESTS.fullmatch(name)), len(folders))
    return any(_INPUTS.fullmatch(name) for name in folders[tests + 1 :])


def left_alone(files: Iterable[Path], root: Path, named: Sequence[Path]) -> set[Path]:
    """Files that are not the project's own code, except those that a person named, or whose folder they named."""
    files = list(files)
    places = [path.resolve() for path in named]
    found = {file for file in files if not any(_is_own(root / file, root, place) for place in places)}
    read = {file for file in _read_by_tests(files, root) if not any(_names(place, root / file) for place in places)}
    return found | read


def _names(place: Path, file: Path) -> bool:
    """Whether a person named a file, or the very folder that it is in."""
    return place in (file, file.parent)


def _read_by_tests(files: Sequence[Path], root: Path) -> set[Path]:
    """Files in folders below those of tests that hold no tests, no helpers and no package: tests read them as texts."""
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        if any(_TESTS.fullmatch(name) for name in file.parts[:-2]):
            by_folder.setdefault(file.parent, []).append(file)
    silent = {place: found for place, found in by_folder.items() if not any(_is_test(root / one) for one in found)}
    if not silent:
        return set()
    tests = [
        file for file in files if any(_TESTS.fullmatch(name) for name in file.parts[:-1]) and file.parent not in silent
    ]
    imported = {word for file in tests for line in _IMPORT.findall(_text(root / file)) for word in _WORD.findall(line)}
    return {
        file
        for place, found in silent.items()
        if not imported & {place.name.encode(), *(one.stem.encode() for one in found)}
        for file in found
    }


def _is_test(file: Path) -> bool:
    """Whether a file in a folder for tests is one, belongs to them, or makes the folder a package."""
    return bool(_IN_TESTS.fullmatch(file.name) or _TESTING.search(_text(file)))


def _text(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_HEAD)
    except OSError:
        return b""


def _is_own(file: Path, root: Path, named: Path) -> bool:
    """Whether a file is at or below a named place, and its own code as seen from there."""
    if file == named:
        return True
    if not file.is_relative_to(named):
        return False
    parts = file.relative_to(root).parts
    # The folders above a named one tell whether it belongs to the tests, but cannot hide what was named.
    above = [name for name in named.relative_to(root).parts if _TESTS.fullmatch(name)]
    below = parts[len(named.relative_to(root).parts) :]
    return not is_foreign([*above, *below]) and not is_generated(_head(file))
