"""Whatever an agent does in whatever order: the packet is what the stream folds to, and no prompt is over its limit."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from remora.analysis import replay
from remora.context.contracts import ToolSpec
from remora.context.projection import project
from remora.events import Call, Event, canonical
from remora.inference import EstimatedCounter
from remora.testing import TickingClock
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring
from strategies import json_values, texts

LIMIT = 800
results = st.fixed_dictionaries(
    {"summary": texts},
    optional={
        "knowledge_delta": st.dictionaries(texts, json_values, max_size=4),
        "outcome": st.sampled_from(["success", "error", "partial"]),
        "diagnostics": st.lists(texts, max_size=3),
        "excerpts": st.lists(st.fixed_dictionaries({"label": texts, "text": texts}), max_size=4),
        "candidate_actions": st.lists(st.fixed_dictionaries({"tool": st.sampled_from(["look", "else"])}), max_size=3),
    },
)


class AnAgent(RuleBasedStateMachine):
    """Someone's loop, driven at random."""

    @initialize(goal=texts, style=st.sampled_from(["json", "markdown", "account"]))
    def start(self, goal: str, style: Any) -> None:
        clock = TickingClock()
        self.writer = MemoryTrace(clock=clock)
        self.track = TwoTrack.of(
            Wiring(
                identity=Identity("01STATE"),
                goal=goal,
                tools=[ToolSpec(name="look")],
                system_prompt="Look.",
                prompts=PromptSettings(LIMIT, style=style),
                writer=self.writer,
                blobs=MemoryBlobs(),
                counter=EstimatedCounter(),
                clock=clock,
            )
        )
        asyncio.run(self.track.start())

    @rule()
    def ask(self) -> None:
        asyncio.run(self.track.request())

    @rule(result=results | json_values)
    def call(self, result: Any) -> None:
        asyncio.run(self.track.call(Call(call_id="c", tool="look"), lambda: result))

    @rule(lines=st.integers(1, 400), word=st.sampled_from(["src/a.py", "order_77", "value"]))
    def read(self, lines: int, word: str) -> None:
        text = "\n".join(f"{number}: {word}_{number}" for number in range(lines))
        asyncio.run(self.track.call(Call(call_id="c", tool="look", args={"path": word}), lambda **_: text))

    @rule(text=texts)
    def hear(self, text: str) -> None:
        asyncio.run(self.track.user(text))

    @invariant()
    def the_packet_is_what_the_stream_folds_to(self) -> None:
        if hasattr(self, "track"):
            events = asyncio.run(self._events())
            assert canonical(project(events)) == canonical(self.track.packet)
            assert replay(events).first_difference is None

    @invariant()
    def no_prompt_was_over_its_limit(self) -> None:
        if hasattr(self, "track"):
            assert self.track.largest_prompt <= LIMIT

    async def _events(self) -> list[Event]:
        return [event async for event in self.writer.read("traces/01STATE")]


TestAnAgent = AnAgent.TestCase
TestAnAgent.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
