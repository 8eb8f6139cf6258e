"""The tokens that a run sent, turn by turn, and what chat history would have sent, counted by the same counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from pydantic import ValidationError

from remora.analysis._grounding import Grounding, grounding
from remora.analysis._turns import history_tokens
from remora.context.contracts import ToolSpec
from remora.context.evidence import MESSAGE_OVERHEAD
from remora.context.text import message_text
from remora.events import AgentStartEvent, Event, ModelRequestEvent, ToolResultEvent
from remora.ports import TokenCounter


@dataclass(frozen=True)
class TokenRow:
    """One turn."""

    turn: int
    history: int
    """All messages, calls and results so far, as a chat would send them."""
    packet: int
    """The whole prompt that was sent: system text, tools and packet."""
    limit: int
    left_out: dict[str, int] = field(default_factory=dict)
    """Parts of the packet that were left out, by field."""
    needed: int = 0
    """Words that the turn's calls took from the past: identifiers and numbers."""
    missing: tuple[str, ...] = ()
    """Those that the prompt did not show."""


@dataclass(frozen=True)
class TokenReport:
    """The tokens of a run."""

    agent_id: str
    counter: str
    """Which counter counted."""
    exact: bool
    kept_by: str
    """Which counter kept the prompts within their limit during the run."""
    rows: tuple[TokenRow, ...]
    largest_packet: int
    largest_history: int
    sent: int
    """All prompts together."""
    history_sent: int
    """The same for chat history."""
    left_out: dict[str, int]
    """By field, in how many turns some of it was left out."""
    recall: float | None = None
    """Of the words that calls took from the past, the mean share that their prompts showed; None without such words."""
    grounded: float | None = None
    """The share of turns in which none of them was missing."""
    operation: str = ""
    is_recorded: bool = True
    """Whether the stream has the prompts. Without packets, those of an imported log are built when asked for."""


def token_report(
    events: Sequence[Event], system: str, raw_text: Callable[[ToolResultEvent], str], counter: TokenCounter
) -> TokenReport:
    """The tokens of a run whose prompts all began with `system`."""
    history = chat_tokens(events, system, raw_text, counter)
    before = counter.count(system) + counter.count(tools_beside(events, system))
    requests = [event for event in events if isinstance(event, ModelRequestEvent)]
    found = grounding(events, system, raw_text)
    rows = tuple(
        replace(
            _row(event, history.get(event.turn, 0), before, counter),
            needed=used.needed,
            missing=used.missing,
        )
        for event in requests
        for used in [found.get(event.turn, Grounding(0))]
    )
    scored = list(found.values())
    return TokenReport(
        agent_id=events[0].agent_id if events else "",
        operation=events[0].operation if events else "",
        is_recorded=all(event.seq >= 0 for event in requests),
        counter=counter.name,
        exact=counter.exact,
        kept_by=str(requests[-1].counter.get("name", "")) if requests else "",
        rows=rows,
        largest_packet=max((row.packet for row in rows), default=0),
        largest_history=max((row.history for row in rows), default=0),
        sent=sum(row.packet for row in rows),
        history_sent=sum(row.history for row in rows),
        left_out=dict(Counter(name for row in rows for name in row.left_out)),
        recall=sum(used.shown / used.needed for used in scored) / len(scored) if scored else None,
        grounded=sum(not used.missing for used in scored) / len(scored) if scored else None,
    )


def chat_tokens(
    events: Sequence[Event], system: str, raw_text: Callable[[ToolResultEvent], str], counter: TokenCounter
) -> dict[int, int]:
    """By turn, what chat history would have sent, including tools that were sent outside the messages."""
    tools = counter.count(tools_beside(events, system))
    return {turn: sent + tools for turn, sent in history_tokens(events, system, raw_text, counter).items()}


def tools_beside(events: Iterable[Event], system: str) -> str:
    """The tools that were sent outside the messages, as JSON: those that the system text does not list."""
    tools: tuple[dict[str, Any], ...] = ()
    for event in events:
        # Tools that were known only at the first request are in its receipt.
        if isinstance(event, AgentStartEvent | ModelRequestEvent):
            tools = event.tools or tools
        if isinstance(event, ModelRequestEvent):
            break
    beside = [_sent(tool) for tool in tools if f'"name":{_json(tool.get("name"))}' not in system]
    return _json(beside) if beside else ""


def _sent(tool: dict[str, Any]) -> dict[str, Any]:
    try:
        return ToolSpec.model_validate(tool).openai()
    except ValidationError:
        return tool


def _row(event: ModelRequestEvent, history: int, before: int, counter: TokenCounter) -> TokenRow:
    shown = [message_text(message) for message in event.messages if message.get("role") != "system"]
    packet = before + sum(map(counter.count, shown)) + MESSAGE_OVERHEAD * len(event.messages)
    return TokenRow(event.turn, history, packet, event.limit, dict(event.left_out))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
