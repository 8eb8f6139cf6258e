"""What the sections share: their sizes, who counts tokens, and a run of the real loop to look at afterwards."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.loop import LIMIT, SYSTEM_PROMPT, TOOLS, SystemClock, take_turn
from benchmarks.workload import output
from remora.context.render import system_text
from remora.events import (
    ActionDelta,
    ErrorDelta,
    Event,
    Excerpt,
    KnowledgeDelta,
    PacketDelta,
    PacketUpdateEvent,
    ToolResultEvent,
)
from remora.inference import EstimatedCounter, file_counter
from remora.ports import TokenCounter
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

SYSTEM = system_text(SYSTEM_PROMPT, TOOLS)
STREAM = Identity("agent", run_id="run", operation="lint", node_id="src/shop/order.py:load")


@dataclass(frozen=True)
class Plan:
    """How much a section measures, and by which tokenizer."""

    sizes: dict[str, Any]
    tokenizer: Path | None

    @property
    def counters(self) -> list[TokenCounter]:
        """The estimate, and the tokenizer where one was named."""
        return [EstimatedCounter(), *([file_counter(self.tokenizer)] if self.tokenizer else [])]


async def run_loop(turns: int, cycle: int, kb: float, counter: TokenCounter, code: str = "") -> list[Event]:
    """What the real loop records in memory; the tool's outputs come round again every `cycle` turns.

    `code` is the source that the agent works on, shown as an excerpt.
    """
    writer = MemoryTrace(SystemClock())
    track = TwoTrack.of(
        Wiring(
            identity=STREAM,
            goal="Fix lint errors in src/shop/order.py:load",
            tools=TOOLS,
            system_prompt=SYSTEM_PROMPT,
            prompts=PromptSettings(LIMIT),
            writer=writer,
            blobs=MemoryBlobs(),
            counter=counter,
            clock=SystemClock(),
        )
    )
    await track.start()
    if code:
        shown = PacketDelta(excerpts=(Excerpt(label="src/shop/order.py:load", text=code),))
        await track.context.record(PacketUpdateEvent(source="definition", delta=shown))
    for turn in range(turns):
        await take_turn(track, turn, output(turn % cycle, kb))
    return [event async for event in writer.read(STREAM.stream_id)]


def results(count: int, keys: int) -> list[ToolResultEvent]:
    """Tool results that write to so many knowledge keys in turn."""
    return [
        ToolResultEvent(
            seq=number + 1,
            turn=number + 1,
            ts="2026-11-15T18:20:45.123456Z",
            call_id=f"call_{number}",
            tool="run_linter",
            outcome="success",
            delta=PacketDelta(
                action=ActionDelta(tool="run_linter", summary=f"Found {number} lint errors", outcome="success"),
                knowledge={f"lint_errors_in_file_{number % keys}": KnowledgeDelta(value=number)},
                error=ErrorDelta(clear=True),
            ),
        )
        for number in range(count)
    ]


def p95(figures: Sequence[float]) -> float:
    """The figure that one in twenty is above."""
    return statistics.quantiles(figures, n=20, method="inclusive")[-1] if len(figures) > 1 else figures[0]
