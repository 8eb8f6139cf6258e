"""An open project: its folders, settings and parts."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from remora.app._settings import has_table
from remora.config import CONFIG_FILE, TABLE_FILE, Config, OperationConfig, ServerConfig
from remora.context.secrets import MIN_SECRET, Secrets
from remora.errors import ConfigError
from remora.settings import Settings
from remora.trace import (
    FileBlobs,
    FileTrace,
    Library,
    check_state_dir,
    claim,
    make_own,
    parse_address,
    private_folder,
    standing,
    user_state_home,
)

if TYPE_CHECKING:
    from remora.app._agents import Agents
    from remora.app._changes import ProjectChanges
    from remora.app._escalating import Escalating
    from remora.app._hub import ProjectHub
    from remora.app._review import Review
    from remora.app._runs import Runs
    from remora.app._streams import Streams
    from remora.app._tools import ProjectTools
    from remora.discovery import TreeSitterDiscovery
    from remora.ports import Clock, TokenCounter
    from remora.trace import KVTraceView, PostgresStore, StoredBlobs, StreamWriter, SyncMode, TraceStore
    from remora.workspaces import OverlayWorkspace

STATE_DIR = ".agentfs"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Project:
    """A project, opened with its settings. Its attributes group what you can do with it.

    `runs` plans and runs agents, `review` accepts or rejects their changes, `streams` reads what they did,
    `escalations` hands stuck ones to a larger model, `agents` finds and loads them, `hub` is the index of the code,
    `tools` runs single tools.
    """

    def __init__(
        self,
        root: Path,
        state_dir: Path,
        config: Config,
        *,
        clock: Clock | None = None,
        secrets: Secrets | None = None,
        origins: Mapping[str, str] | None = None,
        trusted: Collection[str] = (),
    ) -> None:
        """`trusted` are digests of agents that are trusted beside those of the user's configuration."""
        self.trusted = frozenset(trusted)
        self.secrets = secrets or Secrets()
        self.root = root
        self._state_dir = state_dir
        self.config = config
        self.settings = Settings(config, origins or {})
        self.clock = clock or SystemClock()
        self.indexing: Callable[[int, int], None] | None = None
        """Called with bytes read and total bytes while the stream index is updated."""

    @property
    def server(self) -> ServerConfig:
        """The server that agents start on: the first rung of the ladder, or the `server` block without one."""
        from remora.app._ladder import first_server

        return first_server(self.config)

    @cached_property
    def agents(self) -> Agents:
        """The agents that can be run."""
        from remora.app._agents import Agents

        return Agents(self)

    @cached_property
    def runs(self) -> Runs:
        """Plans, runs and resumes agents."""
        from remora.app._runs import Runs

        return Runs(self)

    @cached_property
    def review(self) -> Review:
        """Shows, accepts, rejects and undoes changes."""
        from remora.app._review import Review

        return Review(self)

    @cached_property
    def streams(self) -> Streams:
        """Reads and imports streams."""
        from remora.app._streams import Streams

        return Streams(self)

    @cached_property
    def escalations(self) -> Escalating:
        """Hands stuck runs to a person or a larger model."""
        from remora.app._escalating import Escalating

        return Escalating(self)

    @cached_property
    def hub(self) -> ProjectHub:
        """The index of the code."""
        from remora.app._hub import ProjectHub

        return ProjectHub(self)

    @cached_property
    def tools(self) -> ProjectTools:
        """Checks and runs single tools."""
        from remora.app._tools import ProjectTools

        return ProjectTools(self)

    @cached_property
    def changes(self) -> ProjectChanges:
        """Writes changes into the project's files."""
        from remora.app._changes import ProjectChanges

        return ProjectChanges(self)

    def init(self) -> Path:
        """Write a `remora.yaml` with every setting as a comment. Raises `ConfigError` if there is one."""
        from remora.app._scaffold import write_settings

        return write_settings(self.root)

    @cached_property
    def state_dir(self) -> Path:
        """The state folder, for reading. Raises `ConfigError` if it is tracked by git or cannot be the user's own."""
        from remora.sandbox import is_tracked

        check_state_dir(self._state_dir)
        if self._state_dir.exists() and is_tracked(self._state_dir):
            raise ConfigError(
                f"The state folder `{self._state_dir}` is tracked by git: anyone who commits can change it",
                hint=f"`git rm -r --cached {self._state_dir.name}`, or name another folder with `--state-dir`",
            )
        return self._state_dir

    @cached_property
    def own_state_dir(self) -> Path:
        """The state folder, for writing. Created if it is missing. Raises `ConfigError` if it is not the user's own."""
        self.check_own_state()
        make_own(self.state_dir)
        return self.state_dir

    @property
    def is_own_state(self) -> bool:
        """Whether the state folder is this user's own, or unused so far."""
        return standing(self.state_dir) != "foreign"

    def check_own_state(self) -> None:
        """Raises `ConfigError` if the state folder came with the repository or from another machine."""
        if not self.is_own_state:
            raise ConfigError(
                f"You did not create the state folder `{self.state_dir}` here: Remora only reads it",
                hint=f"Read it with `remora trace ls`; then move it away, or run `remora trust {self.state_dir}`",
            )

    def trust_state(self) -> Path:
        """Mark the state folder as the user's own. Deletes its indexes, which cannot be verified; they are rebuilt."""
        for view in ("index.db", "index.lock", "hub.db", "hub.lock", "trace.kv"):
            for suffix in ("", "-wal", "-shm", ".lock"):
                (self.state_dir / f"{view}{suffix}").unlink(missing_ok=True)
        claim(self.state_dir)
        return self.state_dir

    @cached_property
    def journal_dir(self) -> Path:
        """The folder of the accept journal. It is in the user's state, so that no repository can contain one."""
        folder = self.journal_place
        for each in (folder.parents[1], folder.parent, folder):
            private_folder(each)
        return folder

    @property
    def journal_place(self) -> Path:
        """The path of `journal_dir`, without creating it."""
        return user_state_home() / "projects" / hashlib.sha256(os.fsencode(self.root)).hexdigest()[:32]

    @cached_property
    def store(self) -> PostgresStore | None:
        """The Postgres store that the settings name; None if streams are files in the state folder."""
        named = self.config.runner.memory.trace_store
        if named in ("jsonl", "kv"):
            return None
        from remora.app._catalogue import cache_dir
        from remora.trace import PostgresStore

        return PostgresStore(parse_address(named), cache_dir(os.environ))

    @cached_property
    def blobs(self) -> StoredBlobs:
        """The blobs that streams reference by digest."""
        return FileBlobs(self.state_dir) if self.store is None else self.store.blobs

    @property
    def library(self) -> Library:
        """All streams of the project."""
        if self.store is not None:
            workspaces = self.state_dir / "workspaces" if self.is_own_state else None
            return self.store.library(self.indexing, workspaces=workspaces)
        return Library(self.state_dir, own=self.is_own_state, progress=self.indexing)

    def discovery(self) -> TreeSitterDiscovery:
        """Finds the code nodes of the files that the settings include."""
        from remora.discovery import TreeSitterDiscovery

        settings = self.config.discovery
        return TreeSitterDiscovery(
            self.root,
            state_dir=self.state_dir,
            queries=self.agents.folder_of("discovery.queries", settings.queries) if settings.queries else None,
            exclude=settings.exclude,
        )

    def workspace(self, agent_id: str) -> OverlayWorkspace:
        """The copy-on-write files of one agent."""
        from remora.workspaces import OverlayWorkspace, workspace_folder

        limits = self.config.workspace
        return OverlayWorkspace(
            self.root,
            workspace_folder(self.own_state_dir, agent_id),
            max_file_bytes=limits.max_file_bytes,
            max_files=limits.max_files,
        )

    def operation(self, name: str) -> OperationConfig:
        """The settings of one operation."""
        return self.config.operations.get(name, OperationConfig())

    def trace_view(self) -> KVTraceView:
        """The specification's trace keys over all streams. Its file is created on first use."""
        from remora.trace import KVTraceView  # slow: imports the event classes

        return KVTraceView(self.own_state_dir, self.blobs, by=self.config.runner.memory.trace_indexing)

    @asynccontextmanager
    async def trace_store(self) -> AsyncIterator[TraceStore]:
        """The specification's store: append to streams, and read turns by their trace keys."""
        from remora.trace import TraceIndex, TraceStore

        library = self.library
        library.refresh()
        async with self.writer() as writer:
            with TraceIndex(library.state_dir, trusted=self.store is not None or self.is_own_state) as index:
                yield TraceStore(writer, self.blobs, index)

    def writer(self, sync: SyncMode | None = None) -> StreamWriter:
        """Writes the project's streams. `sync` replaces the setting `event_stream.sync`."""
        sync = sync or self.config.event_stream.sync
        if self.store is not None:
            return self.store.writer(self.clock, sync)
        return FileTrace(self.own_state_dir, clock=self.clock, sync=sync)


def project_root(start: Path) -> Path:
    """The nearest folder with a `remora.yaml` or a `[tool.remora]`, else with a `.git`, else `start` itself."""
    try:
        start = start.resolve(strict=True)
    except FileNotFoundError as error:
        raise ConfigError(f"`{start}` does not exist", hint="Name a file or a folder of your project") from error
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"`{start!s:.200}` cannot be read: {error}") from error
    folder = start if start.is_dir() else start.parent
    above = (folder, *folder.parents)
    marked = (each for each in above if (each / CONFIG_FILE).exists() or has_table(each / TABLE_FILE))
    in_git = (each for each in above if (each / ".git").exists())
    return next(marked, None) or next(in_git, folder)


def default_state_dir(root: Path) -> Path:
    """`.agentfs` in the project, or a folder in the user's state if the project is not writable."""
    inside = root / STATE_DIR
    if inside.is_dir() or os.access(root, os.W_OK):
        return inside
    return user_state_home() / hashlib.sha256(str(root).encode()).hexdigest()[:16]


def environment_secrets(environment: Mapping[str, str], config: Config | None = None) -> Secrets:
    """The environment's secrets: variables with a name like `API_KEY`, those that the settings call a key, and the
    password in the URL of the store.
    """
    keys = {server.api_key_env for server in config.mcp.values()} if config else set()
    found = {name: value for name, value in environment.items() if name in keys or _SECRET_NAME.search(name)}
    store = config.runner.memory.trace_store if config else ""
    if "://" in store:
        found["TRACE_STORE"] = parse_address(store).password
    return Secrets({name: value for name, value in found.items() if len(value) >= MIN_SECRET})


def counter_of(tokenizer: Path | None) -> TokenCounter:
    """A counter for a tokenizer file, or an estimate for None."""
    from remora.inference import EstimatedCounter, file_counter

    return file_counter(tokenizer) if tokenizer is not None else EstimatedCounter()
