"""The real loop on the workload, and a tape of what it records, so that recording can be measured without rendering."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.workload import Case, answer, output
from remora.context.contracts import ToolSpec
from remora.events import Call, Event
from remora.inference import EstimatedCounter
from remora.ports import BlobStore, Decision, TraceWriter
from remora.trace import Disk, MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

LIMIT = 1000
SYSTEM_PROMPT = """You fix lint errors in Python code by calling one tool at a time.
First call run_linter. Then call apply_fix with one rule code that is fixable.
When nothing is fixable, call submit_result and say what is left."""
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
RULE = {"type": "object", "properties": {"rule": {"type": "string"}}, "required": ["rule"]}
TOOLS = (
    ToolSpec(name="run_linter", description="List the lint errors of this code.", parameters=PATH, effects="none"),
    ToolSpec(name="apply_fix", description="Apply the safe fixes of one rule.", parameters=RULE, effects="workspace"),
    ToolSpec(name="submit_result", description="Say what was done and what is left.", effects="none"),
)


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class TallyDisk(Disk):
    """Counts syncs; a free one does not make them, and each of a slow one takes so many seconds longer."""

    def __init__(self, *, free: bool, slow_s: float = 0) -> None:
        self.free = free
        self.slow_s = slow_s
        self.syncs = 0

    def sync(self, handle: int) -> None:
        self.syncs += 1
        if not self.free:
            super().sync(handle)
            time.sleep(self.slow_s)

    def sync_dir(self, path: Path) -> None:
        self.syncs += 1
        if not self.free:
            super().sync_dir(path)
            time.sleep(self.slow_s)


def new_track(writer: TraceWriter, blobs: BlobStore, agent_id: str = "agent") -> TwoTrack:
    """Both tracks as our own runner sets them up for a lint agent."""
    return TwoTrack.of(
        Wiring(
            identity=Identity(agent_id, run_id="run", operation="lint", node_id="src/shop/order.py:load"),
            goal="Fix lint errors in src/shop/order.py:load",
            tools=TOOLS,
            system_prompt=SYSTEM_PROMPT,
            prompts=PromptSettings(LIMIT),
            writer=writer,
            blobs=blobs,
            counter=EstimatedCounter(),
            clock=SystemClock(),
        )
    )


async def take_turn(track: TwoTrack, turn: int, value: Any) -> None:
    """One turn as the runner takes it: prompt, decision, tool call; the tool gives `value`."""
    await track.request()
    call = Call(call_id=f"call_{turn}", tool="run_linter", args={"path": "src/shop/order.py"})
    usage = {"completion_tokens": 31}  # a made-up count of the prompt would add a notice to every turn
    decision = Decision(calls=(call,), text=answer(turn), model="scripted", usage=usage, finish="tool_calls")
    for chosen in await track.response(decision):
        await track.call(chosen, lambda path: value)


Made = tuple[type[Event], dict[str, Any]]
"""What an event was made of."""


@dataclass(frozen=True)
class Append:
    """Events that the loop recorded by one append."""

    events: tuple[Made, ...]


@dataclass(frozen=True)
class Put:
    """Bytes that the loop put into the blob store."""

    data: bytes


Step = Append | Put


class Recorder(MemoryTrace, MemoryBlobs):
    """A writer and blob store that note what they are asked to keep."""

    def __init__(self) -> None:
        MemoryTrace.__init__(self, SystemClock())
        MemoryBlobs.__init__(self)
        self.steps: list[Step] = []

    async def append(self, stream_id: str, drafts: Sequence[Event]) -> Sequence[Event]:
        self.steps.append(Append(tuple(map(_made, drafts))))
        return await super().append(stream_id, drafts)

    async def put(self, data: bytes) -> str:
        self.steps.append(Put(data))
        return await super().put(data)

    def take(self) -> list[Step]:
        """What was noted since this was last asked."""
        steps, self.steps = self.steps, []
        return steps


def _made(draft: Event) -> Made:
    return type(draft), {name: draft.__dict__[name] for name in draft.model_fields_set if name not in _IDENTITY}


_IDENTITY = frozenset({"agent_id", "run_id", "operation", "node_id"})


@lru_cache(maxsize=1)
def outputs(case: Case) -> list[dict[str, Any]]:
    """The tool's output in every turn of the case."""
    return [output(turn, case.kb) for turn in range(case.turns)]


async def record_tape(case: Case) -> list[list[Step]]:
    """What the loop records: before the first turn, then turn by turn."""
    recorder = Recorder()
    track = new_track(recorder, recorder)
    await track.start()
    turns = [recorder.take()]
    for turn, value in enumerate(outputs(case)):
        await take_turn(track, turn, value)
        turns.append(recorder.take())
    return turns
