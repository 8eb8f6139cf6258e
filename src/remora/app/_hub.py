"""The Hub of a project: its index, its daemon, and the client that a run queries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from remora.app._project import Project, default_state_dir, project_root
from remora.context.secrets import Secrets
from remora.errors import ConfigError, HubError
from remora.trace import standing

if TYPE_CHECKING:
    from remora.hub import Holder, HubClient, HubStatus, NodeState, Progress

DB = "hub.db"


class ProjectHub:
    """The index of a project's code, and its daemon."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def index(self, on_progress: Callable[[Progress], None]) -> Progress:
        """Update the index to the current files. Raises `HubError` if another process is writing it."""
        from remora.hub import index_now

        return index_now(
            self._project.root,
            self._project.own_state_dir,
            self._project.config.discovery.exclude,
            on_progress=on_progress,
            hides=secret_filter(self._project.secrets),
        )

    def start(self) -> Holder:
        """Start a daemon that keeps the index up to date. Raises `HubError` if one is running."""
        from remora.hub import start_daemon

        module = "remora.app._hub_daemon"
        return start_daemon(
            self._project.root, self._project.own_state_dir, self._project.config.discovery.exclude, module=module
        )

    def stop(self) -> int | None:
        """Stop the daemon. Returns its process id, or None if none was running."""
        from remora.hub import stop_daemon

        self._project.check_own_state()
        return stop_daemon(self._project.state_dir)

    async def status(self) -> HubStatus:
        """Report whether a daemon is running and what the index contains."""
        from remora.hub import status

        self._project.check_own_state()
        return await status(self._project.state_dir)

    async def query(self, node_id: str) -> NodeState:
        """Look up a node. Raises `HubError` if there is none; its hint names other nodes of the file."""
        client = hub_client(self._project)
        found = await client.node(node_id)
        if found is None:
            raise HubError(f"There is no node `{node_id:.200}` now", hint=await client.hint(node_id))
        return found


def secret_filter(secrets: Secrets) -> Callable[[bytes], bool]:
    """A function that tells whether a file contains a secret. Such files are not indexed."""
    return lambda source: secrets.first_in(source, len(source)) is not None


def hub_client(project: Project) -> HubClient:
    """Open the project's index for reading."""
    from remora.hub import HubClient

    project.check_own_state()
    return HubClient(project.root, project.state_dir, exclude=project.config.discovery.exclude)


@asynccontextmanager
async def open_hub(project: Project) -> AsyncIterator[HubClient | None]:
    """Open the index for the agents of a run, and keep it up to date. None if the settings disable it."""
    settings = project.config.hub
    if not settings.enabled:
        yield None
        return
    from remora.hub import CatchUp

    client = hub_client(project)
    try:
        if settings.mode == "read":
            yield client
            return
        exclude, hides = project.config.discovery.exclude, secret_filter(project.secrets)
        async with CatchUp(project.root, project.own_state_dir, exclude, hides) as catching_up:
            yield client.after(catching_up)
    finally:
        client.close()


def hub_around(start: Path) -> HubClient | None:
    """Open the index of the project that contains `start`. None if it has no index."""
    try:
        root = project_root(start)
    except ConfigError:
        return None
    state_dir = default_state_dir(root)
    if not (state_dir / DB).is_file() or standing(state_dir) != "own":
        return None
    from remora.hub import HubClient

    return HubClient(root, state_dir)
