"""Watching code while someone writes it: a plan for each pause, over what they changed."""

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
_LOOK_MS = 250
"""How long nothing may happen until we look whether we should still wait."""


class Watcher:
    """Waits for changes of the code and plans the agents for them."""

    def __init__(self, project: Project) -> None:
        self._project = project

    async def watch(self, paths: Sequence[Path], operations: Sequence[str]) -> AsyncIterator[Plan]:
        """A plan after each pause, with agents for the nodes whose own lines are not as they were last seen.

        The first has no agents: once it is given, no change is missed. Never ends by itself. Raises `ConfigError` for
        a path that is not there at the start.
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
        """Once it has been quiet for a while, whether code was touched; now and then that nothing was."""
        from watchfiles import awatch

        quiet = self._project.config.watch.debounce_ms
        touched = awatch(
            # An editor may put a new file in the old one's place, so a file's folder is watched.
            *sorted({path.resolve() if path.is_dir() else path.resolve().parent for path in paths}),
            watch_filter=self._is_code,
            step=quiet,
            debounce=max(1600, quiet * 4),
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        async with aclosing(touched):
            async for changes in touched:
                yield bool(changes)

    def _is_code(self, change: Change, text: str) -> bool:
        # A new folder counts: its first files may have been there before anyone could watch it.
        path = Path(text)
        return (path.suffix == ".py" or path.is_dir()) and not path.is_relative_to(self._project.state_dir.resolve())

    def _plan_new(self, seen: Seen, paths: Sequence[Path], operations: Sequence[str]) -> Plan:
        """What there is to do about the files that were written since the last look."""
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
            return self._plan_files(seen, left, operations)  # an editor took one away; it will be told when it is back


@dataclass
class Seen:
    """What was looked at already."""

    stamps: dict[Path, tuple[int, int, int]] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)

    def written(self, files: Iterable[Path]) -> list[Path]:
        """Those that were written since they were last given here."""
        found = []
        for file in files:
            try:
                at = file.stat()
            except FileNotFoundError:
                continue  # gone since the folder was listed
            stamp = (at.st_mtime_ns, at.st_size, at.st_ino)
            if self.stamps.get(file) != stamp:
                self.stamps[file] = stamp
                found.append(file)
        return found

    def is_new(self, node: CodeNode) -> bool:
        """Whether the node's own lines are others than when this was last asked."""
        digest = hashlib.sha256(own_text(node).encode()).digest()
        known = self.digests.get(node.node_id)
        self.digests[node.node_id] = digest
        return digest != known


def own_text(node: CodeNode) -> str:
    """The lines that belong to the node and to none inside it: where they stand in the file does not matter."""
    lines = _LINE_END.split(node.text)
    first = node.lines.first
    return "\n".join(line for part in node.owned for line in lines[part.first - first : part.last - first + 1])
