"""A blob that is far larger than memory should hold: proven, and never loaded whole, whoever asks for it."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remora.app import Project, open_project
from remora.errors import TraceError
from remora.events import (
    ActionDelta,
    AgentEndEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    BlobRef,
    FileChange,
    KnowledgeDelta,
    ModelRequestEvent,
    ModelResponseEvent,
    PacketDelta,
    RunStartEvent,
    ToolResultEvent,
    TurnStartEvent,
)
from remora.ports import MAX_BLOB, Clock
from remora.trace import FileTrace, make_own
from remora.workspaces._door import MAX_FILE

SIZE = 192 * 1024 * 1024
HELD = 24 * 1024 * 1024


@pytest.fixture(scope="module")
def large() -> tuple[str, bytes]:
    """The digest of many zeros, and a gzip file of them that is a thousandth of that."""
    packer, seen, zeros = zlib.compressobj(1, wbits=31), hashlib.sha256(), bytes(1024 * 1024)
    parts = []
    for _ in range(SIZE // len(zeros)):
        seen.update(zeros)
        parts.append(packer.compress(zeros))
    return f"sha256:{seen.hexdigest()}", b"".join([*parts, packer.flush()])


@pytest.fixture
async def app(tmp_path: Path, clock: Clock, large: tuple[str, bytes]) -> Project:
    """A project in which an agent's raw result, reply, prompt and changed file are all that blob."""
    name, packed = large
    state = tmp_path / ".agentfs"
    (tmp_path / "remora.yaml").touch()
    make_own(state)
    file = state / "blobs" / "sha256" / name[7:9] / f"{name[9:]}.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(packed)
    reference = BlobRef(blob=name, size=SIZE, encoding="utf-8")
    delta = PacketDelta(
        action=ActionDelta(tool="t", summary="s", outcome="success"), knowledge={"key": KnowledgeDelta(value=1)}
    )
    agent = [
        AgentStartEvent(format=1, goal="g", agent_id="01AGENT", run_id="01RUN", operation="lint"),
        TurnStartEvent(turn=1),
        ModelRequestEvent(turn=1, messages=({"role": "system", "content_ref": reference.model_dump()},)),
        ModelResponseEvent(turn=1, text_ref=reference),
        ToolResultEvent(
            turn=1,
            call_id="c",
            tool="t",
            outcome="success",
            raw_ref=reference,
            attachments=({"name": "stdout", "ref": reference.model_dump()},),
            files=(FileChange(path="a.py", after=name),),
            delta=delta,
        ),
        AgentEndEvent(),
    ]
    async with FileTrace(state, clock=clock, sync="off") as trace:
        await trace.append("runs/01RUN", [RunStartEvent(), AgentScheduledEvent(run_id="01RUN", agent_id="01AGENT")])
        await trace.append("traces/01AGENT", agent)
    return open_project(tmp_path)


@pytest.fixture
def held() -> Iterator[Callable[[], int]]:
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


async def shown(app: Project) -> Any:
    return app.streams.show("01AGENT")


@pytest.mark.parametrize(
    "ask",
    [
        lambda app: app.review.diff(),
        lambda app: app.review.diff("01AGENT"),
        lambda app: app.review.accept("01AGENT"),
        lambda app: app.review.restore("01AGENT"),
        lambda app: app.streams.explain("key", "01AGENT"),
        lambda app: app.streams.transcript("01AGENT"),
        lambda app: app.streams.transcript("01AGENT", full=True),
        lambda app: app.streams.tokens("01AGENT"),
        lambda app: app.streams.chat_history("01AGENT"),
        shown,
    ],
    ids=["diff", "diff one", "accept", "restore", "explain", "transcript", "full", "tokens", "history", "show"],
)
async def test_nobody_loads_a_blob_that_is_larger_than_memory_should_hold(
    app: Project, held: Callable[[], int], ask: Callable[[Project], Awaitable[Any]]
) -> None:
    try:
        answer = str(await ask(app))
    except TraceError as error:
        answer = str(error)
        assert "unpacks to more than" in answer
    assert held() < HELD
    assert "\0\0\0" not in answer


async def test_a_large_blob_with_the_right_digest_is_proven_without_being_held(
    app: Project, held: Callable[[], int]
) -> None:
    found = app.library.verify()
    assert [report.problem for report in found] == [None, None]
    assert (found.blobs.read, found.blobs.bytes, found.blobs.damaged) == (1, SIZE, 0)
    assert held() < HELD


async def test_the_limit_of_a_blob_is_that_of_a_file_in_a_workspace() -> None:
    assert MAX_BLOB == MAX_FILE


async def test_what_is_as_large_as_a_file_may_be_is_read(tmp_path: Path) -> None:
    app = open_project(tmp_path, state_dir=tmp_path / "state")
    data = bytes(1024) * 1024
    name = await app.blobs.put(data)
    assert await app.blobs.get(name, limit=len(data)) == data
    path = app.blobs.path(name)
    assert path is not None
    assert gzip.decompress(path.read_bytes()) == data
