"""Records one imported conversation on both tracks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from remora.analysis.logs import AssistantTurn, Conversation
from remora.events import AgentEndEvent, Call, Event, ToolCallEvent, TurnStartEvent
from remora.ports import Decision, ToolOutput
from remora.twotrack import Track

_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
"""The log's counts are of the prompts that were really sent. Under these names reports do not take them for ours."""

BATCH = 64
"""Events that are written with one append."""


class ImportTrack(Track):
    """A track whose model and tools have already run elsewhere.

    Nothing waits for the disk before it acts, so that events are folded first and written in batches.
    """

    call_seqs: dict[str, int]
    """By the id of a call that started another agent, the seq of its record."""
    _launching: frozenset[str]
    """The ids of the calls that started other agents."""
    _batch: list[Event]
    """Events that are numbered and not yet written."""

    async def record(self, found: Conversation, parent: Mapping[str, Any], *, packets: bool) -> None:
        """Record every step of a conversation. Its last events may not be written before `seal`."""
        self.call_seqs, self._batch = {}, []
        self._launching = frozenset(found.launches.values())
        self.context.only_turns = not packets
        model = {"name": found.model} if found.model else None
        await self.start(parent=parent, model=model, system="" if packets else found.system)
        for code, sentence in found.notices:
            await self.notice(code, sentence)
        for kind, count in found.unknown.items():
            await self.notice("not_understood", f"{count} × `{kind}` in the log was not understood and is left out")
        for step in found.steps():
            if len(self._batch) >= BATCH:
                await self._flush()
            if isinstance(step, AssistantTurn):
                await self._turn(step, found, packets)
            else:
                await self.user(step.text)
        await asyncio.sleep(0)  # a short conversation waits for nothing, and Ctrl-C needs its turn

    async def seal(self) -> None:
        """Write what is left, and seal the stream."""
        await self.end(AgentEndEvent(reason="imported"))

    async def _turn(self, step: AssistantTurn, found: Conversation, packets: bool) -> None:
        if packets:
            await self.request()
        else:
            await self.context.record(TurnStartEvent(turn=self.packet.turn + 1))
            self.awaits_reply = True
        model = step.model or found.model
        usage = {_USAGE.get(name, name): count for name, count in step.usage.items()}
        await self.response(Decision(step.calls, step.text, model, usage, reasoning=step.thinking))
        for index, call in enumerate(step.calls):
            if call.call_id in self._launching:
                self.call_seqs[call.call_id] = self.last_seq + 1
            if index not in step.results:
                await self.unanswered(call, "The log holds no result of this call")
            else:
                await self._past_call(call, step.results[index], failed=index in step.failed)

    async def _append(self, drafts: Sequence[Event]) -> Sequence[Event]:
        """Number the drafts as the writer will, for the fold, and write them with the next batch."""
        identity, turn = self.identity.fields(), self.packet.turn
        numbered = []
        for draft in drafts:
            self.last_seq += 1
            stamp = {**identity, "turn": draft.turn or turn, "seq": self.last_seq}
            numbered.append(self._offloader.redact(draft).model_copy(update=stamp))
        self._batch += numbered
        if isinstance(numbered[-1], AgentEndEvent):
            await self._flush()  # with all that was left
        return numbered

    async def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if batch:
            await self._writer.append(self.identity.stream_id, batch)
        await asyncio.sleep(0)  # nothing else here waits, and Ctrl-C needs its turn

    async def _past_call(self, call: Call, result: Any, *, failed: bool) -> None:
        """Record a call and its result. Unlike a live call, it has a result even if its arguments are large."""
        args = (await self._offloader.call(call)).args
        await self.context.record(ToolCallEvent(call_id=call.call_id, tool=call.tool, args=args, effects="outside"))
        await self._record_output(call, ToolOutput(result), (), 0.0, "error" if failed else None)
