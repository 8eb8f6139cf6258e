"""What git says has changed. Its own settings in the repository could name programs to run, so none are taken."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from remora.errors import ConfigError
from remora.sandbox._environment import ENVIRONMENT

LIMIT_S = 30.0
MAX_LINE = 16 * 1024
"""Bytes of a line of a diff that matter: the rest of it is code, which is not looked at."""
MAX_NAMES = 64 * 1024 * 1024
"""Bytes of all names of new files."""
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "diff.external=")
_GIT_ENVIRONMENT = {**ENVIRONMENT, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed_lines(root: Path, reference: str) -> dict[str, list[tuple[int, int]]]:
    """By file, relative to `root`, the lines that differ from a commit; a new file is `(1, a lot)`.

    A place where lines were only removed is the line before it. Raises `ConfigError` where git cannot say.
    """
    if reference.startswith("-") or not reference.isprintable() or not reference:
        raise ConfigError(f"`{reference:.80}` is not a commit or branch")
    found: dict[str, list[tuple[int, int]]] = {}
    # Into a file: a diff may be as large as the repository.
    with tempfile.TemporaryFile() as said:
        _git(said, root, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "-U0", "--relative", reference, "--")
        for path, first, count in _hunks(_lines(said)):
            found.setdefault(path, []).append((first, first + max(count, 1) - 1))
    with tempfile.TemporaryFile() as said:
        _git(said, root, "ls-files", "--others", "--exclude-standard", "-z")
        said.seek(0)
        new = said.read(MAX_NAMES).decode(errors="surrogateescape")
    return found | {path: [(1, 10**9)] for path in new.split("\0") if path}


def is_tracked(path: Path) -> bool:
    """Whether a commit of the repository around `path` holds it or anything in it; no where git cannot say."""
    if not any((folder / ".git").exists() for folder in path.parents):
        return False
    with tempfile.TemporaryFile() as said:
        try:
            _git(said, path.parent, "ls-files", "-z", "--cached", "--", f"./{path.name}")
        except ConfigError:
            return False
        return said.tell() > 0


def _lines(said: IO[bytes]) -> Iterator[str]:
    """The beginning of every line."""
    said.seek(0)
    is_begin = True
    while piece := said.readline(MAX_LINE):
        if is_begin:
            yield piece.rstrip(b"\n").decode(errors="surrogateescape")
        is_begin = piece.endswith(b"\n")


def _hunks(diff: Iterator[str]) -> Iterator[tuple[str, int, int]]:
    path = ""
    for line in diff:
        if line.startswith("+++ "):
            path = line[4:].rstrip("\t").strip('"').removeprefix("b/")
        elif hunk := _HUNK.match(line):
            yield path, int(hunk[1]), int(hunk[2] or "1")


def _git(said: IO[bytes], root: Path, *words: str) -> None:
    """What git says is in the file. Raises `ConfigError` where it fails."""
    argv = ["git", "-c", f"safe.directory={root}", "-c", "core.quotePath=false", *_SAFE, *words]
    try:
        done = subprocess.run(
            argv,
            cwd=root,
            env=_GIT_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ConfigError("What has changed cannot be told: `git` is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"What has changed cannot be told: git took longer than {LIMIT_S:g} s") from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise ConfigError(f"What has changed cannot be told: {why}", hint="`--changed` needs a git repository")
