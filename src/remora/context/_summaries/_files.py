"""Summarizers for file contents, listings and unified diffs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from remora.context._summaries._base import excerpt, is_cut, lines_of, most, some, text_of
from remora.context.summary import Summarized
from remora.context.text import number

_DEFINITION = re.compile(r"(?:async )?(?:def|class) ([A-Za-z_]\w{0,80})")
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_LONG = re.compile(r"[-dlcbps][-rwxsStT]{9}[.+@]?\s")
_PATH = re.compile(r"[^\s:*?\"<>|]{1,400}")
MAX_NAMES = 10


def read_file(raw: Any) -> Summarized | None:
    """A file's content: text, or an object with `content` and perhaps `path`."""
    content = raw.get("content") if isinstance(raw, Mapping) else None
    source = content if isinstance(content, str) else raw
    text = text_of(source)
    if text is None or is_cut(source):
        return None
    path = str(raw["path"]) if isinstance(raw, Mapping) and isinstance(raw.get("path"), str) else ""
    lines = lines_of(text)
    names = [match[1] for line in lines if (match := _DEFINITION.match(line))]
    what = f"; defines {some(names)}" if names else ""
    line = f"{path + ': ' if path else ''}{number(len(lines), 'line')}{what}"
    knowledge = {"file_lines": len(lines)} | ({"definitions": names[:MAX_NAMES]} if names else {})
    return Summarized(line, knowledge, excerpt(path or "file", lines))


def read_listing(raw: Any) -> Summarized | None:
    """Names of files and folders: a list, lines, or the output of `ls -l`. Names of folders end with `/`."""
    names = _names(raw)
    if names is None:
        return None
    folders = [name for name in names if name.endswith("/")]
    kinds = Counter(_suffix(name) for name in names if not name.endswith("/"))
    files = len(names) - len(folders)
    parts = [number(files, "file")] + ([number(len(folders), "folder")] if folders else [])
    line = f"{', '.join(parts)}: {most(kinds)}" if kinds else ", ".join(parts)
    return Summarized(line, {"files": files, "folders": len(folders)}, excerpt("listing", names))


def is_listing(raw: Any) -> bool:
    """Whether a result can only be a listing: `ls -l`, or a list of nothing but paths."""
    if isinstance(raw, list | tuple):
        return bool(raw) and all(isinstance(item, str) and _looks_like_path(item) for item in raw)
    text = text_of(raw) or ""
    if not text.startswith("total "):
        return False
    lines = lines_of(text[:4000])
    return len(lines) > 1 and _LONG.match(lines[1]) is not None


def _looks_like_path(name: str) -> bool:
    return _PATH.fullmatch(name) is not None and ("/" in name or "." in name.strip("."))


def _names(raw: Any) -> list[str] | None:
    if isinstance(raw, list | tuple):
        return list(raw) if all(isinstance(item, str) for item in raw) else None
    text = text_of(raw)
    if text is None or is_cut(raw):
        return None
    lines = [line.rstrip() for line in lines_of(text) if line.strip()]
    if lines and lines[0].startswith("total "):
        lines = lines[1:]
    return [_long_name(line) if _LONG.match(line) else line for line in lines]


def _long_name(line: str) -> str:
    name = line.split(None, 8)[-1]
    return name + "/" if line.startswith("d") and not name.endswith("/") else name


def _suffix(name: str) -> str:
    base = name.rsplit("/", 1)[-1]
    _, dot, suffix = base.rpartition(".")
    return f".{suffix[:20]}" if dot and suffix and not base.startswith(".") else "other"


@dataclass
class _Diff:
    files: list[str] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    hunks: int = 0

    def read(self, lines: Iterable[str]) -> None:
        # Count lines by the hunk headers, because a removed line `-- x` looks like a file header.
        old = new = 0
        for line in lines:
            if old > 0 or new > 0:
                old, new = old - (line[:1] in "- "), new - (line[:1] in "+ ")
                self.added += line.startswith("+")
                self.removed += line.startswith("-")
            elif hunk := _HUNK.match(line):
                old, new = int(hunk[1] or 1), int(hunk[2] or 1)
                self.hunks += 1
            elif line.startswith(("--- ", "+++ ")):
                self.name(line[4:].split("\t")[0])

    def name(self, path: str) -> None:
        path = path[2:] if path.startswith(("a/", "b/")) else path
        if path != "/dev/null" and path not in self.files[-1:]:
            self.files.append(path)


def read_diff(raw: Any) -> Summarized | None:
    """A unified diff, as `git diff` and `difflib` write it."""
    text = text_of(raw)
    if text is None or "@@ -" not in text or is_cut(raw):
        return None
    lines, diff = lines_of(text), _Diff()
    diff.read(lines)
    if not diff.files or not diff.hunks:
        return None
    line = f"{number(len(diff.files), 'file')} changed, {number(diff.added, 'line')} added, {diff.removed} removed"
    knowledge = {
        "changed_files": [name[:160] for name in diff.files[:MAX_NAMES]],
        "lines_added": diff.added,
        "lines_removed": diff.removed,
    }
    return Summarized(f"{line}: {some(diff.files)}", knowledge, excerpt("diff", lines))
