"""Those who keep the workload on the disk: recording alone, the whole loop, and the floor below both."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import orjson

from benchmarks.loop import Append, Put, Step, SystemClock, TallyDisk, new_track, take_turn
from remora.ports import BlobStore, TraceWriter
from remora.trace import FileBlobs, FileTrace, MemoryBlobs, MemoryTrace, SyncMode
from remora.twotrack import Identity

Tape = list[list[Step]]
"""What the loop records: before the first turn, then turn by turn."""


class Contender(Protocol):
    """One way to keep the workload, turn by turn."""

    name: str

    async def start(self) -> None:
        """Everything before the first turn is kept."""

    async def turn(self, number: int) -> None:
        """Turn `number`, from 0, is kept."""

    async def close(self) -> None:
        """Nothing is held."""


class Kept:
    """A state directory: its streams and blobs through one disk. A free disk counts syncs without making them."""

    def __init__(self, folder: Path, *, free: bool, sync: SyncMode = "always", slow_s: float = 0) -> None:
        self.disk = TallyDisk(free=free, slow_s=slow_s)
        self.writer: TraceWriter = FileTrace(folder, clock=SystemClock(), sync=sync, disk=self.disk)
        self.blobs: BlobStore = FileBlobs(folder, disk=self.disk)

    async def close(self) -> None:
        """Nothing is held."""
        if isinstance(self.writer, FileTrace):
            await self.writer.aclose()


class KeptInMemory(Kept):
    """The same without a file: what is left is to validate, stamp, encode and hash."""

    def __init__(self) -> None:
        self.disk = TallyDisk(free=True)
        self.writer = MemoryTrace(SystemClock())
        self.blobs = MemoryBlobs()


class Recording:
    """Recording alone: each event is validated, encoded, hashed and appended; blobs are put unless left out."""

    def __init__(
        self, name: str, tape: Tape, kept: Kept, *, blobs: bool = True, agent: str = "a", begin: int = 0
    ) -> None:
        self.name = name
        self._tape = tape
        self._kept = kept
        self._with_blobs = blobs
        self._begin = begin
        self._identity = Identity(agent, run_id="run", operation="lint", node_id="src/shop/order.py:load")
        self.syncs: list[list[int]] = []
        """How many syncs each step of each turn came to."""

    async def start(self) -> None:
        for steps in self._tape[: self._begin + 1]:
            await self._keep(steps)

    async def turn(self, number: int) -> None:
        await self._keep(self._tape[self._begin + number + 1])

    async def close(self) -> None:
        await self._kept.close()

    async def _keep(self, steps: list[Step]) -> None:
        counts = []
        for step in steps:
            before = self._kept.disk.syncs
            await self._step(step)
            counts.append(self._kept.disk.syncs - before)
        self.syncs.append(counts)

    async def _step(self, step: Step) -> None:
        if isinstance(step, Append):
            drafts = [kind(**fields).model_copy(update=self._identity.fields()) for kind, fields in step.events]
            await self._kept.writer.append(self._identity.stream_id, drafts)
        elif self._with_blobs:
            await self._kept.blobs.put(step.data)


class Track:
    """The whole loop: also folding, rendering within the limit, and distilling."""

    def __init__(self, name: str, values: list[dict[str, Any]], kept: Kept) -> None:
        self.name = name
        self._values = values
        self._kept = kept
        self._track = new_track(kept.writer, kept.blobs)

    async def start(self) -> None:
        await self._track.start()

    async def turn(self, number: int) -> None:
        await take_turn(self._track, number, self._values[number])

    async def close(self) -> None:
        await self._kept.close()


class Floor:
    """The least that keeps the same: dump the same records, write, and sync as often as Remora did at each step.

    A blob's bytes are written as they are, in as many parts as there are syncs, so that each sync has something to do.
    """

    def __init__(self, name: str, path: Path, turns: list[list[tuple[Any, int]]], *, sync: bool) -> None:
        self.name = name
        self._turns = turns
        self._sync = sync
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def start(self) -> None:
        self.keep(0)

    async def turn(self, number: int) -> None:
        self.keep(number + 1)

    async def close(self) -> None:
        os.close(self._handle)

    def keep(self, turn: int) -> None:
        """All steps of one turn, in order."""
        for value, syncs in self._turns[turn]:
            if isinstance(value, list):
                self._write(b"".join(orjson.dumps(record) + b"\n" for record in value), syncs)
            else:
                self._write(value, syncs)

    def _write(self, data: bytes, syncs: int) -> None:
        part = -(-len(data) // max(1, syncs))
        for start in range(0, len(data), part or 1):
            os.write(self._handle, data[start : start + part])
            if self._sync and syncs:
                os.fdatasync(self._handle)
        if self._sync and syncs and not data:
            os.fdatasync(self._handle)


async def floor_turns(folder: Path, tape: Tape) -> list[list[tuple[Any, int]]]:
    """What a floor has to keep: for each step the records or the bytes, and the syncs that Remora made for it."""
    recording = Recording("dry", tape, Kept(folder, free=True))
    await recording.start()
    for number in range(len(tape) - 1):
        await recording.turn(number)
    await recording.close()
    records = map(orjson.loads, (folder / "traces" / "a.jsonl").read_bytes().splitlines())
    seen: set[bytes] = set()
    turns = []
    for steps, counts in zip(tape, recording.syncs, strict=True):
        turn: list[tuple[Any, int]] = []
        for step, syncs in zip(steps, counts, strict=True):
            # Bytes that are there already are not written again, by neither.
            new = isinstance(step, Put) and step.data not in seen
            seen |= {step.data} if isinstance(step, Put) else set()
            if isinstance(step, Append):
                turn.append((list(islice(records, len(step.events))), syncs))
            else:
                turn.append((step.data if new else b"", syncs))
        turns.append(turn)
    return turns
