"""A stream as OpenTelemetry spans, by the semantic conventions for generative AI, as OTLP/JSON.

One span `invoke_agent` for the agent; in it one span `chat` for each reply of a model and one span `execute_tool` for
each tool call. A reply whose prompt is not recorded, as in an imported log, has what was said since the reply before as
its input. An imported log begins when it took place; how long its steps took is not known. Ids are derived from the
stream, so that a second export gives the same spans. The agents of one run share a trace. A fork links to its parent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from remora._version import __version__
from remora.analysis.exporting.complete import CompleteStream, counted, json_text
from remora.events import (
    AgentErrorEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    ToolCallEvent,
    ToolResultEvent,
    UserInputEvent,
    is_check,
)

INTERNAL, CLIENT = 1, 3
ERROR = 2
LATEST = 2**63 - 1
"""The last moment that readers of spans can hold, in the year 2262."""
Json = dict[str, Any]
Clock = Callable[[str], int]
"""The nanoseconds since 1970 at a timestamp of an event."""


def otlp(streams: Iterable[CompleteStream], *, content: bool = False) -> Json:
    """An OTLP trace export request with the spans of these streams. `content` adds prompts, replies and results."""
    spans = [span for stream in streams for span in agent_spans(stream, content=content)]
    resource = {"attributes": _attributes({"service.name": "remora", "service.version": __version__})}
    scope = {"name": "remora", "version": __version__}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def agent_spans(stream: CompleteStream, *, content: bool = False) -> list[Json]:
    """The spans of one agent, its own first. What a fork inherited is left out: it is in its parent's trace."""
    own = [event for event in stream.events if event.seq == 0 or event.seq > stream.inherited]
    if not own:
        return []
    trace_id = trace_id_of(stream.start.run_id or stream.start.agent_id)
    agent_id = span_id_of(stream.start.agent_id, 0)
    clock = _clock(stream)
    inner = _Spans(stream, trace_id, agent_id, clock, content=content)
    return [_agent_span(stream, own, trace_id, agent_id, clock, content=content), *inner.of(own)]


def trace_id_of(name: str) -> str:
    """A trace id of 32 hexadecimal digits."""
    return hashlib.sha256(f"remora trace {name}".encode()).hexdigest()[:32]


def span_id_of(agent_id: str, seq: int) -> str:
    """A span id of 16 hexadecimal digits."""
    return hashlib.sha256(f"remora span {agent_id} {seq}".encode()).hexdigest()[:16]


def _clock(stream: CompleteStream) -> Clock:
    """The clock of a stream. That of an imported log begins when the log did, if the log says when."""
    began = nanoseconds(str((stream.start.parent or {}).get("started") or "")) if stream.is_imported else 0
    shift = began - nanoseconds(stream.start.ts) if began else 0
    return lambda ts: min(max(0, nanoseconds(ts) + shift), LATEST)


def _agent_span(
    stream: CompleteStream, own: Sequence[Event], trace_id: str, span_id: str, clock: Clock, *, content: bool
) -> Json:
    start, end = stream.start, stream.end
    failed = end is not None and end.outcome in ("error", "degraded", "cancelled")
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": _provider(stream),
        "gen_ai.agent.id": start.agent_id,
        "gen_ai.agent.name": start.operation or "agent",
        "gen_ai.request.model": stream.model,
        "gen_ai.conversation.id": start.run_id or start.agent_id,
        "remora.node_id": start.node_id,
        "remora.goal": start.goal,
        "remora.outcome": end.outcome if end else "unsealed",
        "remora.verdict": end.verdict if end else "",
        "error.type": (end.reason or end.outcome) if end and failed else "",
    }
    if content:
        attributes |= _conversation(stream, own)
    times = clock(own[0].ts), clock(own[-1].ts)
    span = _span(trace_id, span_id, "", f"invoke_agent {start.operation or 'agent'}", INTERNAL, *times)
    span["attributes"] = _attributes(attributes)
    span["events"] = [_span_event(event, clock) for event in own if isinstance(event, NoticeEvent | AgentErrorEvent)]
    if failed and end:
        span["status"] = {"code": ERROR, "message": end.summary or end.reason}
    parent = start.parent or {}
    if isinstance(parent.get("agent_id"), str):
        span["links"] = [
            {
                "traceId": trace_id_of(str(parent.get("run_id") or parent["agent_id"])),
                "spanId": span_id_of(parent["agent_id"], 0),
                "attributes": _attributes({"remora.relation": str(parent.get("relation", ""))}),
            }
        ]
    return span


def _conversation(stream: CompleteStream, own: Sequence[Event]) -> Json:
    """What people asked of an agent, and its last words."""
    said = [stream.text(event) for event in own if isinstance(event, UserInputEvent)]
    replies = [event for event in own if isinstance(event, ModelResponseEvent) and event.text]
    ended = stream.end.summary if stream.end else ""
    last = stream.text(replies[-1]) if replies and not (ended and replies[-1].calls) else ended
    asked = [_message("user", text) for text in (stream.start.goal, *said) if text]
    answer = {"role": "assistant", "parts": [_text_part(last)], "finish_reason": "stop"}
    return {
        "gen_ai.input.messages": json_text(asked) if asked else "",
        "gen_ai.output.messages": json_text([answer]) if last else "",
    }


def _message(role: str, text: str) -> Json:
    return {"role": role, "parts": [_text_part(text)]}


def _text_part(text: str) -> Json:
    return {"type": "text", "content": text}


class _Spans:
    """The spans inside an agent's."""

    def __init__(self, stream: CompleteStream, trace_id: str, parent: str, clock: Clock, *, content: bool) -> None:
        self._stream = stream
        self._trace_id = trace_id
        self._parent = parent
        self._clock = clock
        self._content = content

    def of(self, own: Sequence[Event]) -> list[Json]:
        asked: ModelRequestEvent | None = None
        calls: dict[str, ToolCallEvent] = {}
        news = [_message("user", self._stream.start.goal)] if self._stream.start.goal else []
        spans, before = [], own[0]
        for event in own:
            match event:
                case UserInputEvent():
                    news.append(_message("user", self._stream.text(event)))
                case ModelRequestEvent() if not self._stream.is_imported:
                    asked = event
                case ModelResponseEvent(rule=""):
                    spans.append(self._chat(asked, event, news, (asked or before).ts))
                    asked, news = None, []
                case ToolCallEvent(call_id=call_id):
                    calls[call_id] = event
                case ToolResultEvent(call_id=call_id) if call_id in calls:
                    spans.append(self._tool(calls.pop(call_id), event))
                    news += [] if is_check(event) else [self._returned(event)]
                case _:
                    pass
            before = event
        return spans

    def _chat(self, asked: ModelRequestEvent | None, reply: ModelResponseEvent, news: list[Json], began: str) -> Json:
        """The span of a reply. Without a recorded request, its input is the `news`: what was said since the last."""
        model = self._stream.model_of(reply) or self._stream.model
        seq = asked.seq if asked else reply.seq
        span = self._inner(seq, f"chat {model}".strip(), CLIENT, began, reply.ts)
        sent, came = counted(reply.usage)
        if sent is None and asked:
            sent = asked.tokens.get("total")
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _provider(self._stream),
            "gen_ai.request.model": self._stream.model,
            "gen_ai.response.model": self._stream.model_of(reply),
            "gen_ai.response.finish_reasons": [reply.finish] if reply.finish else None,
            "gen_ai.usage.input_tokens": sent,
            "gen_ai.usage.output_tokens": came,
            "remora.turn": reply.turn,
            "remora.prompt_limit": asked.limit or None if asked else None,
            "remora.prompt_sha256": asked.prompt_sha256 if asked else "",
            "error.type": reply.error,
        }
        if self._content:
            attributes |= self._prompt(asked) if asked else self._heard(news)
            attributes["gen_ai.output.messages"] = json_text([self._answer(reply)])
        span["attributes"] = _attributes(attributes)
        if reply.error:
            span["status"] = {"code": ERROR, "message": reply.error}
        return span

    def _heard(self, news: list[Json]) -> Json:
        system = self._stream.system
        return {
            "gen_ai.system_instructions": json_text([_text_part(system)]) if system else "",
            "gen_ai.input.messages": json_text(news) if news else "",
        }

    def _prompt(self, asked: ModelRequestEvent) -> Json:
        prompt = self._stream.prompt(asked)
        system = [_text_part(item["content"]) for item in prompt if item["role"] == "system"]
        shown = [_message(item["role"], item["content"]) for item in prompt if item["role"] != "system"]
        return {"gen_ai.system_instructions": json_text(system), "gen_ai.input.messages": json_text(shown)}

    def _answer(self, reply: ModelResponseEvent) -> Json:
        text = self._stream.text(reply)
        parts = [_text_part(text)] if text else []
        parts += [
            {"type": "tool_call", "id": call.call_id, "name": call.tool, "arguments": call.args} for call in reply.calls
        ]
        return {"role": "assistant", "parts": parts, "finish_reason": reply.finish or "stop"}

    def _returned(self, result: ToolResultEvent) -> Json:
        response = self._stream.raws.get(result.seq, "")
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": result.call_id, "response": response}]}

    def _tool(self, call: ToolCallEvent, result: ToolResultEvent) -> Json:
        failed = result.outcome in ("error", "unknown")
        span = self._inner(call.seq, f"execute_tool {call.tool}", INTERNAL, call.ts, result.ts)
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.type": "function",
            "remora.turn": call.turn,
            "remora.outcome": result.outcome,
            "remora.purpose": call.purpose,
            "remora.duration_ms": result.duration_ms,
            "error.type": result.outcome if failed else "",
        }
        span["attributes"] = _attributes(attributes)
        if self._content:
            given, got = json_text(call.args), self._stream.raws.get(result.seq, "")
            texts = {"gen_ai.tool.call.arguments": given, "gen_ai.tool.call.result": got}
            span["attributes"] += [{"key": key, "value": _value(text)} for key, text in texts.items()]
        if failed:
            span["status"] = {"code": ERROR, "message": result.outcome}
        return span

    def _inner(self, seq: int, name: str, kind: int, start: str, end: str) -> Json:
        span_id = span_id_of(self._stream.start.agent_id, seq)
        return _span(self._trace_id, span_id, self._parent, name, kind, self._clock(start), self._clock(end))


def _span(trace_id: str, span_id: str, parent: str, name: str, kind: int, first: int, last: int) -> Json:
    span: Json = {"traceId": trace_id, "spanId": span_id}
    if parent:
        span["parentSpanId"] = parent
    return span | {
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(first),
        "endTimeUnixNano": str(max(first, last)),
    }


def _span_event(event: NoticeEvent | AgentErrorEvent, clock: Clock) -> Json:
    attributes = _attributes({"remora.code": event.code, "remora.message": event.message})
    return {"timeUnixNano": str(clock(event.ts)), "name": event.type, "attributes": attributes}


def nanoseconds(ts: str) -> int:
    """A timestamp of an event since 1970; 0 if it has none, or one that spans cannot hold."""
    try:
        moment = datetime.fromisoformat(ts)
        found = int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
    except (ValueError, OverflowError):
        return 0
    return found if 0 <= found <= LATEST else 0


def _provider(stream: CompleteStream) -> str:
    return str(stream.start.model.get("policy") or "remora")


def _attributes(values: Json) -> list[Json]:
    """Attributes in OTLP's form. Empty values are left out."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value not in (None, "")]


def _value(value: Any) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list() | tuple():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
