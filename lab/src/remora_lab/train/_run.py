"""Starts the trainer (`remora_lab.trainer`) in a process of its own, with the Python that runs this one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from remora.errors import ConfigError, MissingExtra
from remora.inference import AdapterFile, bundled_adapter, read_adapter, sha256_of

STOPPED = 3
"""How the trainer ends when its time was over before all steps were done."""


@dataclass(frozen=True)
class TrainingResult:
    """What a training run left behind."""

    adapter: Path
    metrics: Path
    whole: bool
    """False where the time was over first: the same command with `--resume` goes on."""


def run_training(
    base: Path, rows: Sequence[Path], out: Path, options: Sequence[str] = (), *, start: str = ""
) -> TrainingResult:
    """Train an adapter for `base` on these rows, from nothing or from the adapter `start` (a file, or `bundled`).

    Raises `ConfigError` where it cannot be done.
    """
    if missing := [path for path in (base, *rows) if not path.is_file()]:
        raise ConfigError(f"`{missing[0]}` is not a file", hint="Make rows with `remora train export`")
    begun = ["--start", str(_find_start(start, base))] if start else []
    for need in ("torch", "numpy", "tokenizers"):
        if find_spec(need) is None:
            raise MissingExtra(f"`{need}`, which training needs,", extra="train", distribution="remora-lab")
    words = ["--base", base.absolute(), "--out", out.absolute(), "--rows", *(path.absolute() for path in rows)]
    done = subprocess.run(trainer_command([*map(str, words), *begun, *options]), check=False)
    if done.returncode not in (0, STOPPED):
        raise ConfigError(f"Training failed with exit status {done.returncode}; what it said stands above")
    return TrainingResult(out / "adapter.gguf", out / "metrics.json", done.returncode == 0)


def trainer_command(words: Sequence[str]) -> list[str]:
    """The command line of the trainer. `-P`: no module of the current folder is imported."""
    return [sys.executable, "-P", "-m", "remora_lab.trainer", *words]


def _find_start(start: str, base: Path) -> Path:
    """The adapter to go on from, which must be one for these weights."""
    weights = f"sha256:{sha256_of(base)}"
    found = _bundled(weights) if start == "bundled" else read_adapter(Path(start).absolute())
    if not found.fits(weights):
        raise ConfigError(
            f"`{found.path}` was trained for other weights ({found.base}) than `{base}` ({weights})",
            hint="Train from nothing, without `--from`, or name the weights with `--base`",
        )
    return found.path


def _bundled(weights: str) -> AdapterFile:
    """The package's adapter for these weights, else the one for the default model."""
    found = bundled_adapter(weights=weights) or bundled_adapter()
    if found is None:
        raise ConfigError("No adapter came with this package: expected a file after `--from`")
    return found
