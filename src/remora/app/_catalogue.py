"""Finds the embedded model that the settings name, and manages the files of all models of the catalogue."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from remora.app._deciding import EMBEDDED
from remora.app._settings import read_own, user_config_dir
from remora.config import ServerConfig
from remora.errors import ConfigError

if TYPE_CHECKING:
    from remora.inference import ModelEntry, Progress

CACHE_DIR_VARIABLE = "REMORA_CACHE_DIR"
CATALOGUE_FILE = "models.yaml"
"""The user's own catalogue, in the folder of their settings. A repository has none."""
MAX_CATALOGUE = 256 * 1024
Role = Literal["weights", "converted"]
WEIGHTS: Role = "weights"
CONVERTED: Role = "converted"


@dataclass(frozen=True)
class Chosen:
    """An embedded model: its entry, and a file that replaces the entry's."""

    name: str
    entry: ModelEntry
    gguf: Path | None = None

    @property
    def title(self) -> str:
        return self.entry.title or self.name

    @property
    def file(self) -> Path | None:
        """The file that the user names, by a setting or in their catalogue."""
        return self.gguf or self.entry.path


@dataclass(frozen=True)
class ModelRow:
    """One line of `remora model ls`."""

    name: str
    state: Literal["ready", "missing", "partial", "damaged"]
    size: int
    license: str
    path: Path
    summary: str
    origin: Literal["bundled", "user"]
    role: Role = "weights"


def catalogue() -> dict[str, ModelEntry]:
    """All models by name: the bundled ones and the user's, which replace bundled ones. Raises `ConfigError`."""
    from remora.inference import bundled_catalogue

    return {**bundled_catalogue(), **_users_catalogue()}


def chosen_model(server: ServerConfig) -> Chosen:
    """The embedded model that the settings name. Raises `ConfigError` for a name that is not in the catalogue."""
    from remora.inference import DEFAULT_MODEL, ModelEntry

    gguf, name = server.gguf, server.model
    if gguf is None and name.endswith(".gguf"):
        gguf, name = Path(name).expanduser(), ""
    if gguf is not None and not name:
        return Chosen(gguf.stem, ModelEntry(title=gguf.stem, path=gguf, adapter="bundled"), gguf)
    known = catalogue()
    name = name or DEFAULT_MODEL
    if name not in known:
        names = ", ".join(f"`{each}`" for each in known)
        raise ConfigError(
            f"There is no embedded model `{name:.80}`: the catalogue has {names}",
            hint="For a model of a server, name the server too: `--server ollama`, or a URL",
        )
    return Chosen(name, known[name], gguf)


def ensure_weights(server: ServerConfig, progress: Progress | None = None) -> Path:
    """The GGUF file of the embedded model. Downloads it if it is missing. Blocking."""
    from remora.inference import check_gguf, present, pull

    chosen = chosen_model(server)
    path, weights = chosen.file, chosen.entry.weights
    if path is None and weights is not None:
        path = present(cache_dir(os.environ), weights)
        if path is None:
            path = pull(cache_dir(os.environ), weights, progress=progress)
    assert path is not None  # noqa: S101 - an entry has a file or a path
    check_gguf(path)
    return path


def served_weights(server: ServerConfig) -> Path:
    """The GGUF file to serve. The default model is converted for speed; others are used unchanged. Blocking."""
    from remora.inference import encode

    gguf, chosen = ensure_weights(server), chosen_model(server)
    # `encode` checks the digest. With a damaged file the bundled adapter would be skipped silently.
    served = chosen.entry.served if chosen.file is None else None
    return encode(cache_dir(os.environ), gguf, served) if served else gguf


def needs_weights(server: ServerConfig) -> bool:
    """Whether a run with these settings must download weights first."""
    if server.server != EMBEDDED:
        return False
    chosen = chosen_model(server)
    return chosen.file is None and present_weights(chosen.entry) is None


def pull_model(name: str = "", *, origin: str = "", progress: Progress | None = None) -> Path:
    """Get a model into the user's cache if it is missing or damaged, and convert it if necessary. Blocking."""
    from remora.inference import encode, pull

    chosen = chosen_model(ServerConfig(model=name))
    weights, served = chosen.entry.weights, chosen.entry.served
    if weights is None or chosen.gguf is not None:
        raise ConfigError(f"`{chosen.file}` is used where it is: there is nothing to download")
    path = pull(cache_dir(os.environ), weights, origin=origin, progress=progress)
    return encode(cache_dir(os.environ), path, served) if served else path


def list_models(progress: Progress | None = None) -> list[ModelRow]:
    """List the models of the catalogue with the state of each file, verified by its digest."""
    from remora.inference import look

    users, rows, known = _users_catalogue(), [], catalogue()
    for place, (name, entry) in enumerate(known.items()):
        if progress is not None:
            progress(place, len(known))
        origin: Literal["bundled", "user"] = "user" if name in users else "bundled"
        if entry.path is not None:
            rows.append(_users_file(name, entry, entry.path))
        for weights, role in (entry.weights, WEIGHTS), (entry.served, CONVERTED):
            if weights is not None:
                kept = look(cache_dir(os.environ), weights)
                rows.append(ModelRow(name, kept.state, kept.size, kept.license, kept.path, entry.summary, origin, role))
    return rows


def _users_file(name: str, entry: ModelEntry, path: Path) -> ModelRow:
    there = path.is_file()
    size = path.stat().st_size if there else 0
    return ModelRow(name, "ready" if there else "missing", size, entry.license, path, entry.summary, "user")


def cache_dir(environment: Mapping[str, str]) -> Path:
    """The folder for weights."""
    if environment.get(CACHE_DIR_VARIABLE):
        return Path(environment[CACHE_DIR_VARIABLE])
    from platformdirs import user_cache_path

    return user_cache_path("remora", appauthor=False)


def present_weights(entry: ModelEntry) -> Path | None:
    """The file of a model in the cache, if it has its full size."""
    from remora.inference import present

    return present(cache_dir(os.environ), entry.weights) if entry.weights else None


def _users_catalogue() -> dict[str, ModelEntry]:
    """The user's own entries. A relative `path` in them is relative to the file."""
    from remora.inference import read_catalogue

    file = user_config_dir(os.environ) / CATALOGUE_FILE
    data = read_own(file, MAX_CATALOGUE, links=True)
    if data is None:
        return {}
    try:
        found = read_catalogue(data.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text: expected YAML") from error
    return {
        name: entry.model_copy(update={"path": file.parent / entry.path.expanduser()}) if entry.path else entry
        for name, entry in found.items()
    }
