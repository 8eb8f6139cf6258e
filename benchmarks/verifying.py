"""`python -m benchmarks.verifying`: what `remora trace verify` costs over many small streams, beside `sha256sum`.

`sha256sum` over the same files is what no proof from the bytes can be much faster than: it opens and hashes them, and
neither splits lines, nor follows a chain, nor unpacks a blob.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from benchmarks.loop import Recorder, new_track, outputs, take_turn
from benchmarks.measure import disk_bytes, folder, machine, now, rate, say, versions
from benchmarks.workload import Case
from remora.events import AgentEndEvent, digest
from remora.trace import Disk, FileBlobs, Library
from remora.trace.files.heads import Ledger, Note

TURNS = Case(3, 0.5)
AGENTS_A_RUN = 100
SOURCE = "def value_{0}_{1}(x: int) -> int:\n    return x + {1}\n"
RUN = {"v": 1, "ts": "2026-11-15T18:20:45.123456Z", "operation": "", "node_id": "", "turn": 0}
AIMS = {"verify_to_sha256sum": 8}
"""At most so many times the wall of `sha256sum`."""


class FreeDisk(Disk):
    """Syncs nothing: what is measured is reading."""

    def sync(self, handle: int) -> None:
        """Nothing is synced."""

    def sync_dir(self, path: Path) -> None:
        """Nothing is synced."""


def measure(agents: int, passes: int) -> dict[str, Any]:
    """One row for so many agents' streams."""
    say(f"verifying: writing {agents:,} streams")
    with folder() as state:
        asyncio.run(_fill(state, agents))
        files = [path for path in state.rglob("*") if path.suffix in (".jsonl", ".raw", ".gz")]
        took: dict[str, list[tuple[float, float]]] = {"verify": [], "quick": [], "sha256sum": []}
        for number in range(passes):
            say(f"verifying: {agents:,} streams, pass {number + 1} of {passes}")
            took["verify"].append(_taken(lambda: _verify(state, quick=False)))
            took["sha256sum"].append(_taken(lambda: _sha256sum(files)))
            took["quick"].append(_taken(lambda: _verify(state, quick=True)))
        found = Library(state).verify()
        assert not found.damaged
        ledger = Ledger(state, disk=Disk())
        noting, _ = rate(lambda: [ledger.note(Note("traces/x", 1, "sha256:" + "0" * 64)) for _ in range(1000)], 3)
        return {
            "streams": len(found.streams),
            "blobs": found.blobs.read,
            "mb": round(disk_bytes(state) / 1e6, 1),
            **{f"{name}_s": round(statistics.median(wall for wall, _ in each), 2) for name, each in took.items()},
            **{f"{name}_cpu_s": round(statistics.median(cpu for _, cpu in each), 2) for name, each in took.items()},
            "verify_to_sha256sum": round(_ratio(took["verify"], took["sha256sum"]), 2),
            "note_us": round(1000 * noting, 1),
        }


def _taken(work: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU of the work, with that of its child processes."""
    began, cpu = time.perf_counter(), os.times()
    work()
    wall, after = time.perf_counter() - began, os.times()
    return wall, sum(after[:4]) - sum(cpu[:4])


def _ratio(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    return statistics.median(mine / theirs for (mine, _), (theirs, _) in zip(one, other, strict=True))


def _verify(state: Path, *, quick: bool) -> None:
    assert not Library(state).verify(quick=quick).damaged


def _sha256sum(files: list[Path]) -> None:
    names = b"".join(os.fsencode(path) + b"\0" for path in files)
    subprocess.run(
        ["xargs", "-0", "sha256sum"],  # noqa: S607 (whichever this machine has)
        input=names,
        stdout=subprocess.DEVNULL,
        check=True,
    )


async def _fill(state: Path, agents: int) -> None:
    """Runs of many agents, each agent with a stream of three turns and a file that it changed."""
    blobs = FileBlobs(state, disk=FreeDisk())
    records, constant = await _recorded()
    for data in constant:
        await blobs.put(data)
    for kind in ("traces", "runs"):
        (state / kind).mkdir()
    for first in range(0, agents, AGENTS_A_RUN):
        run_id = f"R{first:06}"
        run = [_run(run_id, "run_start", {})]
        for number in range(first, min(first + AGENTS_A_RUN, agents)):
            source = "".join(SOURCE.format(number, line) for line in range(80)).encode()
            names = {"before": await blobs.put(source), "after": await blobs.put(source + b"# end\n")}
            own = [_own(record, run_id, f"A{number:06}", names) for record in records]
            head = _write(state / "traces" / f"A{number:06}.jsonl", own)
            run.append(_run(run_id, "agent_scheduled", {}, f"A{number:06}"))
            run.append(_run(run_id, "agent_finished", {"head": head, "last_seq": len(own) - 1}, f"A{number:06}"))
        _write(state / "runs" / f"{run_id}.jsonl", [*run, _run(run_id, "run_end", {})])
    ledger = Ledger(state, disk=Disk())
    for report in Library(state).verify(quick=True):
        ledger.note(Note(f"{report.kind}/{report.file.stem}", report.events, report.head))


async def _recorded() -> tuple[list[dict[str, Any]], list[bytes]]:
    """The records of one agent as the loop makes them, and the blobs that they name."""
    recorder = Recorder()
    track = new_track(recorder, recorder)
    await track.start()
    for turn, value in enumerate(outputs(TURNS)):
        await take_turn(track, turn, value)
    await track.end(AgentEndEvent())
    lines = recorder.lines(track.identity.stream_id)
    return [orjson.loads(line) for line in lines], [await recorder.get(name) for name in recorder._blobs]


def _own(record: dict[str, Any], run_id: str, agent_id: str, names: dict[str, str]) -> dict[str, Any]:
    own = record | {"run_id": run_id, "agent_id": agent_id}
    if record["type"] == "tool_result":
        own["data"] = record["data"] | {"files": [{"path": "a.py", **names}]}
    return own


def _run(run_id: str, kind: str, data: dict[str, Any], agent_id: str = "") -> dict[str, Any]:
    head = {"v": 1, "seq": 0, "ts": RUN["ts"], "type": kind, "run_id": run_id, "agent_id": agent_id}
    return head | RUN | {"data": data}


def _write(path: Path, records: list[dict[str, Any]]) -> str:
    prev, lines = None, []
    for seq, record in enumerate(records):
        lines.append(orjson.dumps(record | {"seq": seq, "prev": prev}))
        prev = digest(lines[-1])
    path.write_bytes(b"\n".join([*lines, b""]))
    return prev or ""


def main() -> None:
    """Measure, judge, keep and show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verifying", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "verify.json")
    options = parser.parse_args()
    sizes, passes = ([50], 1) if options.quick else ([1_000, 10_000], 5)
    rows = [measure(size, passes) for size in sizes]
    aims = {f"{name} ≤ {limit}": rows[-1][name] <= limit for name, limit in AIMS.items()}
    results = {"when": now(), "machine": machine(), "versions": versions(), "verify": rows, "aims": aims}
    options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({"verify": rows, "aims": aims}, indent=2))


if __name__ == "__main__":
    main()
