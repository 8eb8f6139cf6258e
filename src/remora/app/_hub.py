"""The Hub of a project: its index and its daemon for the command line, and the way a run asks it."""

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

    def index(self, told: Callable[[Progress], None]) -> Progress:
        """The index is as the files are. Raises `HubError` if somebody else is writing it."""
        from remora.hub import index_now

        return index_now(
            self._project.root,
            self._project.own_state_dir,
            self._project.config.discovery.exclude,
            told=told,
            hides=hiding(self._project.secrets),
        )

    def start(self) -> Holder:
        """A daemon keeps the index fresh from now on. Raises `HubError` if one does already."""
        from remora.hub import start_daemon

        module = "remora.app._hub_daemon"
        return start_daemon(
            self._project.root, self._project.own_state_dir, self._project.config.discovery.exclude, module=module
        )

    def stop(self) -> int | None:
        """No daemon runs; gives the process that was stopped, if one ran."""
        from remora.hub import stop_daemon

        self._project.check_own_state()
        return stop_daemon(self._project.state_dir)

    async def status(self) -> HubStatus:
        """Whether a daemon runs, and what the index holds."""
        from remora.hub import status

        self._project.check_own_state()
        return await status(self._project.state_dir)

    async def query(self, node_id: str) -> NodeState:
        """All that is known of one node now. Raises `HubError` that names nodes of its file where there is none."""
        client = hub_client(self._project)
        found = await client.node(node_id)
        if found is None:
            raise HubError(f"There is no node `{node_id:.200}` now", hint=await client.hint(node_id))
        return found


def hiding(secrets: Secrets) -> Callable[[bytes], bool]:
    """Whether a file holds a secret: it is not indexed then, and agents know it only as they read it."""
    return lambda source: secrets.first_in(source, len(source)) is not None


def hub_client(project: Project) -> HubClient:
    """A reader of the project's index."""
    from remora.hub import HubClient

    project.check_own_state()
    return HubClient(project.root, project.state_dir, exclude=project.config.discovery.exclude)


@asynccontextmanager
async def hub_beside(project: Project) -> AsyncIterator[HubClient | None]:
    """What the agents of a run ask; None where the settings say so. The index is kept fresh while it is open."""
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
        exclude, hides = project.config.discovery.exclude, hiding(project.secrets)
        async with CatchUp(project.root, project.own_state_dir, exclude, hides) as catching_up:
            yield client.after(catching_up)
    finally:
        client.close()


def hub_around(start: Path) -> HubClient | None:
    """A reader for the project around `start`; None where it has no index."""
    try:
        root = project_root(start)
    except ConfigError:
        return None
    state_dir = default_state_dir(root)
    if not (state_dir / DB).is_file() or standing(state_dir) != "own":
        return None
    from remora.hub import HubClient

    return HubClient(root, state_dir)
