"""The blindness check: where a task failed, would the raw output have helped?

At the first turn that the oracle would not have taken, the same model is asked again, with the packet alone and with
the packet and the raw output of the last tool. What raw rescues, our summaries and excerpts have hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from remora.app import Deciders, Project
from remora.config import Config
from remora.context.contracts import ToolSpec
from remora.context.text import one_line
from remora.errors import DecisionError, TraceError
from remora.events import (
    AgentStartEvent,
    BlobRef,
    Event,
    ModelRequestEvent,
    ToolResultEvent,
    is_check,
    readable,
    unpack,
)
from remora.ports import BlobStore, Prompt, blob_limit
from remora.subagent import SubagentDefinition
from remora_lab.bench.answers import Answer, Answers
from remora_lab.bench.bench import open_deciders
from remora_lab.bench.results import Choice, Result
from remora_lab.bench.rows import ROWS, Models, TableRow
from remora_lab.bench.shadow import is_among, plain
from remora_lab.bench.trial import stops_bench

RAW_HEADING = "Raw output of the last tool:"
MAX_RAW = 60_000
"""Characters of a raw output that a report shows or a prompt is tried with."""


@dataclass(frozen=True)
class DecisiveTurn:
    """What a failed agent saw at the turn that decided, and what was there to be seen."""

    result: Result
    prompt: Prompt
    definition: SubagentDefinition
    tool: str
    """Whose output was the last; empty where none had run."""
    raw: str


@dataclass(frozen=True)
class Recheck:
    """What the model calls when it is asked again."""

    sight: DecisiveTurn
    packet: Choice | None = None
    with_raw: Choice | None = None
    asked: bool = False

    @property
    def right_by_packet(self) -> bool:
        return self.packet is not None and is_among(self.packet, self.sight.result.choices)

    @property
    def right_by_raw(self) -> bool:
        return self.with_raw is not None and is_among(self.with_raw, self.sight.result.choices)

    @property
    def rescued(self) -> bool:
        """Raw led to a right call, and the packet alone did not."""
        return self.right_by_raw and not self.right_by_packet


@dataclass(frozen=True)
class LostStream:
    """A failure that cannot be looked at: its stream is gone or unreadable."""

    result: Result
    why: str


@dataclass(frozen=True)
class BlindnessSummary:
    """The measure of our summaries and excerpts."""

    failures: int
    """Failed trials on two tracks."""
    no_wrong_turn: int
    """Of these, trials in which every call was one of the oracle's."""
    asked_again: int
    right_by_packet: int
    right_by_raw: int
    rescued: int
    rescued_by_tool: Mapping[str, int]
    """By the tool whose output was hidden."""
    lost: int = 0
    """Failures that could not be looked at."""

    @property
    def share(self) -> float | None:
        """Of the failures that were asked again, those that raw rescues."""
        return self.rescued / self.asked_again if self.asked_again else None


def failures(results: Sequence[Result]) -> list[Result]:
    """Failed trials in which a packet was shown and a stream was kept."""
    shown = [one for one in results if not one.solved and one.stream and _row(one).memory == "packet"]
    return [one for one in shown if one.wrong_turn and one.choices]


def summarize_blindness(results: Sequence[Result], looked: Sequence[Recheck | LostStream]) -> BlindnessSummary:
    """The counts of all failures."""
    failed = [one for one in results if not one.solved and one.turns and _row(one).memory == "packet"]
    asked = [one for one in looked if isinstance(one, Recheck) and one.asked]
    rescued = [one for one in asked if one.rescued]
    return BlindnessSummary(
        failures=len(failed),
        no_wrong_turn=sum(not one.wrong_turn for one in failed),
        asked_again=len(asked),
        right_by_packet=sum(one.right_by_packet for one in asked),
        right_by_raw=sum(one.right_by_raw for one in asked),
        rescued=len(rescued),
        rescued_by_tool=dict(Counter(f"{one.sight.result.operation}.{one.sight.tool}" for one in rescued)),
        lost=sum(isinstance(one, LostStream) for one in looked),
    )


async def recheck_failures(
    failed: Sequence[Result],
    folder: Path,
    models: Models | None,
    *,
    row: TableRow | None = None,
    answers: Answers | None = None,
) -> AsyncIterator[Recheck | LostStream]:
    """Every failure, and what its own model says now; with `row` that row's model, without `models` nobody.

    What stands in `answers` is not asked again; what is asked stands there before it is given.
    """
    for name in dict.fromkeys(one.row for one in failed):
        group = [one for one in failed if one.row == name]
        asking = row or _row(group[0])
        async with _asker(asking, models) as asker:
            for one in group:
                yield await _looked(one, folder, asker, answers)


@dataclass(frozen=True)
class _Asker:
    """Who is asked again, and under which name its answers are kept."""

    model: str
    found: Deciders


@asynccontextmanager
async def _asker(row: TableRow, models: Models | None) -> AsyncIterator[_Asker | None]:
    """The row's model, ready to be asked; None where nobody is to be asked."""
    if models is None or not row.asks_model:
        yield None
        return
    async with open_deciders(row, 0, replace(models, temperature=0.0)) as found:
        yield _Asker(models.name(row), found) if found else None


async def _looked(result: Result, folder: Path, asker: _Asker | None, answers: Answers | None) -> Recheck | LostStream:
    try:
        sight = await find_decisive_turn(result, folder)
    except (TraceError, ValidationError) as error:
        return LostStream(result, one_line(str(error)))
    if asker is None:
        return Recheck(sight)
    answer = answers.of(result, asker.model) if answers else None
    if answer is None:
        answer = await _asked(sight, asker)
        if answers is not None:
            answers.add(answer)
    return Recheck(sight, answer.packet, answer.with_raw, asked=True)


async def find_decisive_turn(result: Result, folder: Path) -> DecisiveTurn:
    """The deciding turn, read from the stream. Raises `TraceError` if it is not there."""
    state = folder / result.stream
    app = Project(state, state, Config())
    before: list[Event] = []
    for event in app.library.events(result.agent_id):
        before.append(event)
        if isinstance(event, ModelRequestEvent) and event.turn == result.wrong_turn:
            return await _sight(result, before, event, app.blobs)
    raise TraceError(f"`{state}` has no prompt of turn {result.wrong_turn}")


async def _sight(result: Result, events: Sequence[Event], asked: ModelRequestEvent, blobs: BlobStore) -> DecisiveTurn:
    start = next((event for event in events if isinstance(event, AgentStartEvent)), None)
    if start is None:
        raise TraceError(f"The stream of `{result.agent_id}` has no beginning")
    results = [event for event in events if isinstance(event, ToolResultEvent) and not is_check(event)]
    last = results[-1] if results else None
    specs = [ToolSpec.model_validate(tool) for tool in start.tools if tool.get("name") in asked.offered]
    messages = tuple([await _message(message, blobs) for message in asked.messages])
    raw = readable(await _raw(last, blobs)) if last else ""
    definition = SubagentDefinition.model_validate(start.definition)
    return DecisiveTurn(
        result, Prompt(messages, tuple(specs), (), asked.turn), definition, last.tool if last else "", raw
    )


async def _message(message: Mapping[str, Any], blobs: BlobStore) -> dict[str, Any]:
    if not message.get("content_ref"):
        return dict(message)
    reference = BlobRef.model_validate(message["content_ref"])
    kept = {key: value for key, value in message.items() if key != "content_ref"}
    return kept | {"content": (await blobs.get(reference.blob, limit=blob_limit(reference))).decode()}


async def _raw(event: ToolResultEvent, blobs: BlobStore) -> Any:
    if event.raw_ref is None:
        return event.raw
    data = await blobs.get(event.raw_ref.blob, limit=blob_limit(event.raw_ref))
    return unpack(data, event.raw_ref.encoding)


async def _asked(sight: DecisiveTurn, asker: _Asker) -> Answer:
    """Both answers. Raises `DecisionError` where nobody would answer for the other failures either."""
    policy = asker.found.policy(sight.definition)

    async def call(prompt: Prompt) -> Choice | None:
        try:
            decision = await policy.decide(prompt)
        except DecisionError as error:
            if stops_bench(error):
                raise
            return None
        return plain(decision.calls[0]) if decision.calls else None

    packet, raw = await call(sight.prompt), await call(with_raw(sight, asker.found))
    return Answer(agent_id=sight.result.agent_id, model=asker.model, packet=packet, with_raw=raw)


def with_raw(sight: DecisiveTurn, found: Deciders) -> Prompt:
    """The prompt and, at its end, as much of the raw output as the model has room for."""
    *rest, last = sight.prompt.messages
    room = found.limit(1_000_000)
    raw = sight.raw[:MAX_RAW]
    while True:
        text = f"{last['content']}\n\n{RAW_HEADING}\n{raw}"
        whole = sum(found.counter.count(str(message.get("content") or "")) for message in rest)
        if not raw or whole + found.counter.count(text) + 64 <= room:
            return replace(sight.prompt, messages=(*rest, {**last, "content": text}))
        raw = raw[: len(raw) * 3 // 4]


def _row(result: Result) -> TableRow:
    return ROWS.get(result.row, TableRow(result.row, result.row, "server"))
