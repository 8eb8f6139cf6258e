"""Changes of an agent as a unified diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remora.workspaces._diff import Base, Edit, base_of

NEW_FILE = 0o644
CONTEXT = 3
"""Unchanged lines shown around an edit."""


@dataclass(frozen=True)
class Change:
    """One file before and after. None means that there is no file."""

    path: str
    base: bytes | None
    after: bytes | None
    mode: int = NEW_FILE


def unified(changes: Sequence[Change]) -> str:
    """The changes as a unified diff for `patch` and `git apply`. Binary files are only named."""
    return "".join(_unified_diff(change) for change in changes if change.base != change.after)


def _unified_diff(change: Change) -> str:
    old = "/dev/null" if change.base is None else _quote("a/" + change.path)
    new = "/dev/null" if change.after is None else _quote("b/" + change.path)
    base, after = change.base or b"", change.after or b""
    if not (_is_text(base) and _is_text(after)):
        return f"Binary files {old} and {new} differ\n"
    return f"--- {old}\n+++ {new}\n" + "".join(_hunks(base_of(base), after))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _hunks(base: Base, after: bytes) -> Iterator[str]:
    """Yield hunks. Edits near each other share one, each as removed lines followed by added lines."""
    offset = 0
    for edits in _groups(base.edits(after)):
        first, last = max(0, edits[0].first - CONTEXT), min(len(base.lines), edits[-1].last + CONTEXT)
        more = sum(len(edit.lines) - (edit.last - edit.first) for edit in edits)
        yield f"@@ -{_span(first, last - first)} +{_span(first + offset, last - first + more)} @@\n"
        offset += more
        at = first
        for edit in edits:
            yield from _prefix_lines(" ", base.lines[at : edit.first])
            yield from _prefix_lines("-", base.lines[edit.first : edit.last])
            yield from _prefix_lines("+", edit.lines)
            at = edit.last
        yield from _prefix_lines(" ", base.lines[at:last])


def _groups(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    group: list[Edit] = []
    for edit in edits:
        if group and edit.first - group[-1].last > 2 * CONTEXT:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _span(first: int, size: int) -> str:
    """The position of a hunk. An empty one is named by the line before it."""
    return f"{first + 1}" if size == 1 else f"{first + bool(size)},{size}"


def _prefix_lines(mark: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        yield mark + _end_line(line.decode())


def _end_line(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _quote(path: str) -> str:
    """Quote names like git does if they could be mistaken for lines of the diff."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else "".join(f"\\{b:03o}" for b in c.encode()) for c in escaped) + '"'
