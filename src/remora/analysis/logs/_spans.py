"""Spans of model calls, agents and tools in the conventions that are in use.

- OpenTelemetry's for generative AI: messages as attributes, as span events, or as one event with all of them
- OpenLLMetry's: one attribute for each field of a message (`gen_ai.prompt.0.role`)
- OpenInference's: the same with other names (`llm.input_messages.0.message.role`)
- Pydantic AI's older ones: a list of events in an attribute
- those of Google's Agent Development Kit: request and reply of Gemini's API as JSON

A span is read as OTLP JSON, or as the JSON of an SDK's span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from remora.analysis.logs._gemini import gemini_messages, gemini_tools
from remora.analysis.logs._history import ROLES

MODEL, AGENT, TOOL = "model", "agent", "tool"
MAX_DEPTH = 64
_OPERATIONS = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "completion", "LLM"), MODEL),
    **dict.fromkeys(("invoke_agent", "create_agent", "AGENT", "agent"), AGENT),
    **dict.fromkeys(("execute_tool", "TOOL", "tool"), TOOL),
}
_OPERATION_KEYS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "llm.request.type")
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
_WHOLE = (
    ("gen_ai.input.messages", "gen_ai.output.messages"),
    ("gen_ai.prompt", "gen_ai.completion"),
    ("pydantic_ai.all_messages", ""),
)
_FLAT = (("gen_ai.prompt", "gen_ai.completion"), ("llm.input_messages", "llm.output_messages"))
_ADK = ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response")
_RESULTS = (
    "gen_ai.tool.call.result",
    "tool_response",
    "gcp.vertex.agent.tool_response",
    "traceloop.entity.output",
    "output.value",
)
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "gcp.vertex.agent.tool_call_args",
    "tool.parameters",
    "traceloop.entity.input",
    "input.value",
)
_FAILED = (2, "STATUS_CODE_ERROR", "ERROR")


@dataclass(frozen=True)
class GenSpan:
    """One span, whatever wrote it."""

    trace: str
    id: str
    parent: str
    start: int
    given: Mapping[str, Any]
    """Its attributes by name."""
    events: Sequence[tuple[str, Mapping[str, Any]]] = ()
    failed: bool = False

    @property
    def kind(self) -> str:
        """Whether it is a call of a model, an agent or a tool; empty for anything else."""
        for key in _OPERATION_KEYS:
            if kind := _OPERATIONS.get(str(self.given.get(key) or "")):
                return kind
        if any(name in self.given for name in ("gen_ai.prompt.0.role", "llm.input_messages.0.message.role", _ADK[0])):
            return MODEL
        if "pydantic_ai.all_messages" in self.given or "all_messages_events" in self.given:
            return AGENT
        return TOOL if "tool_response" in self.given and "gen_ai.tool.name" in self.given else ""

    @property
    def model(self) -> str:
        return self.text("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")

    def text(self, *names: str) -> str:
        """The first of these attributes that is set."""
        return next((str(self.given[name]) for name in names if self.given.get(name)), "")[:200]

    def count(self, *names: str) -> int | None:
        found = next((self.given[name] for name in names if name in self.given), None)
        return nanos(found) if found is not None else None

    def result(self) -> tuple[bool, Any]:
        """Whether a tool's span has its result, and the result."""
        found = next((name for name in _RESULTS if name in self.given), "")
        value = self.given.get(found)
        read = json_of(value)
        return bool(found), value if read == [] else read  # an empty list is a result, not a message without parts

    @property
    def arguments(self) -> Any:
        """The arguments of a tool's span, as JSON text or an object; None if it has none."""
        return next((self.given[name] for name in _ARGUMENTS if name in self.given), None)

    def words(self, name: str) -> str:
        """An attribute that is plain text, such as what an agent was asked; empty if it is none."""
        value = self.given.get(name)
        return value if isinstance(value, str) and isinstance(json_of(value), str) else ""


def read_span(raw: Any) -> GenSpan | None:
    """A span of OTLP JSON, of an SDK, or as evaluation tools store it; None if it is none."""
    if not isinstance(raw, Mapping):
        return None
    context = _mapping(raw.get("context")) or raw
    ids = (_either(context, *_IDS[0]), _either(context, *_IDS[1]), _either(raw, *_IDS[2]))
    trace, own, parent = (str(each or "").removeprefix("0x")[:64] for each in ids)
    events = [each for each in _either(raw, "events", "span_events") or () if isinstance(each, Mapping)]
    named = [(str(_either(each, "name", "event_name")), attributes(each.get("attributes"))) for each in events]
    status = _either(_mapping(raw.get("status")), "code", "status_code")
    start = _moment(_either(raw, *_STARTS))
    return GenSpan(trace, own, parent, start, attributes(raw.get("attributes")), named, status in _FAILED)


_IDS = (("traceId", "trace_id"), ("spanId", "span_id"), ("parentSpanId", "parent_span_id", "parent_id"))
_STARTS = ("startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time")


def is_span(record: Any) -> bool:
    """Whether a record is a span by itself: as an SDK writes it, or with its ids beside its attributes."""
    context = _mapping(_mapping(record).get("context")) or _mapping(record)
    ids = (_either(context, *_IDS[0]), _either(context, *_IDS[1]))
    return all(isinstance(each, str) for each in ids) and isinstance(record.get("attributes"), Mapping | list)


def messages_of(span: GenSpan) -> tuple[list[Any], list[Any]]:
    """The messages that a model call sent, and those that came back."""
    for found in (_whole(span.given), *(_whole(given) for _, given in span.events), _of_events(span), _of_adk(span)):
        if found[0] or found[1]:
            return _clean(found[0]), _clean(found[1])
    for asked, answered in _FLAT:
        sent, came = ([_flat_message(each) for each in _unflattened(span.given, way)] for way in (asked, answered))
        if sent or came:
            said = [each for each in _clean(came) if not isinstance(each, Mapping) or each.keys() - {"role"}]
            return _clean(sent), [{"role": "assistant", **each} for each in said]
    return [], []


def _whole(given: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    for asked, answered in _WHOLE:
        sent, came = json_of(given.get(asked)), json_of(given.get(answered))
        if isinstance(sent, list) or isinstance(came, list):
            return sent if isinstance(sent, list) else [], came if isinstance(came, list) else []
    return [], []


def _of_events(span: GenSpan) -> tuple[list[Any], list[Any]]:
    """Messages as events: of the span, or in an attribute."""
    listed = list(span.events)
    for name in ("events", "all_messages_events"):
        inner = json_of(span.given.get(name))
        events = [event for event in inner if isinstance(event, Mapping)] if isinstance(inner, list) else []
        listed += [(str(event.get("event.name")), event) for event in events]
    asked: list[Any] = []
    replies: list[Any] = []
    for name, given in listed:
        if name not in _MESSAGE_EVENTS:
            continue
        body = {key.removeprefix("gen_ai."): json_of(value) for key, value in given.items()}
        inner = body.get("message")
        message = dict(inner if isinstance(inner, Mapping) else body) | {"role": _MESSAGE_EVENTS[name]}
        if name == "gen_ai.tool.message" and "tool_call_id" not in message:
            message["tool_call_id"] = message.get("id")
        (replies if name == "gen_ai.choice" else asked).append(message)
    return asked, replies


def _of_adk(span: GenSpan) -> tuple[list[Any], list[Any]]:
    """Request and reply of a model call of Google's Agent Development Kit."""
    asked, replied = (_mapping(json_of(span.given.get(name))) for name in _ADK)
    return gemini_messages(asked.get("contents")), gemini_messages(replied.get("content"))


def _unflattened(given: Mapping[str, Any], prefix: str) -> list[Any]:
    """Objects whose fields are attributes of their own, such as `gen_ai.prompt.0.tool_calls.0.name`."""
    root: dict[str, Any] = {}
    for key, value in given.items():
        path = key.removeprefix(f"{prefix}.").split(".")
        if not key.startswith(f"{prefix}.") or not path[0].isdigit() or len(path) > MAX_DEPTH:
            continue
        at = root
        for name in path[:-1]:
            below = at.setdefault(name, {})
            at = below if isinstance(below, dict) else {}
        at[path[-1]] = value
    return _numbered(root)


def _flat_message(fields: Any) -> Any:
    given = _mapping(fields)
    given = _mapping(given.get("message")) or given
    message: dict[str, Any] = {key: value for key, value in given.items() if isinstance(value, str)}
    listed = _numbered(given.get("contents")) or _numbered(given.get("content"))
    parts = [_mapping(each).get("message_content", each) for each in listed]
    if parts:
        message["content"] = parts
    elif isinstance(message.get("content"), str) and message["content"].startswith("[{"):
        message["content"] = json_of(message["content"])
    calls = [_mapping(each).get("tool_call", each) for each in _numbered(given.get("tool_calls"))]
    return message | ({"tool_calls": calls} if calls else {})


def _numbered(fields: Any) -> list[Any]:
    """The values of an object whose keys are numbers, in their order."""
    pairs = [(int(key), value) for key, value in _mapping(fields).items() if key.isdigit() and len(key) < 7]
    return [value for _, value in sorted(pairs, key=lambda pair: pair[0])]


def _clean(messages: list[Any]) -> list[Any]:
    """The messages with our roles. A content that is an object is its text again: results are often JSON."""
    return [_clean_message(each) if isinstance(each, Mapping) else each for each in messages]


def _clean_message(message: Mapping[str, Any]) -> dict[str, Any]:
    role, content = message.get("role"), message.get("content")
    changed: dict[str, Any] = {"role": ROLES[role]} if isinstance(role, str) and role in ROLES else {}
    if isinstance(content, Mapping):
        changed["content"] = orjson.dumps(content).decode()
    return {**message, **changed}


def attributes(listed: Any) -> dict[str, Any]:
    """Attributes as plain values by key: OTLP lists them as pairs."""
    if isinstance(listed, Mapping):
        return dict(listed)
    pairs = listed if isinstance(listed, list) else ()
    return {str(each.get("key")): _plain(each.get("value")) for each in pairs if isinstance(each, Mapping)}


def _plain(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, Mapping) or depth > MAX_DEPTH:
        return value
    for key, held in value.items():
        if key in _SIMPLE:
            return held
        inner = held.get("values") if isinstance(held, Mapping) else None
        items = [each for each in inner if isinstance(each, Mapping)] if isinstance(inner, list) else []
        if key in ("arrayValue", "array_value"):
            return [_plain(each, depth + 1) for each in items]
        if key in ("kvlistValue", "kvlist_value"):
            return {str(each.get("key")): _plain(each.get("value"), depth + 1) for each in items}
    return None


_SIMPLE = frozenset(
    f"{kind}{ending}" for kind in ("string", "bool", "double", "int", "bytes") for ending in ("Value", "_value")
)


def json_of(value: Any) -> Any:
    """A value that may be written as JSON text."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{", '"'):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def nanos(value: Any) -> int:
    """A number that OTLP may write as text."""
    text = isinstance(value, str) and value.isdigit() and len(value) < 25
    return int(value) if text or (isinstance(value, int) and not isinstance(value, bool)) else 0


def _moment(value: Any) -> int:
    """A time in nanoseconds: as a number, or as a date. A long number can be read as a date too, so it comes first."""
    if found := nanos(value):
        return found
    try:
        return int(datetime.fromisoformat(str(value)).timestamp() * 1e9)
    except (ValueError, OverflowError):
        return 0


def _either(raw: Mapping[str, Any], *names: str) -> Any:
    return next((raw[name] for name in names if name in raw), None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def request_facts(spans: Iterator[GenSpan]) -> dict[str, Any]:
    """What the first model call or agent says about the request: system text, tools, model."""
    facts: dict[str, Any] = {"system": "", "tools": None, "model": ""}
    for span in spans:
        given = span.given
        adk = _mapping(_mapping(json_of(given.get(_ADK[0]))).get("config"))
        system = json_of(given.get("gen_ai.system_instructions")) or adk.get("system_instruction")
        tools = json_of(given.get("gen_ai.tool.definitions")) or _flat_tools(given) or gemini_tools(adk.get("tools"))
        facts["system"], facts["tools"] = facts["system"] or system or "", facts["tools"] or tools
        facts["model"] = facts["model"] or span.model
        if span.kind == MODEL:
            break
    return facts


def _flat_tools(given: Mapping[str, Any]) -> list[Any]:
    functions = map(_mapping, _unflattened(given, "llm.request.functions"))
    schemas = [_mapping(_mapping(each).get("tool")).get("json_schema") for each in _unflattened(given, "llm.tools")]
    return [*({**each, "parameters": json_of(each.get("parameters"))} for each in functions), *map(json_of, schemas)]
