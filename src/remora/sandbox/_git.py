"""Changed files and lines, from git. Repository settings that could run programs are overridden."""

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
"""Bytes of a diff line to read. The rest is code, which is not needed."""
MAX_NAMES = 64 * 1024 * 1024
"""Bytes of the list of new files."""
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "diff.external=")
_GIT_ENVIRONMENT = {**ENVIRONMENT, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def changed_lines(root: Path, reference: str) -> dict[str, list[tuple[int, int]]]:
    """Changed lines by file, relative to `root`, compared to a commit. A new file is `(1, 10**9)`.

    Where lines were only removed, the line before them counts as changed. Raises `ConfigError` if git fails.
    """
    if reference.startswith("-") or not reference.isprintable() or not reference:
        raise ConfigError(f"`{reference:.80}` is not a commit or branch")
    changed: dict[str, list[tuple[int, int]]] = {}
    # Written to a file: a diff may be as large as the repository.
    with tempfile.TemporaryFile() as output:
        _git(output, root, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "-U0", "--relative", reference, "--")
        for path, first, count in _hunks(_lines(output)):
            changed.setdefault(path, []).append((first, first + max(count, 1) - 1))
    with tempfile.TemporaryFile() as output:
        _git(output, root, "ls-files", "--others", "--exclude-standard", "-z")
        output.seek(0)
        new = output.read(MAX_NAMES).decode(errors="surrogateescape")
    return changed | {path: [(1, 10**9)] for path in new.split("\0") if path}


def is_tracked(path: Path) -> bool:
    """Whether git tracks `path` or anything in it. False if git fails."""
    if not any((folder / ".git").exists() for folder in path.parents):
        return False
    with tempfile.TemporaryFile() as output:
        try:
            _git(output, path.parent, "ls-files", "-z", "--cached", "--", f"./{path.name}")
        except ConfigError:
            return False
        return output.tell() > 0


def _lines(output: IO[bytes]) -> Iterator[str]:
    """The first `MAX_LINE` bytes of every line."""
    output.seek(0)
    is_line_start = True
    while piece := output.readline(MAX_LINE):
        if is_line_start:
            yield piece.rstrip(b"\n").decode(errors="surrogateescape")
        is_line_start = piece.endswith(b"\n")


def _hunks(diff: Iterator[str]) -> Iterator[tuple[str, int, int]]:
    """Path, first line and number of lines of each hunk."""
    path, code_lines = "", 0
    for line in diff:
        if code_lines and line[:1] in ("+", "-"):
            code_lines -= 1  # an added line that begins with `++ ` looks like a header
        elif line.startswith("+++ "):
            path = line[4:].rstrip("\t").strip('"').removeprefix("b/")
        elif hunk := _HUNK.match(line):
            removed, first, added = int(hunk[1] or "1"), int(hunk[2]), int(hunk[3] or "1")
            code_lines = removed + added
            yield path, first, added


def _git(output: IO[bytes], root: Path, *words: str) -> None:
    """Run git with its output going to the file. Raises `ConfigError` if it fails."""
    argv = ["git", "-c", f"safe.directory={root}", "-c", "core.quotePath=false", *_SAFE, *words]
    try:
        done = subprocess.run(
            argv,
            cwd=root,
            env=_GIT_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ConfigError("Cannot list the changed files: `git` is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"Cannot list the changed files: git took longer than {LIMIT_S:g} s") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise ConfigError(f"Cannot list the changed files: {reason}", hint="`--changed` needs a git repository")
