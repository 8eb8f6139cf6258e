"""`python -m benchmarks.workspaces`: what a workspace costs over a large project, beside plain walks of its folders."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks import accepting
from benchmarks.measure import business, disk_bytes, folder, machine, now, rate, say, versions
from remora.app import Project
from remora.config import Config
from remora.discovery import TreeSitterDiscovery
from remora.events import (
    AgentEndEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    FileChange,
    RunStartEvent,
    ToolResultEvent,
)
from remora.trace import FileBlobs, FileTrace
from remora.workspaces import OverlayWorkspace

IDS = {"run_id": "01RUN", "agent_id": "01AGENT"}
TEXT = b"def value() -> int:\n    return 1\n" * 20
RULES = "*.py[cod]\n__pycache__/\n*.log\n.env\n/dist/\n*.egg-info/\ndocs/_build/\n!keep.log\n"
CHANGED = 10
AIMS = {"open_ms": 50, "diff_ms": 100}
"""At most this many milliseconds, over 10,000 files."""


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return monotonic()


def measure(files: int, passes: int) -> dict[str, Any]:
    """One row for a project of so many files."""
    say(f"workspaces: {files:,} files")
    with folder() as root:
        _project(root, files)
        asyncio.run(_reviewed(root))
        before = disk_bytes(root)
        opening, _ = rate(lambda: _workspace(root), passes)
        copied = disk_bytes(root) - before
        workspace = _workspace(root)
        listing, _ = rate(lambda: asyncio.run(workspace.files()), passes)
        walking, _ = rate(lambda: sum(len(names) for _, _, names in os.walk(root)), passes)
        finding, _ = rate(lambda: TreeSitterDiscovery(root).find([root / "p0"]), passes)
        reviewing, wall = rate(lambda: asyncio.run(Project(root, root / ".agentfs", Config()).review.diff()), passes)
        copying, _ = rate(lambda: _copy(root), 1)
    return {
        "files": files,
        "open_ms": _ms(opening),
        "copied_bytes": copied,
        "open_to_copy": round(opening / copying, 5),
        "list_ms": _ms(listing),
        "list_to_walk": round(listing / walking, 1),
        "discover_one_folder_ms": _ms(finding),
        "changed": CHANGED,
        "diff_ms": _ms(reviewing),
        "diff_wall_ms": _ms(wall),
    }


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 2)


def _workspace(root: Path) -> OverlayWorkspace:
    return OverlayWorkspace(root, root / ".agentfs/workspaces/01AGENT")


def _copy(root: Path) -> None:
    """What opening would be without copy-on-write."""
    with folder() as copy:
        shutil.copytree(root, copy / "copy")


def _project(root: Path, files: int) -> None:
    (root / ".gitignore").write_text(RULES)
    for number in range(files):
        file = root / f"p{number % 50}" / f"q{number % 500}" / f"m{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(TEXT)


async def _reviewed(root: Path) -> None:
    """A run whose one agent changed some files."""
    blobs, state_dir = FileBlobs(root / ".agentfs"), root / ".agentfs"
    before, after = await blobs.put(TEXT), await blobs.put(TEXT.replace(b"return 1", b"return 2", 3))
    changes = [FileChange(path=f"p{n}/q{n}/m{n}.py", before=before, after=after) for n in range(CHANGED)]
    async with FileTrace(state_dir, clock=Clock(), sync="off") as trace:
        await trace.append("runs/01RUN", [RunStartEvent(run_id="01RUN"), AgentScheduledEvent(**IDS)])
        result = ToolResultEvent(call_id="c", tool="t", outcome="success", files=tuple(changes), turn=1, **IDS)
        await trace.append("traces/01AGENT", [AgentStartEvent(**IDS), result, AgentEndEvent(**IDS)])


def main() -> None:
    """Measure, judge, keep and show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workspaces", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, to see that it runs")
    parser.add_argument("--only", choices=["workspaces", "accepts"], help="only these; the others stay as stored")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "workspaces.json")
    options = parser.parse_args()
    sizes, passes = ([200], 3) if options.quick else ([1_000, 10_000], 9)
    results = _results(sizes, passes, accepts=[20] if options.quick else [100, 1_000], only=options.only)
    kept = json.loads(options.out.read_text(encoding="utf-8")) if options.only and options.out.exists() else {}
    options.out.write_text(json.dumps(kept | results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))


def _results(sizes: list[int], passes: int, *, accepts: list[int], only: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if only in (None, "workspaces"):
        rows = [measure(size, passes) for size in sizes]
        aims = {f"{name} ≤ {limit}": rows[-1][name] <= limit for name, limit in AIMS.items()}
        found |= {"when": now(), "machine": machine(), "versions": versions(), "workspaces": rows, "aims": aims}
    if only in (None, "accepts"):
        before = business()
        found["accepts"] = [accepting.measure(agents) for agents in accepts]
        found["accepts_when"], found["accepts_load"] = now(), before["load"]
    return found


if __name__ == "__main__":
    main()
