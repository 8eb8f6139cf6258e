"""Watches code while you edit, and plans agents for the changed nodes after each pause."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from remora.app._project import Project
from remora.errors import ConfigError
from remora.nodes import CodeNode
from remora.orchestrator import Plan

if TYPE_CHECKING:
    from watchfiles import Change

_LINE_END = re.compile(r"\r\n|\r|\n")
_POLL_MS = 250
"""Interval between checks for cancellation while no file changes."""


class Watcher:
    """Waits for changes of the code and plans agents for them."""

    def __init__(self, project: Project) -> None:
        self._project = project

    async def watch(self, paths: Sequence[Path], operations: Sequence[str]) -> AsyncIterator[Plan]:
        """Yield a plan after each pause, with agents for the nodes whose own lines changed.

        The first plan has no agents. Every change after it is seen. Runs until cancelled. Raises `ConfigError` for a
        path that does not exist at the start.
        """
        seen, first = Seen(), True
        self._files(paths)
        async with aclosing(self._pauses(paths)) as pauses:
            async for touched in pauses:
                if not touched and not first:
                    continue
                plan = self._plan_new(seen, paths, operations)
                if first or plan.jobs or plan.problems:
                    yield replace(plan, jobs=()) if first else plan
                first = False

    async def _pauses(self, paths: Sequence[Path]) -> AsyncGenerator[bool, None]:
        """Yield True after each pause in changes of code, and False now and then while nothing changes."""
        from watchfiles import awatch

        quiet = self._project.config.watch.debounce_ms
        touched = awatch(
            # Watch the folder of a file: an editor may replace the file instead of writing it.
            *sorted({path.resolve() if path.is_dir() else path.resolve().parent for path in paths}),
            watch_filter=self._is_code,
            step=quiet,
            debounce=max(1600, quiet * 4),
            rust_timeout=_POLL_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        async with aclosing(touched):
            async for changes in touched:
                yield bool(changes)

    def _is_code(self, change: Change, text: str) -> bool:
        # Include new folders: their first files may have been created before the watch began.
        path = Path(text)
        return (path.suffix == ".py" or path.is_dir()) and not path.is_relative_to(self._project.state_dir.resolve())

    def _plan_new(self, seen: Seen, paths: Sequence[Path], operations: Sequence[str]) -> Plan:
        """Plan agents for the files that were written since the last plan."""
        files = self._files([path for path in paths if path.exists()])
        return self._plan_files(seen, seen.written(files), operations)

    def _files(self, paths: Sequence[Path]) -> list[Path]:
        return [self._project.root / file for file in self._project.discovery().files(paths)]

    def _plan_files(self, seen: Seen, files: Sequence[Path], operations: Sequence[str]) -> Plan:
        try:
            return self._project.runs.plan(files, operations, seen.is_new)
        except ConfigError:
            left = [file for file in files if file.is_file()]
            if len(left) == len(files):
                raise
            return self._plan_files(
                seen, left, operations
            )  # a file was deleted meanwhile; it is planned when it is back


@dataclass
class Seen:
    """The versions of files and nodes that were planned last."""

    stamps: dict[Path, tuple[int, int, int]] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)

    def written(self, files: Iterable[Path]) -> list[Path]:
        """The files that were written since the last call."""
        found = []
        for file in files:
            try:
                at = file.stat()
            except FileNotFoundError:
                continue  # deleted after the folder was listed
            stamp = (at.st_mtime_ns, at.st_size, at.st_ino)
            if self.stamps.get(file) != stamp:
                self.stamps[file] = stamp
                found.append(file)
        return found

    def is_new(self, node: CodeNode) -> bool:
        """Whether the node's own lines changed since the last call."""
        digest = hashlib.sha256(own_text(node).encode()).digest()
        known = self.digests.get(node.node_id)
        self.digests[node.node_id] = digest
        return digest != known


def own_text(node: CodeNode) -> str:
    """The lines of the node without those of inner nodes. Their position in the file does not matter."""
    lines = _LINE_END.split(node.text)
    first = node.lines.first
    return "\n".join(line for part in node.owned for line in lines[part.first - first : part.last - first + 1])
