"""Which models are downloaded, how fast each is on this machine, and which one fits. Measurements are cached."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from remora.app._catalogue import cache_dir, catalogue, present_weights
from remora.app._settings import write_own
from remora.files import read_plain

if TYPE_CHECKING:
    from remora.inference import ModelEntry, Speed

SPEED_FILE = "speed.json"
MAX_SPEED_FILE = 64 * 1024
COLD_TOKENS, WARM_TOKENS = 1500, 300
"""Tokens that a first and a later decision reads, as in the runs of the bundled agents."""
PATIENCE_S = 60.0
"""A model whose later decisions take longer is not recommended."""


@dataclass(frozen=True)
class ModelHere:
    """A model of the catalogue on this machine."""

    name: str
    path: Path | None
    """None if its weights are missing."""
    memory: int
    """Bytes that it needs."""
    speed: Speed | None = None
    measured: str = ""
    """The day of the measurement."""
    how: str = ""
    """How to get its weights, if they are missing."""

    @property
    def cold_s(self) -> float | None:
        return self.speed.loads_s + self.speed.decision_s(COLD_TOKENS) if self.speed else None

    @property
    def warm_s(self) -> float | None:
        return self.speed.decision_s(WARM_TOKENS) if self.speed else None


def models_here() -> list[ModelHere]:
    """All models of the catalogue, with what is known about each on this machine."""
    kept = _read_kept()
    return [_model_here(name, entry, kept) for name, entry in catalogue().items()]


def measure_models(tell: Callable[[str], None] | None = None) -> None:
    """Measure every model that is here, and keep the results. Takes seconds to minutes for each."""
    from remora.inference import cores, idle_share, measure, threads_for

    kept = _read_kept()
    for name, entry in catalogue().items():
        path = _served_file(name, entry)
        if path is None:
            continue
        if tell is not None:
            tell(name)
        idle = idle_share()
        threads = threads_for(cores(), idle)
        speed = asyncio.run(measure(path, window=entry.window, threads=threads, busy=1 - idle))
        kept[_key(path)] = {"speed": asdict(speed), "measured": datetime.now(UTC).date().isoformat()}
        write_own(cache_dir(os.environ) / SPEED_FILE, orjson.dumps(kept, option=orjson.OPT_INDENT_2))


def best_fit(models: list[ModelHere], free: int | None) -> ModelHere | None:
    """The largest model that is here, fits into the free memory, and is fast enough where it was measured."""
    fits = [
        model
        for model in models
        if model.path is not None
        and (free is None or model.memory <= free)
        and (model.warm_s is None or model.warm_s <= PATIENCE_S)
    ]
    return max(fits, key=lambda model: model.memory, default=None)


def free_memory() -> int | None:
    """Bytes that programs can still use; None if the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = {line.split(":")[0]: line.split()[1] for line in lines}
        return int(found["MemAvailable"]) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _model_here(name: str, entry: ModelEntry, kept: dict[str, Any]) -> ModelHere:
    from remora.inference import Speed, memory_needed

    path = _served_file(name, entry)
    if path is None:
        return ModelHere(name, None, int((entry.size or 0) * 1.3), how=_how_to_get(name, entry))
    speed, measured = None, ""
    with suppress(KeyError, TypeError, ValueError):
        found = kept[_key(path)]
        speed, measured = Speed(**found["speed"]), str(found["measured"])[:10]
    return ModelHere(name, path, memory_needed(path, entry.window), speed, measured)


def _how_to_get(name: str, entry: ModelEntry) -> str:
    if entry.path is not None:
        return f"its entry in `models.yaml` names {entry.path}"
    return f"remora model pull {name}" if entry.sources else f"remora model pull {name} --from FILE"


def _served_file(name: str, entry: ModelEntry) -> Path | None:
    """The file that is served, if it is here."""
    if entry.path is not None:
        return entry.path if entry.path.is_file() else None
    from remora.inference import present

    served = entry.served
    return present(cache_dir(os.environ), served) if served else present_weights(entry)


def _key(path: Path) -> str:
    """Identifies a file without reading all of it."""
    return f"{path.name}:{path.stat().st_size}"


def _read_kept() -> dict[str, Any]:
    try:
        kept = orjson.loads(read_plain(cache_dir(os.environ) / SPEED_FILE, MAX_SPEED_FILE))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
