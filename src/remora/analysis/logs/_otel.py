"""OpenTelemetry GenAI spans in OTLP JSON: a file of the collector, or one export request.

A span of a model call holds the messages that it sent and those that came back. Spans of tools hold arguments and
results. Spans come in any order, so a first pass notes where each is, and a second one reads them by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson

from remora.analysis.logs._blocks import result_of, text_of, tools_of
from remora.analysis.logs._conversation import Conversation, Link, checked
from remora.analysis.logs._document import Document
from remora.analysis.logs._messages import MessageReader
from remora.analysis.logs._source import LogFile, LogProblem, Span
from remora.analysis.logs._steps import Assembler, Step, UserMessage

FORMAT = "OpenTelemetry"
_CHAT = ("chat", "text_completion", "generate_content")
_AGENT = ("invoke_agent", "create_agent")
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
MAX_SPANS = 1_000_000
MAX_DEPTH = 64


def is_otlp(fields: Mapping[str, Any]) -> bool:
    """Whether a document holds OTLP spans."""
    return "resourceSpans" in fields or "resource_spans" in fields


@dataclass(frozen=True)
class _Place:
    """Where a GenAI span is, and how it hangs together with others."""

    trace: str
    span: str
    parent: str
    start: int
    operation: str
    at: Span


def otel_conversations(log: LogFile, documents: Iterator[tuple[str, Span]]) -> Iterator[Conversation | LogProblem]:
    """One conversation for each agent of each trace."""
    places: list[_Place] = []
    parents: dict[tuple[str, str], tuple[str, str]] = {}
    for place, at in documents:
        try:
            for found in _spans(log, at, parents):
                places.append(found)
                if len(places) > MAX_SPANS:
                    yield LogProblem(f"{log.name}: more than {MAX_SPANS:,} spans of models and tools")
                    return
        except LogProblem as problem:
            yield LogProblem(f"{place}: {problem}")
    groups: dict[tuple[str, str], list[_Place]] = {}
    for found in sorted(places, key=lambda each: each.start):
        if found.operation not in _AGENT:
            groups.setdefault((found.trace, _owner(found, parents)), []).append(found)
    if not groups:
        yield LogProblem(f"{log.name}: no span of a model or a tool with `gen_ai.operation.name`")
    for (trace, owner), own in groups.items():
        above = _owner(_Place(trace, owner, parents.get((trace, owner), ("", ""))[0], 0, "", own[0].at), parents)
        draft = Conversation(
            f"{log.name}#{owner or trace}",
            FORMAT,
            partial(_read, log, own),
            session=f"{trace}/{owner}",
            parent=Link(f"{trace}/{above}") if owner and above != owner and (trace, above) in groups else None,
        )
        try:
            yield checked(_with_request(log, draft, own), "spans")
        except LogProblem as problem:
            yield LogProblem(f"{draft.source}: {problem}")


def _spans(log: LogFile, at: Span, parents: dict[tuple[str, str], tuple[str, str]]) -> Iterator[_Place]:
    for _, resource in _listed(log, at, "resourceSpans", "resource_spans"):
        for _, scope in _listed(log, resource, "scopeSpans", "scope_spans"):
            for _, span_at in _listed(log, scope, "spans", "spans"):
                span = log.load(span_at)
                if not isinstance(span, Mapping):
                    continue
                given = attributes(span.get("attributes"))
                operation = str(given.get("gen_ai.operation.name") or "")
                ids = [str(span.get(key) or "")[:64] for key in ("traceId", "spanId", "parentSpanId")]
                parents[ids[0], ids[1]] = (ids[2], operation)
                if operation in (*_CHAT, *_AGENT, "execute_tool"):
                    yield _Place(ids[0], ids[1], ids[2], _nanos(span.get("startTimeUnixNano")), operation, span_at)


def _nanos(value: Any) -> int:
    return (
        int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdigit() and len(value) < 25) else 0
    )


def _listed(log: LogFile, at: Span, *names: str) -> Iterator[tuple[str | int, Span]]:
    """The elements of a list in an object, without loading them."""
    if log.read(at.start, at.start + 1) != b"{":
        return
    for key, member in log.members(at):
        if key in names and log.read(member.start, member.start + 1) == b"[":
            yield from log.members(member)


def _owner(place: _Place, parents: Mapping[tuple[str, str], tuple[str, str]]) -> str:
    """The nearest span of an agent above this one; empty if there is none."""
    above = place.parent
    for _ in range(MAX_DEPTH):
        if not above or (place.trace, above) not in parents:
            return ""
        higher, operation = parents[place.trace, above]
        if operation in _AGENT:
            return above
        above = higher
    return ""


def attributes(listed: Any) -> dict[str, Any]:
    """OTLP attributes as plain values by key."""
    pairs = listed if isinstance(listed, list) else ()
    return {str(each.get("key")): _plain(each.get("value")) for each in pairs if isinstance(each, Mapping)}


def _plain(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, Mapping) or depth > MAX_DEPTH:
        return value
    for key in ("stringValue", "boolValue", "doubleValue", "intValue", "bytesValue"):
        if key in value:
            return value[key]
    if isinstance(value.get("arrayValue"), Mapping):
        return [_plain(each, depth + 1) for each in value["arrayValue"].get("values") or ()]
    if isinstance(value.get("kvlistValue"), Mapping):
        pairs = value["kvlistValue"].get("values") or ()
        return {str(each.get("key")): _plain(each.get("value"), depth + 1) for each in pairs}
    return None


def _json(value: Any) -> Any:
    """A value that may be written as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _with_request(log: LogFile, draft: Conversation, own: list[_Place]) -> Conversation:
    """The draft with what its first model call says: system text, tools, model."""
    first = next((place for place in own if place.operation in _CHAT), None)
    if first is None:
        return draft
    given = attributes(log.load(first.at).get("attributes"))
    return replace(
        draft,
        system=text_of(_json(given.get("gen_ai.system_instructions"))),
        tools=tools_of(_json(given.get("gen_ai.tool.definitions"))),
        model=str(given.get("gen_ai.response.model") or given.get("gen_ai.request.model") or ""),
        title=str(given.get("gen_ai.agent.name") or "")[:80],
    )


def _read(log: LogFile, own: list[_Place], unknown: Counter[str]) -> Iterator[Step]:
    """The steps of one agent: of each model call the messages that are new in it, then its answer."""
    steps, seen = Assembler(), 0
    reader = MessageReader(steps, unknown, strict=False)
    for place in own:
        span = log.load(place.at)
        given = attributes(span.get("attributes"))
        if place.operation == "execute_tool":
            _tool(steps, given)
            continue
        sent, answered = _messages(span, given)
        # A shorter history than before is a new one: the agent was asked anew, or has cut it.
        fresh = sent[seen:] if len(sent) >= seen else sent
        for message in fresh:
            if not _is_known(steps, message):
                reader.take(message, f"span {place.span}")
        for message in answered:
            reader.take(message, f"span {place.span}")
            _usage(steps, given)
        seen = len(sent) + len(answered)
        yield from steps.ready()
    yield from steps.rest()


def _is_known(steps: Assembler, message: Any) -> bool:
    """Whether a message is the result of a call that its tool's span already gave."""
    if not isinstance(message, Mapping) or message.get("role") != "tool":
        return False
    last = steps.last
    return last is not None and not isinstance(last, UserMessage) and 0 < len(last.calls) == len(last.results)


def _usage(steps: Assembler, given: Mapping[str, Any]) -> None:
    last = steps.last
    counts = {"prompt_tokens": "gen_ai.usage.input_tokens", "completion_tokens": "gen_ai.usage.output_tokens"}
    usage = {name: _nanos(given[key]) for name, key in counts.items() if key in given}
    if last is not None and not isinstance(last, UserMessage):
        last.usage = usage
        last.model = str(given.get("gen_ai.response.model") or "")


def _tool(steps: Assembler, given: Mapping[str, Any]) -> None:
    """A tool's span: the result of its call, if the model's span does not give it."""
    if "gen_ai.tool.call.result" in given:
        call_id = str(given.get("gen_ai.tool.call.id") or "")
        steps.result(call_id or None, result_of(_json(given["gen_ai.tool.call.result"])), failed="error.type" in given)


def _messages(span: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """The messages that a model call sent, and those that came back."""
    sent, answered = (_json(given.get(f"gen_ai.{way}.messages")) for way in ("input", "output"))
    if isinstance(sent, list) or isinstance(answered, list):
        return sent if isinstance(sent, list) else [], answered if isinstance(answered, list) else []
    asked: list[Any] = []
    replies: list[Any] = []
    for event in span.get("events") or ():
        name = event.get("name") if isinstance(event, Mapping) else None
        if name in _MESSAGE_EVENTS:
            body = {
                key.removeprefix("gen_ai."): _json(value) for key, value in attributes(event.get("attributes")).items()
            }
            inner = body.get("message")
            message = dict(inner if isinstance(inner, Mapping) else body) | {"role": _MESSAGE_EVENTS[name]}
            (replies if name == "gen_ai.choice" else asked).append(message)
    return asked, replies


def otlp_documents(log: LogFile) -> Iterator[tuple[str, Span]]:
    """The export requests of a file: one a line, or one document."""
    root = log.root()
    line = next(log.lines(root.start), None)
    data = line.data if line else None
    if data is None or not data.rstrip().endswith(b"}"):
        yield log.name, root
        return
    for each in log.lines():
        if each.data is not None:
            yield f"{log.name}:{each.number}", Span(each.offset, each.offset + len(each.data))


def otlp_fields(log: LogFile, at: Span) -> Mapping[str, Any]:
    """The names of the members of an object."""
    return Document(log, at).fields()
