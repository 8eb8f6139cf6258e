"""OpenTelemetry spans as they happen: `spans = LiveSpans.on(tt)`, before the stream is opened.

One span for the run, one for each request of the model, one for each call, with the attributes of the GenAI
conventions. They name the stream and the `seq` of its events. Messages, arguments and results are not in them: those
stay in the stream.
"""

from __future__ import annotations

from typing import Any, Self

from remora.errors import MissingExtra
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from remora.twotrack import Track

try:
    from opentelemetry import trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ImportError:
    raise MissingExtra("OpenTelemetry's API", extra="otel") from None


class LiveSpans:
    """Starts and ends spans while a stream is recorded. `tracer` is the global one unless you pass another."""

    def __init__(self, tracer: Any = None) -> None:
        self._tracer = tracer or trace.get_tracer("remora")
        self._run: Any = None
        self._request: Any = None
        self._calls: dict[str, Any] = {}

    @classmethod
    def on(cls, track: Track, tracer: Any = None) -> Self:
        """Make spans of everything that `track` records from now on."""
        spans = cls(tracer)
        track.observers.append(spans.take)
        return spans

    def take(self, event: Event) -> None:
        """Start or end the span that belongs to an event."""
        match event:
            case AgentStartEvent():
                self._run = self._start(f"invoke_agent {event.name or event.operation}".strip(), "invoke_agent", event)
            case ModelRequestEvent():
                self._end(self._request)
                self._request = self._start("chat", "chat", event, kind=SpanKind.CLIENT)
                self._request.set_attribute("remora.prompt.tokens", event.tokens.get("total", 0))
            case ModelResponseEvent() if self._request is not None:
                self._request.set_attributes(_usage(event))
                self._end(self._request, event.error)
                self._request = None
            case ToolCallEvent():
                span = self._start(f"execute_tool {event.tool}", "execute_tool", event)
                span.set_attributes({"gen_ai.tool.name": event.tool, "gen_ai.tool.call.id": event.call_id})
                self._calls[event.call_id] = span
            case ToolResultEvent():
                failed = event.outcome if event.outcome in ("error", "unknown") else ""
                self._end(self._calls.pop(event.call_id, None), failed)
            case AgentErrorEvent() if self._run is not None:
                self._run.set_attribute("error.type", event.code)
            case AgentEndEvent():
                for span in (*self._calls.values(), self._request):
                    self._end(span, "no_result")
                self._end(self._run, "" if event.outcome in ("success", "partial") else event.outcome)

    def _start(self, name: str, operation: str, event: Event, kind: Any = None) -> Any:
        parent = trace.set_span_in_context(self._run) if self._run is not None else None
        span = self._tracer.start_span(name, context=parent, kind=kind or SpanKind.INTERNAL)
        span.set_attributes(
            {"gen_ai.operation.name": operation, "gen_ai.agent.id": event.agent_id, "remora.seq": event.seq}
        )
        return span

    def _end(self, span: Any, error: str = "") -> None:
        if span is None:
            return
        if error:
            span.set_attribute("error.type", error)
            span.set_status(Status(StatusCode.ERROR, error))
        span.end()


def _usage(event: ModelResponseEvent) -> dict[str, Any]:
    names = {
        "gen_ai.response.model": event.model or None,
        "gen_ai.usage.input_tokens": event.usage.get("input_tokens", event.usage.get("prompt_tokens")),
        "gen_ai.usage.output_tokens": event.usage.get("output_tokens", event.usage.get("completion_tokens")),
    }
    return {name: value for name, value in names.items() if isinstance(value, str | int)}
