"""What git says has changed. Its own settings in the repository could name programs to run, so none are taken."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from remora.errors import ConfigError
from remora.sandbox._spawner import ENVIRONMENT

LIMIT_S = 30.0
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "diff.external=")
_GIT_ENVIRONMENT = {**ENVIRONMENT, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed_lines(root: Path, reference: str) -> dict[str, list[tuple[int, int]]]:
    """By file, relative to `root`, the lines that differ from a commit; a new file is `(1, a lot)`.

    A place where lines were only removed is the line before it. Raises `ConfigError` where git cannot say.
    """
    if reference.startswith("-") or not reference.isprintable() or not reference:
        raise ConfigError(f"`{reference:.80}` is not a commit or branch")
    diff = _git(root, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "-U0", "--relative", reference, "--")
    found: dict[str, list[tuple[int, int]]] = {}
    for path, first, count in _hunks(diff):
        found.setdefault(path, []).append((first, first + max(count, 1) - 1))
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return found | {path: [(1, 10**9)] for path in new.split("\0") if path}


def is_tracked(path: Path) -> bool:
    """Whether a commit of the repository around `path` holds it or anything in it; no where git cannot say."""
    if not any((folder / ".git").exists() for folder in path.parents):
        return False
    try:
        return bool(_git(path.parent, "ls-files", "-z", "--cached", "--", f"./{path.name}"))
    except ConfigError:
        return False


def _hunks(diff: str) -> Iterator[tuple[str, int, int]]:
    path = ""
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            path = line[4:].rstrip("\t").strip('"').removeprefix("b/")
        elif hunk := _HUNK.match(line):
            yield path, int(hunk[1]), int(hunk[2] or "1")


def _git(root: Path, *words: str) -> str:
    argv = ["git", "-c", f"safe.directory={root}", "-c", "core.quotePath=false", *_SAFE, *words]
    try:
        done = subprocess.run(argv, cwd=root, env=_GIT_ENVIRONMENT, capture_output=True, timeout=LIMIT_S, check=False)
    except FileNotFoundError as error:
        raise ConfigError("What has changed cannot be told: `git` is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"What has changed cannot be told: git took longer than {LIMIT_S:g} s") from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise ConfigError(f"What has changed cannot be told: {why}", hint="`--changed` needs a git repository")
    return done.stdout.decode(errors="surrogateescape")
