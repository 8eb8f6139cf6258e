"""OpenTelemetry spans of agents: a file of the collector, one export request, or one span of an SDK a line.

A span of a model call holds the messages that it sent and those that came back. Spans of tools hold arguments and
results. Spans come in any order, so a first pass notes where each is, and a second one reads them by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from remora.analysis.logs._blocks import args_of, result_of, text_of, tools_of
from remora.analysis.logs._conversation import Conversation, Link, checked
from remora.analysis.logs._history import History, call_ids, result_ids
from remora.analysis.logs._messages import MessageReader
from remora.analysis.logs._source import NO_REPLY, LogFile, LogProblem, Span
from remora.analysis.logs._spans import (
    AGENT,
    MAX_DEPTH,
    MODEL,
    TOOL,
    GenSpan,
    is_span,
    messages_of,
    read_span,
    request_facts,
)
from remora.analysis.logs._steps import Assembler, Step, UserMessage

FORMAT = "OpenTelemetry"
MAX_SPANS = 1_000_000
_NO_CONTENT = (
    "programs record messages only if told so, such as by `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`"
)
_CONVERSATION = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")


_RESOURCES = ("resourceSpans", "resource_spans")


def is_otlp(fields: Mapping[str, Any]) -> bool:
    """Whether a record holds spans, or is one."""
    listed = fields.get("spans")
    return (
        any(name in fields for name in _RESOURCES)
        or is_span(fields)
        or (isinstance(listed, list) and bool(listed) and is_span(listed[0]))
    )


def holds_spans(log: LogFile, root: Span) -> bool:
    """Whether a document is a list of spans, or an object with one. Loads only its first span."""
    sign = log.read(root.start, root.start + 1)
    for key, member in log.members(root) if sign in (b"{", b"[") else ():
        if key in _RESOURCES:
            return True
        inner = log.read(member.start, member.start + 1)
        if sign == b"[":
            return inner == b"{" and is_span(log.load(member))
        if key == "spans" and inner == b"[":
            return any(is_span(log.load(span)) for _, span in islice(log.members(member), 1))
    return False


@dataclass(frozen=True)
class _Place:
    """Where a span is, and how it hangs together with others."""

    trace: str
    span: str
    parent: str
    start: int
    kind: str
    at: Span
    conversation: str = ""


_Parents = dict[tuple[str, str], tuple[str, str]]
"""By trace and span, the span above it and its own kind."""
_Group = tuple[str, str]
"""A trace and an agent's span in it."""


def otel_conversations(log: LogFile, documents: Iterator[tuple[str, Span]]) -> Iterator[Conversation | LogProblem]:
    """One conversation for each agent of each trace. What several traces say in one conversation is joined."""
    places: list[_Place] = []
    parents: _Parents = {}
    for place, at in documents:
        try:
            for found in _places(log, at, parents):
                places.append(found)
                if len(places) > MAX_SPANS:
                    yield LogProblem(f"{log.name}: more than {MAX_SPANS:,} spans of models and tools")
                    return
        except LogProblem as problem:
            yield LogProblem(f"{place}: {problem}")
    groups = _grouped(sorted(places, key=lambda each: each.start), parents)
    if not groups:
        yield LogProblem(f"{log.name}: no span of a model, an agent or a tool")
    around = _around(groups, parents)
    for (trace, owner), own in groups.items():
        above = _owner(trace, parents.get((trace, owner), ("", ""))[0], parents)
        linked = owner and above != owner and (trace, above) in groups
        draft = Conversation(
            f"{log.name}#{owner or trace}",
            FORMAT,
            partial(_read, log, own),
            session=f"{trace}/{owner}",
            parent=Link(f"{trace}/{above}") if linked else None,
        )
        try:
            yield checked(_with_request(log, draft, own), "spans")
        except LogProblem as problem:
            if (trace, owner) in around and all(place.kind == AGENT for place in own):
                continue  # it says nothing of its own: the agents inside it do
            hint = f"; {_NO_CONTENT}" if str(problem).endswith(NO_REPLY) else ""
            yield LogProblem(f"{draft.source}: {problem}{hint}")


def _around(groups: Iterable[_Group], parents: _Parents) -> set[_Group]:
    """The agents with other agents inside them, such as the span of a whole workflow."""
    return {(trace, _owner(trace, parents.get((trace, owner), ("", ""))[0], parents)) for trace, owner in groups}


def _grouped(places: list[_Place], parents: _Parents) -> dict[_Group, list[_Place]]:
    """The spans of each agent: its own, and those of its model calls and tools."""
    groups: dict[_Group, list[_Place]] = {}
    for place in places:
        owner = place.span if place.kind == AGENT else _owner(place.trace, place.parent, parents)
        groups.setdefault((place.trace, owner), []).append(place)
    merged: dict[_Group, list[_Place]] = {}
    first: dict[str, _Group] = {}
    joined: set[tuple[str, str]] = set()
    for (trace, owner), own in groups.items():
        nested = bool(owner and _owner(trace, parents[trace, owner][0], parents))
        name = "" if nested else next((place.conversation for place in own if place.conversation), "")
        if name and (name, trace) not in joined:  # several agents of one trace worked side by side
            joined.add((name, trace))
            merged.setdefault(first.setdefault(name, (trace, owner)), []).extend(own)
        else:
            merged.setdefault((trace, owner), []).extend(own)
    return merged


def _places(log: LogFile, at: Span, parents: _Parents) -> Iterator[_Place]:
    for span_at in _span_places(log, at):
        span = read_span(log.load(span_at))
        if span is None:
            continue
        parents[span.trace, span.id] = (span.parent, span.kind)
        if span.kind:
            conversation = span.text(*_CONVERSATION)
            yield _Place(span.trace, span.id, span.parent, span.start, span.kind, span_at, conversation)


def _span_places(log: LogFile, at: Span) -> Iterator[Span]:
    """Where the spans of a document are: in resources, in a list, in a list that is a member, or itself."""
    if log.read(at.start, at.start + 1) == b"[":
        yield from (element for _, element in log.members(at))
        return
    resources = list(_listed(log, at, *_RESOURCES))
    listed = [] if resources else list(_listed(log, at, "spans"))
    yield from listed
    if not resources and not listed:
        yield at
    for resource in resources:
        for scope in _listed(log, resource, "scopeSpans", "scope_spans"):
            yield from _listed(log, scope, "spans")


def _listed(log: LogFile, at: Span, *names: str) -> Iterator[Span]:
    """The elements of a list in an object, without loading them."""
    if log.read(at.start, at.start + 1) != b"{":
        return
    for key, member in log.members(at):
        if key in names and log.read(member.start, member.start + 1) == b"[":
            yield from (element for _, element in log.members(member))


def _owner(trace: str, above: str, parents: Mapping[tuple[str, str], tuple[str, str]]) -> str:
    """The nearest span of an agent, from the span `above` upwards; empty if there is none."""
    for _ in range(MAX_DEPTH):
        if not above or (trace, above) not in parents:
            return ""
        higher, kind = parents[trace, above]
        if kind == AGENT:
            return above
        above = higher
    return ""


def _load(log: LogFile, own: list[_Place]) -> Iterator[GenSpan]:
    for place in own:
        span = read_span(log.load(place.at))
        if span is not None:
            yield span


def _with_request(log: LogFile, draft: Conversation, own: list[_Place]) -> Conversation:
    """The draft with what its first model call says: system text, tools, model."""
    facts = request_facts(_load(log, [place for place in own if place.kind != TOOL]))
    return replace(draft, **facts | {"system": text_of(facts["system"]), "tools": tools_of(facts["tools"])})


def _read(log: LogFile, own: list[_Place], unknown: Counter[str]) -> Iterator[Step]:
    """The steps of one agent: of each model call the messages that are new in it, then its answer."""
    steps, history, answered_calls = Assembler(), History(), set[str]()
    reader = MessageReader(steps, unknown, strict=False)
    # An agent's own span repeats what the model calls below it say, and has the messages if none was recorded.
    calls = any(place.kind == MODEL for place in own)
    asked = _asked_calls(_load(log, [place for place in own if place.kind != TOOL]))
    answer = ""
    for span in _load(log, [place for place in own if not (calls and place.kind == AGENT)]):
        if span.kind == TOOL:
            _tool(steps, span, answered_calls, asked)
            continue
        sent, answered = messages_of(span)
        if span.kind == AGENT and not sent and (question := span.words("input.value")):
            sent = [{"role": "user", "content": question}]
            answer = "" if answered else span.words("output.value")
        for message in history.fresh(sent):
            results = result_ids(message)
            if not results or not results <= answered_calls:  # else its tool's span already gave it
                _take(reader, message, span, unknown)
        for message in answered:
            _take(reader, message, span, unknown)
            _note_usage(steps, span)
        history.add(answered)
        yield from steps.ready()
    if answer:  # an agent's span begins before those of its tools
        steps.turn().texts.append(answer)
    yield from steps.rest()


def _asked_calls(spans: Iterator[GenSpan]) -> set[str]:
    """The ids of all calls that models asked for."""
    messages = (message for span in spans for side in messages_of(span) for message in side)
    return {call_id for message in messages for call_id in call_ids(message)}


def _take(reader: MessageReader, message: Any, span: GenSpan, unknown: Counter[str]) -> None:
    try:
        reader.take(message, f"span {span.id}")
    except LogProblem:
        unknown["message of a span"] += 1


def _note_usage(steps: Assembler, span: GenSpan) -> None:
    counts = {
        "prompt_tokens": span.count(
            "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"
        ),
        "completion_tokens": span.count(
            "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"
        ),
    }
    last = steps.last
    if last is not None and not isinstance(last, UserMessage):
        last.usage = {name: count for name, count in counts.items() if count is not None}
        last.model = span.model


def _tool(steps: Assembler, span: GenSpan, answered: set[str], asked: set[str]) -> None:
    """A tool's span: the result of its call, if the model's span does not give it.

    A call that no model asked for, such as one by a rule, is a turn of its own.
    """
    given, result = span.result()
    call_id = span.text("gen_ai.tool.call.id", "tool_call.id", "tool.id")
    name = span.text("gen_ai.tool.name", "tool.name")
    if not given and not span.failed:
        return
    if call_id and name and call_id not in asked:
        steps.call(steps.turn(), call_id, name, args_of(span.arguments))
    failed = "error.type" in span.given or span.failed
    value = result_of(result) if given else "failed"
    if steps.result(call_id or None, value, failed=failed, tool="" if call_id else name):
        answered.add(steps.answered)


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
