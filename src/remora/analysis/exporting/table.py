"""Turns as CSV: one row for each call, and one for each turn without a call."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from io import StringIO

from remora.analysis.exporting.complete import CompleteStream, counted, json_text
from remora.context.text import one_line, visible
from remora.events import (
    Call,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    PacketDelta,
    ToolResultEvent,
    is_check,
)
from remora.subagent import SUBMIT_RESULT_TOOL

COLUMNS = (
    "agent_id", "run_id", "operation", "node_id", "turn", "seq", "time", "model", "prompt_tokens", "prompt_limit",
    "output_tokens", "left_out", "tool", "arguments", "outcome", "duration_ms", "raw_bytes", "summary",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV. A text that a spreadsheet would run as a formula gets a leading apostrophe.

    Control characters are written as escapes: a terminal would act on them, and other readers stop at a NUL.
    """
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows([_safe(cell) for cell in row] for row in rows)
    return out.getvalue()


def turn_rows(stream: CompleteStream) -> Iterator[tuple[object, ...]]:
    """The rows of one stream, by `COLUMNS`."""
    asked: ModelRequestEvent | None = None
    reply: ModelResponseEvent | None = None
    calls: dict[str, Call] = {}
    answered = {event.call_id for event in stream.events if isinstance(event, ToolResultEvent)}
    for event in stream.events:
        match event:
            case ModelRequestEvent():
                asked = event
            case ModelResponseEvent():
                asked = None if event.rule else asked
                reply, calls = event, {call.call_id: call for call in event.calls}
                for call in event.calls or (None,):
                    if call is None or call.call_id not in answered:
                        yield _row(stream, event, asked, reply, call)
            case ToolResultEvent() if not is_check(event) and event.turn:
                yield _row(stream, event, asked, reply, calls.get(event.call_id))
            case _:
                pass


def _row(
    stream: CompleteStream,
    event: Event,
    asked: ModelRequestEvent | None,
    reply: ModelResponseEvent | None,
    call: Call | None,
) -> tuple[object, ...]:
    result = event if isinstance(event, ToolResultEvent) else None
    sent, came = counted(reply.usage) if reply else (None, None)
    if sent is None and asked:
        sent = asked.tokens.get("total")
    delta = result.delta if result and isinstance(result.delta, PacketDelta) else None
    return (
        event.agent_id,
        event.run_id,
        event.operation,
        event.node_id,
        event.turn,
        event.seq,
        event.ts,
        (stream.model_of(reply) if reply else "") or stream.model,
        "" if sent is None else sent,
        asked.limit if asked else "",
        "" if came is None else came,
        " ".join(f"{name}={count}" for name, count in asked.left_out.items()) if asked else "",
        result.tool if result else call.tool if call else "",
        json_text(call.args) if call else "",
        result.outcome if result else _outcome(reply, call),
        result.duration_ms if result else "",
        len(stream.raws.get(result.seq, "").encode(errors="replace")) if result else "",
        one_line(delta.action.summary if delta and delta.action else ""),
    )


def _outcome(reply: ModelResponseEvent | None, call: Call | None) -> str:
    """The outcome of a row without a result."""
    if reply and reply.error:
        return reply.error
    if call is None:
        return "answered"
    return "submitted" if call.tool == SUBMIT_RESULT_TOOL else "no result"


def _safe(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    shown = visible(cell)
    return f"'{shown}" if cell.startswith(_FORMULA) else shown
