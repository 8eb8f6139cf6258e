"""What an agent would change, as a person reads it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from remora.workspaces._merge import split

NEW_FILE = 0o644


@dataclass(frozen=True)
class Change:
    """One file, as the agent found it and as it left it. None means that there is no file."""

    path: str
    base: bytes | None
    after: bytes | None
    mode: int = NEW_FILE


def unified(changes: Sequence[Change]) -> str:
    """The changes as a unified diff that `patch` and `git apply` take, but for binary files, which are only named."""
    return "".join(_unified(change) for change in changes if change.base != change.after)


def _unified(change: Change) -> str:
    old = "/dev/null" if change.base is None else _quoted("a/" + change.path)
    new = "/dev/null" if change.after is None else _quoted("b/" + change.path)
    try:
        before, after = (_text_lines(side or b"") for side in (change.base, change.after))
    except UnicodeDecodeError:
        return f"Binary files {old} and {new} differ\n"
    if not before and not after:
        return f"--- {old}\n+++ {new}\n"
    return "".join(_ended(line) for line in difflib.unified_diff(before, after, old, new))


def _text_lines(data: bytes) -> list[str]:
    if b"\0" in data:
        raise UnicodeDecodeError("utf-8", data, 0, 1, "NUL")
    return [line.decode() for line in split(data)]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _quoted(path: str) -> str:
    """Names that could be taken for lines of the diff are quoted as git does."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else "".join(f"\\{b:03o}" for b in c.encode()) for c in escaped) + '"'
