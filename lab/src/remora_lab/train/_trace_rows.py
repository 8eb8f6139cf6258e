"""Rows from traces: the prompts exactly as they were sent, and the calls that proved right.

A run counts if its end was verified: the agent's own check found nothing left, or, where an agent has no check, a
person accepted what it wrote. Of such a run each turn counts that made one call, which neither failed nor repeated
itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from remora.context.contracts import ToolSpec
from remora.errors import TraceError
from remora.events import (
    AgentEndEvent,
    AgentFinishedEvent,
    AgentStartEvent,
    BlobRef,
    Call,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    PacketDelta,
    SubmitResultEvent,
    ToolResultEvent,
    WorkspaceAcceptedEvent,
    WorkspaceRejectedEvent,
)
from remora.subagent import SUBMIT_RESULT_TOOL
from remora_lab.train._rows import TrainingRow, answer_text

_REPEATED = "Same call, same result"
_SECRET = "[secret:"  # noqa: S105 - what stands where one stood
Blobs = Callable[[str], Awaitable[bytes]]


@dataclass
class Verdicts:
    """What the streams of runs prove about their agents."""

    checked: dict[str, bool] = field(default_factory=dict)
    """By agent, whether its own check found nothing left."""
    accepted: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)

    def good(self, agent_id: str) -> bool:
        """Whether the agent's work was right, as far as anyone can tell."""
        if agent_id in self.rejected:
            return False
        return self.checked.get(agent_id, agent_id in self.accepted)


def read_verdicts(run_events: Iterable[Event]) -> Verdicts:
    """What is proven by these events of runs."""
    found = Verdicts()
    for event in run_events:
        match event:
            case AgentFinishedEvent(check=check) if check:
                found.checked[event.agent_id] = check.get("after") == 0
            case WorkspaceAcceptedEvent():
                found.accepted.add(event.agent_id)
            case WorkspaceRejectedEvent():
                found.rejected.add(event.agent_id)
            case _:
                pass
    return found


async def rows_of_stream(events: Sequence[Event], blobs: Blobs) -> list[TrainingRow]:
    """The rows of one agent's sealed stream; none where it did not end well, or calls by its server's own way."""
    start = next((event for event in events if isinstance(event, AgentStartEvent)), None)
    end = next((event for event in events if isinstance(event, AgentEndEvent)), None)
    if start is None or end is None or end.outcome != "success":
        return []
    tools = tools_of(start)
    made = [await _row(start, turn, tools, blobs) for turn in _turns(events)]
    return [row for row in made if row is not None]


@dataclass(frozen=True)
class _Turn:
    request: ModelRequestEvent
    call: Call


def _turns(events: Sequence[Event]) -> Iterator[_Turn]:
    """The turns whose one call was made and was no mistake."""
    good = {event.call_id for event in events if isinstance(event, ToolResultEvent) and not _is_mistake(event)}
    good |= {event.call_id for event in events if isinstance(event, SubmitResultEvent)}
    asked: ModelRequestEvent | None = None
    for event in events:
        if isinstance(event, ModelRequestEvent):
            asked = event
        elif isinstance(event, ModelResponseEvent) and asked is not None:
            if len(event.calls) == 1 and not event.error and event.calls[0].call_id in good:
                yield _Turn(asked, event.calls[0])
            asked = None


def _is_mistake(event: ToolResultEvent) -> bool:
    told = event.delta.diagnostics if isinstance(event.delta, PacketDelta) else ()
    return event.outcome in ("error", "unknown") or any(line.startswith(_REPEATED) for line in told)


async def _row(start: AgentStartEvent, turn: _Turn, tools: Sequence[ToolSpec], blobs: Blobs) -> TrainingRow | None:
    offered = [tool for tool in tools if tool.name in turn.request.offered or tool.name == SUBMIT_RESULT_TOOL]
    answer = answer_text(turn.call.tool, turn.call.args, offered)
    messages = await _messages(turn.request, blobs)
    if answer is None or messages is None or _SECRET in answer:
        return None
    name = f"{start.agent_id}/{turn.request.turn}"
    return TrainingRow(name, "trace", start.operation, turn.request.renderer, messages, answer)


async def _messages(request: ModelRequestEvent, blobs: Blobs) -> tuple[Mapping[str, Any], ...] | None:
    """The messages as they were sent; None where a part is gone, or where they are no plain texts."""
    made = []
    for message in request.messages:
        content = message.get("content")
        if message.get("content_ref"):
            try:
                content = (await blobs(BlobRef.model_validate(message["content_ref"]).blob)).decode()
            except (TraceError, ValidationError, UnicodeDecodeError):
                return None
        if not isinstance(content, str) or "tool_calls" in message or message.get("role") == "tool":
            return None
        made.append({"role": message["role"], "content": content})
    return tuple(made)


def tools_of(start: AgentStartEvent) -> list[ToolSpec]:
    """The tools that an agent was started with."""
    try:
        return [ToolSpec.model_validate(tool) for tool in start.tools]
    except ValidationError:
        return []
