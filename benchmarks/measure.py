"""How figures are taken: side by side in small chunks, medians, CPU time apart from wall time."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.contenders import Contender

ROOT = Path(__file__).parents[1]


def say(text: str) -> None:
    """Progress, for whoever waits."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


@dataclass
class Laps:
    """What one contender took, turn by turn, in seconds."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def per_turn(self, of: str, chunk: int) -> float:
        """The median over chunks of the mean of a turn, in seconds."""
        return statistics.median(sum(part) / len(part) for part in _chunks(getattr(self, of), chunk))


async def race(contenders: Sequence[Contender], turns: int, chunk: int) -> dict[str, Laps]:
    """Every contender's laps: they take turns in chunks, each time beginning with another one."""
    laps = {contender.name: Laps() for contender in contenders}
    for contender in contenders:
        await contender.start()
    for round_, start in enumerate(range(0, turns, chunk)):
        at = round_ % len(contenders)
        for contender in (*contenders[at:], *contenders[:at]):
            for number in range(start, min(start + chunk, turns)):
                cpu, wall = time.process_time(), time.perf_counter()
                await contender.turn(number)
                laps[contender.name].wall.append(time.perf_counter() - wall)
                laps[contender.name].cpu.append(time.process_time() - cpu)
    for contender in contenders:
        await contender.close()
    return laps


def ratio(one: Laps, other: Laps, of: str, chunk: int) -> float:
    """The median over chunks of how many times as long `one` took as `other` did beside it."""
    pairs = zip(_chunks(getattr(one, of), chunk), _chunks(getattr(other, of), chunk), strict=True)
    return statistics.median(sum(mine) / sum(theirs) for mine, theirs in pairs)


def rate(work: Callable[[], Any], passes: int) -> tuple[float, float]:
    """Seconds of CPU and of wall that `work` takes, medians of some passes."""
    cpus, walls = [], []
    for _ in range(passes):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(cpus), statistics.median(walls)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on the disk that holds this checkout (a folder in memory would make syncs free); gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix=".run-", dir=Path(__file__).parent / "results"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def disk_bytes(path: Path) -> int:
    """Bytes of all files below `path`, by their lengths."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def peak_rss() -> int:
    """The most memory this process has held so far, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    # Not ru_maxrss: on Linux a child begins with its parent's.
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def child(*argv: str, python: Path | None = None) -> str:
    """What a fresh Python process, run at the root of the checkout, printed."""
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([python or sys.executable, *argv], cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{done.stderr}")
    return done.stdout


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    from remora_lab.machine import describe_machine  # the peer's environment has no Remora

    return {**describe_machine(), "filesystem": _filesystem()}


def business() -> dict[str, float]:
    """How busy the machine is with other things: its load, and what one small write with its sync takes now."""
    took = []
    with folder() as path, (path / "probe").open("ab", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(2000))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return {"load": round(os.getloadavg()[0], 1), "fdatasync_ms": round(1000 * statistics.median(took), 2)}


def versions() -> dict[str, str]:
    """What was measured."""
    names = ("remora-agents", "pydantic", "pydantic-core", "orjson")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def now() -> str:
    """The moment, for the record."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def begin_results(command: str) -> dict[str, Any]:
    """What heads a file of results, before anything is measured."""
    return {
        "date": now(),
        "command": command,
        "machine": machine(),
        "versions": versions(),
        "busy_before": business(),
        "busy_after": {},
        "aims": [],
    }


def write_results(results: dict[str, Any], file: Path) -> None:
    """The file holds these results."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _chunks(values: Sequence[float], chunk: int) -> Iterator[Sequence[float]]:
    return (values[start : start + chunk] for start in range(0, len(values), chunk))


def _filesystem() -> str:
    argv = ["df", "--output=fstype", str(ROOT)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.split()[-1] if done.returncode == 0 else "unknown"
