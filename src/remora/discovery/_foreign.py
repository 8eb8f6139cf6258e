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
MOST_HEAD, HEAD = 2000, 12
"""A comment within so many bytes and lines at the start says that a program wrote the file."""


def is_generated(data: bytes) -> bool:
    """Whether a program wrote a file, as its first lines say."""
    return bool(_GENERATED.search(b"\n".join(data.splitlines()[:HEAD])))


def is_foreign(parts: Sequence[str]) -> bool:
    """Whether a path, relative to a folder that a person named, leads to code that this project does not maintain."""
    folders = parts[:-1]
    if any(_COPIED.fullmatch(name) for name in folders) or _MADE.fullmatch(parts[-1]) or "migrations" in folders:
        return True
    tests = next((place for place, name in enumerate(folders) if _TESTS.fullmatch(name)), len(folders))
    return any(_INPUTS.fullmatch(name) for name in folders[tests + 1 :])


def left_alone(files: Iterable[Path], root: Path, named: Sequence[Path]) -> set[Path]:
    """Files that are not the project's own code, except those that a person named, or whose folder they named."""
    places = [path.resolve() for path in named]
    return {file for file in files if not any(_is_own(root / file, root, place) for place in places)}


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
