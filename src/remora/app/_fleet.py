"""Agents on other machines: what a node gets to run them, and how it opens the project."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import socket
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from remora.app._catalogue import cache_dir
from remora.app._project import Project, environment_secrets
from remora.app._session import Session, open_session
from remora.config import Config
from remora.context.text import number
from remora.errors import ConfigError, MissingExtra, StoreUnreachable, TraceLocked
from remora.events import Event, NoticeEvent
from remora.ports import AgentResult, Job

if TYPE_CHECKING:
    from remora.engines import FleetEngine, Placement
    from remora.orchestrator import Plan

MAX_SOURCES = 512 * 1024 * 1024
"""Bytes of a project's files that travel to a node."""
KEEP_SOURCES_S = 14 * 24 * 3600.0
"""How long a node keeps the sources of a run that is not repeated."""
Fetch = Callable[[], Awaitable[bytes]]
"""Gets the packed sources from the process with the project."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Differs on every machine, also on copies of one. Only Linux has it."""
FREE_S = 180.0
"""How long a resumed agent waits until the store lets go of the writer that was lost.

Ray ends a worker that is cut off from the cluster after about a minute, and its lease ends 30 s later.
"""


@dataclass(frozen=True)
class Described:
    """What a node needs to open the project. Picklable."""

    place: str
    """Identifies the folder of the project on its own machine. There, nodes use the project itself."""
    root: str
    state_dir: str
    config: Config
    operations: tuple[str, ...]
    digest: str
    """Of the packed sources."""
    trusted: frozenset[str] = frozenset()
    """Digests of the agents that the process with the project has loaded: nodes need no trust of their own."""


class NodeHost:
    """Runs agents on one node, in one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def execute(self, job: Job, *, resumed: bool) -> AgentResult:
        """Run one agent to its end; with `resumed`, from where its stream ends."""
        past = await self._take_over(job.agent_id) if resumed else ()
        return await self._session.execute(job, past)

    async def _take_over(self, agent_id: str) -> Sequence[Event]:
        """Claim the agent's stream once its former writer is gone, and return what it holds.

        Also a stream without a record is claimed: the former writer may have opened it, or be about to.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FREE_S
        while True:
            try:
                await self._session.writer.claim(f"traces/{agent_id}")
                return await asyncio.to_thread(self._session.project.runs.past_events, agent_id)
            except (TraceLocked, StoreUnreachable):
                if loop.time() > deadline:
                    raise
                await asyncio.sleep(0.2)


@asynccontextmanager
async def open_node(described: Described, fetch: Fetch) -> AsyncIterator[NodeHost]:
    """Open the project on a node: the project itself on its own machine, else its unpacked sources."""
    own = identify(Path(described.root)) == described.place
    with tempfile.TemporaryDirectory(prefix="remora-node-") as folder:
        root = Path(described.root) if own else await unpack_sources(described.digest, fetch)
        state = Path(described.state_dir) if own else Path(folder) / ".agentfs"
        secrets = environment_secrets(os.environ, described.config)
        project = Project(root, state, described.config, secrets=secrets, trusted=described.trusted)
        async with open_session(project, project.agents.load(described.operations)) as session:
            yield NodeHost(session)


def identify(root: Path) -> str:
    """What tells a folder from every other one, also from one with the same path on a machine with the same name."""
    try:
        found = root.stat()
        boot = BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""
    except OSError:
        return ""
    return f"{socket.gethostname()} {boot} {found.st_dev}:{found.st_ino}"


def check_engine(project: Project) -> None:
    """Raises `ConfigError` if the engine that the settings name cannot be used, before anything is planned."""
    settings = project.config.engine
    if settings.name == "local":
        if settings.address:
            raise ConfigError(
                f"The address `{settings.address:.200}` names a Ray cluster: expected the engine `ray` with it",
                hint="Add `--engine ray`, or leave `--address` out",
            )
        return
    if len(project.config.escalation) > 1:
        raise ConfigError("A ladder of models cannot be used with the engine `ray`: its limits count in one process")
    if settings.address and project.store is None:
        raise ConfigError(
            "Agents on other machines need a store that all of them reach",
            hint="Name one with `--store postgres://…`, or leave `--address` out",
        )
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra("ray, which runs agents on many machines,", extra="fleet")


@asynccontextmanager
async def ray_engine(session: Session, plan: Plan) -> AsyncIterator[FleetEngine]:
    """The engine for a run on a Ray cluster. Raises `ConfigError` for what it cannot do."""
    from remora.engines import open_ray_engine

    project = session.project
    check_engine(project)
    settings = project.config.engine
    sources = b"" if not settings.address else await pack_sources(project)
    described = Described(
        identify(project.root),
        str(project.root),
        str(project.own_state_dir),
        project.config,
        plan.operations,
        hashlib.sha256(sources).hexdigest(),
        frozenset(agent.files.digest for agent in session.agents.values()),
    )

    def describe() -> Described:
        """For a node that starts now: the run's deadline is what is left of it."""
        left = None if session.until is None else max(0.001, session.until - project.clock.monotonic())
        runner = project.config.runner.model_copy(update={"total_deadline_s": left})
        return replace(described, config=project.config.model_copy(update={"runner": runner}))

    async with open_ray_engine(
        open_node,
        describe,
        sources=sources,
        address=settings.address,
        at_once=project.config.runner.max_concurrent,
        resumed=plan.taken_up,
    ) as engine:
        yield engine


def describe_placement(placed: Placement, run_id: str) -> NoticeEvent | None:
    """How many agents each worker ran, and why nodes ran none, as an event of the run's stream; None if nothing ran.

    Which ones is in the `agent_finished` of each.
    """
    if not placed.agents:
        return None
    counts = ", ".join(f"{name} ran {number(len(agents), 'agent')}" for name, agents in placed.agents.items())
    moved = f"; {number(len(placed.moved), 'agent')} went on elsewhere after a fault" if placed.moved else ""
    why = next(iter(placed.left_out.values()), "")
    left_out = f"; {number(len(placed.left_out), 'node')} could not run agents: {why:.300}" if why else ""
    return NoticeEvent(code="placement", message=f"ray: {counts}{moved}{left_out}", run_id=run_id)


async def pack_sources(project: Project) -> bytes:
    """The project's files that are not ignored, as a tar archive. Equal files give equal bytes."""
    from remora.workspaces import OverlayWorkspace

    packed = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="remora-pack-") as folder:
        upper = Path(folder) / "workspaces" / "pack"  # a workspace makes its folder and the one above it private
        workspace = OverlayWorkspace(project.root, upper, max_file_bytes=MAX_SOURCES, max_files=1)
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in await workspace.files():
                data = workspace.look(path)
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(data), (project.root / path).stat().st_mode & 0o777
                archive.addfile(entry, io.BytesIO(data))
                if packed.tell() > MAX_SOURCES:
                    raise ConfigError(
                        f"The project has more than {MAX_SOURCES:,} bytes: expected no more for other machines",
                        hint="Exclude large files with a `.gitignore`",
                    )
    return packed.getvalue()


async def unpack_sources(digest: str, fetch: Fetch) -> Path:
    """The unpacked sources, from the cache. Those that it lacks are fetched. Raises `ConfigError` if others arrive."""
    place = cache_dir(os.environ) / "sources" / digest[:32]
    if place.is_dir():
        os.utime(place)
        return place
    sources = await fetch()
    if hashlib.sha256(sources).hexdigest() != digest:
        raise ConfigError("The sources that arrived on this node are not those that were sent")
    return await asyncio.to_thread(_unpack, sources, place)


def _unpack(sources: bytes, place: Path) -> Path:
    """Unpack an archive into a new folder, which has its name only when all of it is on disk."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _delete_unused(place.parent)
    aside = Path(tempfile.mkdtemp(dir=place.parent, prefix=".new-"))
    try:
        with tarfile.open(fileobj=io.BytesIO(sources)) as archive:
            for entry in archive:
                _unpack_file(archive, entry, aside)
        os.sync()  # else a power cut could leave empty files under a digest that is not theirs
        aside.rename(place)
    except OSError:
        if not place.is_dir():  # another worker of this node was faster
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return place


def _unpack_file(archive: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> None:
    """Write one file of an archive, with its mode. `extractall` has no safe filter in Python 3.11.0 to 3.11.3."""
    path = PurePosixPath(entry.name)
    data = archive.extractfile(entry) if entry.isreg() else None
    if data is None or path.is_absolute() or ".." in path.parts:
        raise ConfigError(f"The sources have `{entry.name:.200}`: expected only files below the project")
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    with data, place.open("xb") as file:
        shutil.copyfileobj(data, file)
    place.chmod(entry.mode & 0o777)


def _delete_unused(folder: Path) -> None:
    """Delete sources that no run has used for a while."""
    for each in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another worker of this node deletes them too
            if time.time() - each.stat().st_mtime > KEEP_SOURCES_S:
                shutil.rmtree(each, ignore_errors=True)
