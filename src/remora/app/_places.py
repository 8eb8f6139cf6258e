"""Where the problems of a report are in the project's files as they are now.

An agent's check counts lines in the file as the agent left it. Since then its changes were accepted or not, changes of
others were, and people edited. So a line is looked up in the file as it is now: by comparing it with the version that
was checked, else with the version that the agent began with, else with the one before the changes of earlier agents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from remora.analysis import AgentReport, Place, node_lines
from remora.errors import TraceError, WorkspaceError
from remora.events import MAX_BLOB, FileChange, digest
from remora.trace import StoredBlobs
from remora.workspaces import Door, LineMap

_MAX_CONTENTS = 64
"""Versions of files in memory."""
_MAX_MAPS = 1024


class Places:
    """Finds lines of earlier versions in the project's files. Each file is read once."""

    def __init__(self, root: Path, blobs: StoredBlobs) -> None:
        self._door, self._blobs = Door(root), blobs
        self._now: dict[str, tuple[str, bytes] | None] = {}
        self._content = lru_cache(_MAX_CONTENTS)(self._read)
        self._map = lru_cache(_MAX_MAPS)(self._compare)

    async def locate(self, agent: AgentReport, began: FileChange | None) -> AgentReport:
        """The agent with the lines of its node and its problems in the file as it is now.

        `began` is the change of earlier agents that it began with. If the version that it saw cannot be read any more,
        the lines stay as it saw them, and its place names that version if it is known.
        """
        file = agent.node.get("file")
        if not isinstance(file, str) or not file or (agent.status in ("done", "imported") and not agent.files):
            return agent
        return await asyncio.to_thread(self._locate, agent, file, began)

    def _locate(self, agent: AgentReport, file: str, began: FileChange | None) -> AgentReport:
        now = self._file(file)
        if now is None:
            return replace(agent, place=Place(), problems=tuple({**item, "line": None} for item in agent.problems))
        left, start = _versions(agent, file, began)
        known = self._known(now, left)
        if not known:
            return replace(agent, place=Place(_hex(left[0]) if left == start else "", node_lines(agent.node)))
        problems = tuple({**item, "line": self._line(now, known, item["row"])} for item in agent.problems)
        return replace(
            agent, place=Place(_hex(now), self._node(now, self._known(now, start), agent.node)), problems=problems
        )

    def _node(self, now: str, versions: list[str], node: Mapping[str, Any]) -> tuple[int, int] | None:
        """The first and the last line of the node that are still there."""
        lines = node_lines(node)
        if lines is None:
            return None
        last = min(lines[1], self._map(versions[0], now).last) if versions else 0  # a stream may name any number
        found = [at for line in range(lines[0], last + 1) if (at := self._line(now, versions, line)) is not None]
        return (min(found), max(found)) if found else None

    def _line(self, now: str, versions: list[str], line: int) -> int | None:
        """The line that was `line` of the first version; None if it changed since."""
        for at, version in enumerate(versions):
            line = self._map(version, versions[at - 1]).before(line) if at else line
            kept = self._map(version, now).kept(line)
            if kept is not None:
                return kept
        return None

    def _known(self, now: str, versions: list[str]) -> list[str]:
        """The first of these versions, up to one that cannot be read."""
        known = []
        for version in versions:
            if version != now and self._content(version) is None:
                break
            known.append(version)
        return known

    def _compare(self, old: str, new: str) -> LineMap:
        return LineMap(self._content(old) or b"", self._content(new) or b"")

    def _read(self, version: str) -> bytes | None:
        held = next((each[1] for each in self._now.values() if each and each[0] == version), None)
        if held is not None:
            return held
        try:
            return self._blobs.read(version, limit=MAX_BLOB)
        except TraceError:
            return None

    def _file(self, path: str) -> str | None:
        """The digest of the project's file; None if it cannot be read."""
        if path not in self._now:
            try:
                data = self._door.read(path)
                self._now[path] = (digest(data), data)
            except (OSError, WorkspaceError):
                self._now[path] = None
        found = self._now[path]
        return found[0] if found else None


def _versions(agent: AgentReport, file: str, began: FileChange | None) -> tuple[list[str], list[str]]:
    """The versions of the file that lead back from the one that the agent left, and from the one it began with."""
    seen = agent.node.get("sha256")
    start = [f"sha256:{seen}" if isinstance(seen, str) else None, began.before if began else None]
    own = next((each for each in agent.files if each.path == file), None)
    if own is None:
        return _distinct(start), _distinct(start)
    start = [own.change.before, *start[1:]]
    return _distinct([own.change.after, *([] if own.decision == "accepted" else start)]), _distinct(start)


def _distinct(versions: list[str | None]) -> list[str]:
    return list(dict.fromkeys(version for version in versions if version))


def _hex(version: str) -> str:
    return version.removeprefix("sha256:")
