"""Makes, describes and copies Postgres stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from remora.app._catalogue import cache_dir
from remora.app._project import default_state_dir, project_root
from remora.errors import ConfigError
from remora.trace import (
    Copied,
    PostgresStore,
    StoreStatus,
    check_state_dir,
    copy_in,
    copy_out,
    init_store,
    is_store_url,
    make_own,
    parse_address,
    standing,
    store_status,
)


def make_store(url: str, *, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> tuple[int, int]:
    """Make a store or bring it up to date. Returns its version before and after. Safe to repeat."""
    return init_store(parse_address(url), writers=writers, readers=readers)


def describe_store(url: str) -> StoreStatus:
    """What a store holds, and whether its server weakens a promise."""
    return store_status(parse_address(url))


def reindex_store(url: str, progress: Callable[[int, int], None]) -> int:
    """Build a store's index again from its records. Returns how many it has. Only the store's owner may."""
    return PostgresStore(parse_address(url), cache_dir(os.environ)).rebuild_index(progress)


def copy_store(source: str, target: str, progress: Callable[[int, int], None]) -> Copied:
    """Copy all streams and blobs between a state folder and a store. Raises `ConfigError` for two of a kind."""
    if is_store_url(source) == is_store_url(target):
        raise ConfigError("A copy needs one state folder and one `postgres://…` URL", hint="Name the source first")
    if is_store_url(target):
        store = PostgresStore(parse_address(target), cache_dir(os.environ))
        return copy_in(_state_dir(source), store.mirror.reader, store.blobs, progress)
    store = PostgresStore(parse_address(source), cache_dir(os.environ))
    folder = _state_dir(target, missing_ok=True)
    if standing(folder) == "foreign":
        raise ConfigError(f"You did not create `{folder}` here: Remora only reads it")
    make_own(folder)
    return copy_out(store.mirror.reader, store.blobs, folder, progress)


def _state_dir(named: str, *, missing_ok: bool = False) -> Path:
    """A state folder, or the one of a project."""
    path = Path(named).absolute()
    holds = any((path / kind).is_dir() for kind in ("traces", "runs"))
    folder = path if holds or (missing_ok and not path.exists()) else default_state_dir(project_root(path))
    check_state_dir(folder)
    if not missing_ok and not folder.is_dir():
        raise ConfigError(f"`{named}` has no streams", hint="Name a state folder, such as `.agentfs`")
    return folder
