"""How often the disk is asked in a turn, and that nothing is shown or folded before it is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from remora.context.contracts import ToolSpec
from remora.errors import BudgetError, TracePoisoned
from remora.events import Call, Event, ModelRequestEvent, canonical, digest
from remora.inference import EstimatedCounter
from remora.ports import Clock, Decision
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

TOOL = ToolSpec(name="look", description="Look.", effects="none")


class NotingTrace(MemoryTrace):
    """Notes what each append holds; refuses all once it is told so."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.appends: list[list[str]] = []
        self.refuses = False

    async def append(self, stream_id: str, drafts: Sequence[Event]) -> Sequence[Event]:
        if self.refuses:
            raise TracePoisoned("no more")
        self.appends.append([draft.type for draft in drafts])
        return await super().append(stream_id, drafts)


class Hub:
    async def get_context(self, nodes: Sequence[str]) -> dict[str, Any]:
        return {"a.py:f": {"signature": "f()"}}


class BreakingCounter(EstimatedCounter):
    """Works until the first prompt."""

    broken = False

    def count(self, text: str) -> int:
        if self.broken:
            raise BudgetError("cannot count")
        return super().count(text)


@pytest.fixture
def writer(clock: Any) -> NotingTrace:
    return NotingTrace(clock)


def new_track(writer: NotingTrace, clock: Any, counter: EstimatedCounter | None = None) -> TwoTrack:
    return TwoTrack.of(
        Wiring(
            identity=Identity("A"),
            goal="look",
            tools=[TOOL],
            system_prompt="Look.",
            prompts=PromptSettings(1000),
            writer=writer,
            blobs=MemoryBlobs(),
            counter=counter or EstimatedCounter(),
            clock=clock,
        )
    )


async def test_a_turn_begins_and_shows_its_prompt_by_one_append(writer: NotingTrace, clock: Any) -> None:
    track = new_track(writer, clock)
    await track.start()
    prompt = await track.request()
    call = Call(call_id="c", tool="look")
    await track.response(Decision(calls=(call,), text="", model="m", usage={}, finish=""))
    await track.call(call, lambda: "seen")
    assert writer.appends[1:] == [["turn_start", "model_request"], ["model_response"], ["tool_call"], ["tool_result"]]
    assert prompt.turn == track.packet.turn == 1
    times = [event.ts async for event in writer.read("traces/A")]
    assert times == sorted(set(times))


async def test_what_a_hub_says_is_recorded_between_the_turn_and_its_prompt(writer: NotingTrace, clock: Any) -> None:
    track = new_track(writer, clock)
    await track.start()
    track.context.set_hub_client(Hub())
    await track.request()
    assert writer.appends[1:] == [["turn_start", "hub_update"], ["model_request"]]
    events = [event async for event in writer.read("traces/A")]
    assert isinstance(events[-1], ModelRequestEvent)
    assert events[-1].packet_sha256 == digest(canonical(track.packet))
    assert track.packet.hub_context


async def test_a_turn_that_could_not_be_recorded_is_in_no_packet(writer: NotingTrace, clock: Any) -> None:
    track = new_track(writer, clock)
    await track.start()
    writer.refuses = True
    with pytest.raises(TracePoisoned):
        await track.request()
    assert track.packet.turn == 0


async def test_a_turn_whose_prompt_could_not_be_made_has_begun_all_the_same(writer: NotingTrace, clock: Any) -> None:
    counter = BreakingCounter()
    track = new_track(writer, clock, counter)
    await track.start()
    counter.broken = True
    with pytest.raises(BudgetError):
        await track.request()
    assert writer.appends[1:] == [["turn_start"]]
    assert track.packet.turn == 1
