"""Writes the golden files: `make golden`, then read the diff.

A stream, once released, is never written again: only the packets that it must give are. A missing one is recorded anew
with a clock and ids that do not move.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from remora.context.contracts import ToolSpec, make_error_result, make_partial_result
from remora.context.projection import EMPTY, apply
from remora.errors import ProjectionStopped
from remora.events import AgentEndEvent, Call, CandidateAction, Event, HubDelta, HubUpdateEvent, PacketDelta
from remora.inference import EstimatedCounter
from remora.ports import Decision
from remora.subagent import SUBMIT_RESULT
from remora.trace import FileBlobs, FileTrace, read_events
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

HERE = Path(__file__).parent
STREAM = HERE / "format-1-lint.jsonl"
PACKETS = HERE / "format-1-lint.packets.json"
AGENTS = ("lint", "docstring", "test", "sample_data")
"""Bundled agents. A real run of each is kept: the example project with `--policy first-candidate`."""
AGENT, RUN = "01M7GOLDEN0000000000000001", "01M7GOLDEN0000000000000000"


class SteadyClock:
    """A clock that moves by a millisecond each time it is asked."""

    def __init__(self) -> None:
        self._asked = 0

    def now(self) -> datetime:
        self._asked += 1
        return datetime(2026, 11, 15, 18, 20, 45, tzinfo=UTC) + timedelta(milliseconds=self._asked)

    def monotonic(self) -> float:
        self._asked += 1
        return self._asked / 1000


TOOLS = (
    ToolSpec(name="run_linter", description="List the lint errors.", effects="none"),
    ToolSpec(
        name="apply_fix",
        description="Fix one rule.",
        parameters={"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
        effects="workspace",
    ),
    SUBMIT_RESULT,
)


def linted(left: int) -> dict[str, Any]:
    return make_partial_result(
        {"errors": list(range(left))}, f"{left} errors left", {"lint_errors_remaining": left}
    ) | {
        "candidate_actions": [{"tool": "apply_fix", "args": {"code": "F401"}}, {"tool": "no_such_tool"}],
        "excerpts": [{"label": "cart.py", "text": "import os\n\ndef load():\n", "start_line": 1}],
        "diagnostics": [f"line {left}: `os` imported but unused"],
    }


PLAY: tuple[tuple[str, dict[str, Any], Any], ...] = (
    ("run_linter", {}, linted(7)),
    (
        "apply_fix",
        {"code": "F401"},
        linted(3) | {"knowledge_delta": {"left": {"value": 3, "supersedes": "lint_errors_remaining"}}},
    ),
    ("apply_fix", {"code": "E741"}, make_error_result("No safe fix for E741")),
    ("run_linter", {}, {"errors": [1, 2], "fixed": 5}),
    ("run_linter", {}, "x" * 20_000),
)
"""Tool, arguments, and what it returns: every rule of the fold has its turn."""


async def record(folder: Path) -> Path:
    """A stream of the play, in `folder`."""
    clock = SteadyClock()
    track = TwoTrack.of(
        Wiring(
            identity=Identity(AGENT, RUN, "lint", "src/cart.py:load"),
            goal="Fix lint errors in src/cart.py:load",
            tools=TOOLS,
            system_prompt="You fix lint errors.",
            prompts=PromptSettings(1000),
            writer=FileTrace(folder, clock=clock),
            blobs=FileBlobs(folder),
            counter=EstimatedCounter(),
            clock=clock,
            summarizers={},
            fallback=None,
        )
    )
    await track.start(
        version="0.1.0",
        node={"summary": "function 'load' in cart.py"},
        constraints={"max_turns": 12, "safety": ["Only safe fixes."]},
        candidates=[CandidateAction(tool="run_linter", reason="See what is wrong")],
    )
    for number, (tool, args, result) in enumerate(PLAY, start=1):
        await track.request()
        (call,) = await track.response(Decision((Call(call_id=f"call-{number}", tool=tool, args=args),)))
        await track.call(call, lambda result=result, **_: result)
        facts = HubDelta(set={"src/cart.py:load": {"callers": number}})
        await track.context.record(
            HubUpdateEvent(turn=number, nodes=("src/cart.py:load",), delta=PacketDelta(hub=facts))
        )
    await track.request()
    (call,) = await track.response(
        Decision((Call(call_id="call-6", tool="submit_result", args={"summary": "5 of 7 fixed"}),))
    )
    await track.submit(call)
    await track.end(AgentEndEvent(outcome="partial", reason="submitted", summary="5 of 7 fixed"))
    return folder / "traces" / f"{AGENT}.jsonl"


def packets(path: Path) -> Iterator[dict[str, Any]]:
    """The packet at the end of every turn of a stream."""
    packet, turn = EMPTY, 0
    for event in read_events(path):
        if event.turn != turn:
            yield packet.model_dump(mode="json", exclude_defaults=True)
            turn = event.turn
        packet = _after(packet, event)
    yield packet.model_dump(mode="json", exclude_defaults=True)


def _after(packet: Any, event: Event) -> Any:
    try:
        return apply(packet, event)
    except ProjectionStopped:
        return packet


def main() -> None:
    if not STREAM.exists():
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            STREAM.write_bytes(asyncio.run(record(Path(folder))).read_bytes())
    for stream, made in [(STREAM, PACKETS), *((agent_stream(name), agent_packets(name)) for name in AGENTS)]:
        made.write_bytes(orjson.dumps(list(packets(stream)), option=orjson.OPT_INDENT_2) + b"\n")


def agent_stream(name: str) -> Path:
    """The recorded run of a bundled agent."""
    return HERE / f"format-1-agent-{name}.jsonl"


def agent_packets(name: str) -> Path:
    """The packets that it must give."""
    return HERE / f"format-1-agent-{name}.packets.json"


if __name__ == "__main__":
    main()
