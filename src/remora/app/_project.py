"""A project opened with its settings: what every command needs."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from remora.config import CONFIG_FILE, Config
from remora.context.secrets import MIN_SECRET, Secrets
from remora.errors import ConfigError
from remora.ports import Clock, TokenCounter
from remora.settings import Settings
from remora.trace import FileBlobs, FileTrace, KVTraceView, Library

STATE_DIR = ".agentfs"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Project:
    """Root, state and settings of one project, and the disk parts that all commands share."""

    def __init__(
        self,
        root: Path,
        state_dir: Path,
        config: Config,
        *,
        clock: Clock | None = None,
        secrets: Secrets | None = None,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        self.secrets = secrets or Secrets()
        self.root = root
        self.state_dir = state_dir
        self.config = config
        self.settings = Settings(config, origins or {})
        self.clock = clock or SystemClock()
        self.blobs = FileBlobs(state_dir)
        self.indexing: Callable[[int, int], None] | None = None
        """Told how many bytes of how many the index has read, while it is brought up to date."""

    @property
    def library(self) -> Library:
        """All streams of the project."""
        return Library(self.state_dir, progress=self.indexing)

    def trace_view(self) -> KVTraceView:
        """The specification's trace keys over all streams, in a file that is made when it is first filled or asked."""
        return KVTraceView(self.state_dir, self.blobs, by=self.config.runner.memory.trace_indexing)

    def _writer(self) -> FileTrace:
        return FileTrace(self.state_dir, clock=self.clock, sync=self.config.event_stream.sync)


def project_root(start: Path) -> Path:
    """The nearest folder with a `remora.yaml`, else with a `.git`, else `start` itself."""
    try:
        start = start.resolve(strict=True)
    except FileNotFoundError as error:
        raise ConfigError(f"`{start}` does not exist", hint="Name a file or a folder of your project") from error
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"`{start!s:.200}` cannot be looked at: {error}") from error
    folder = start if start.is_dir() else start.parent
    for mark in (CONFIG_FILE, ".git"):
        for candidate in (folder, *folder.parents):
            if (candidate / mark).exists():
                return candidate
    return folder


def default_state_dir(root: Path) -> Path:
    """`.agentfs` in the project; for a project that cannot be written, a folder of the user's own."""
    inside = root / STATE_DIR
    if inside.is_dir() or os.access(root, os.W_OK):
        return inside
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return home / "remora" / hashlib.sha256(str(root).encode()).hexdigest()[:16]


def environment_secrets(environment: Mapping[str, str]) -> Secrets:
    """The values in the environment whose names say that they are secret."""
    found = {name: value for name, value in environment.items() if _SECRET_NAME.search(name)}
    return Secrets({name: value for name, value in found.items() if len(value) >= MIN_SECRET})


def counter_of(tokenizer: Path | None) -> TokenCounter:
    """The counter for a tokenizer's file; the estimate where there is none."""
    from remora.inference import EstimatedCounter, file_counter

    return file_counter(tokenizer) if tokenizer is not None else EstimatedCounter()
