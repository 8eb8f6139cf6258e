"""Requests to a model with their replies, one a line: what proxies and clients log.

Every request repeats the conversation so far, or names the reply that it continues. The exchanges of one conversation
become one: what is new in each request, then its reply. Read are OpenAI's chats and Responses and Anthropic's messages,
with the bodies of HTTP requests or without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from remora.analysis.logs._blocks import text_of, tools_of
from remora.analysis.logs._conversation import Conversation, checked
from remora.analysis.logs._history import History, call_ids, message_key
from remora.analysis.logs._messages import MessageReader
from remora.analysis.logs._records import records
from remora.analysis.logs._source import LogFile, LogProblem, Span
from remora.analysis.logs._sse import streamed_reply
from remora.analysis.logs._steps import Assembler, Step, UserMessage

Load = Callable[[], Iterator["Exchange"]]
_BODIES = ("body", "parsed_body", "json", "body_raw", "postData", "content")
_TEXTS = ("string", "text")
"""Where VCR and HAR keep the text of a body."""
_LOOKED_AT = 8
"""Replies at the end of a request that are looked for."""
_ASSISTANT_ITEMS = ("function_call", "custom_tool_call", "message")


@dataclass(frozen=True)
class Exchange:
    """One request and its reply."""

    request: Mapping[str, Any]
    reply: Mapping[str, Any]

    @property
    def sent(self) -> list[Any]:
        given = self.request.get("messages", self.request.get("input"))
        if isinstance(given, str):
            return [{"role": "user", "content": given}]
        return given if isinstance(given, list) else []

    @property
    def answered(self) -> list[Any]:
        """The messages or items of the reply; empty if the request failed."""
        reply = self.reply
        choices = reply.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
            return [choices[0]["message"]] if isinstance(choices[0].get("message"), Mapping) else []
        if isinstance(reply.get("output"), list):
            return list(reply["output"])
        return [reply] if reply.get("role") == "assistant" else []

    @property
    def format(self) -> str:
        if "input" in self.request or isinstance(self.reply.get("output"), list):
            return "Responses"
        return "Anthropic" if isinstance(self.reply.get("content"), list) else "chat"

    def name(self, key: str) -> str:
        """An id that the request or the reply has, such as of the conversation."""
        found = self.request.get(key) or self.reply.get(key)
        return str(found.get("id") if isinstance(found, Mapping) else found or "")[:200]


def exchange_of(record: Mapping[str, Any]) -> Exchange | None:
    """The exchange that a record of a log is; None if it is none."""
    request, response = record.get("request"), record.get("response")
    if isinstance(request, Mapping):
        return Exchange(_body(request), _body(response))
    if _is_reply(record):
        return Exchange({**record, "input": []}, record)
    if isinstance(response, Mapping) and isinstance(record.get("messages", record.get("input")), list | str):
        return Exchange(record, _body(response))
    return None


def is_exchange(record: Mapping[str, Any]) -> bool:
    """Whether a record of a log is an exchange."""
    return exchange_of(record) is not None


def _is_reply(record: Mapping[str, Any]) -> bool:
    """Whether a record is a reply on its own: a response of OpenAI or a message of Anthropic."""
    if record.get("object") == "response":
        return isinstance(record.get("output"), list)
    return record.get("role") == "assistant" and "stop_reason" in record and record.get("type") == "message"


def _body(side: Any) -> Mapping[str, Any]:
    """What an HTTP request or response carries, or the side itself if it is that already."""
    if not isinstance(side, Mapping):
        return {}
    held = next((side[name] for name in _BODIES if side.get(name)), None) if "role" not in side else None
    if isinstance(held, Mapping):
        held = next((held[name] for name in _TEXTS if isinstance(held.get(name), str)), held)
    if isinstance(held, str):
        try:
            held = orjson.loads(held)
        except orjson.JSONDecodeError:
            held = streamed_reply(held)
    return held if isinstance(held, Mapping) else {} if "headers" in side else side


@dataclass
class _Thread:
    """The exchanges of one conversation: where they are."""

    first: Exchange
    """The first one, without its messages."""
    format: str
    places: list[Span] = field(default_factory=list)


class _Threads:
    """Finds the conversation that an exchange continues: by the ids that it names, or by what it repeats."""

    def __init__(self) -> None:
        self.all: list[_Thread] = []
        self._by_name: dict[str, _Thread] = {}
        self._by_reply: dict[tuple[bytes, bytes | str], _Thread] = {}
        """By the first message of the conversation, and a reply or a call in it."""

    def add(self, exchange: Exchange, at: Span) -> None:
        sent, above = exchange.sent, exchange.name("previous_response_id")
        first, conversation = _first_key(sent), exchange.name("conversation")
        thread = self._by_name.get(above) or self._by_name.get(conversation) or self._repeated(first, sent)
        if thread is None:
            around = Exchange(_without_messages(exchange.request), {"model": exchange.reply.get("model")})
            thread = _Thread(around, exchange.format)
            self.all.append(thread)
        thread.places.append(at)
        for name in filter(None, (conversation, str(exchange.reply.get("id") or ""))):
            self._by_name[name] = thread
        for reply in _replies(exchange.answered):
            for key in _reply_keys(reply):
                self._by_reply[first, key] = thread

    def _repeated(self, first: bytes, sent: list[Any]) -> _Thread | None:
        """The thread of the newest replies that a request repeats. Their copies may lack the text of the reply."""
        keys = (key for reply in _replies(sent)[: -_LOOKED_AT - 1 : -1] for key in _reply_keys(reply))
        return next(filter(None, (self._by_reply.get((first, key)) for key in keys)), None)


def _without_messages(request: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key not in ("messages", "input", "output", "response")}


def _first_key(messages: list[Any]) -> bytes:
    fixed = ("system", "developer")
    own = (each for each in messages if not (isinstance(each, Mapping) and each.get("role") in fixed))
    return message_key(next(own, None))


def _replies(messages: list[Any]) -> list[Mapping[str, Any]]:
    """The messages and items of an assistant."""
    return [each for each in messages if isinstance(each, Mapping) and _is_by_assistant(each)]


def _is_by_assistant(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" or ("role" not in message and message.get("type") in _ASSISTANT_ITEMS)


def _reply_keys(reply: Mapping[str, Any]) -> list[bytes | str]:
    key = message_key(reply)
    return [*([key] if key else []), *call_ids(reply)]


def exchange_conversations(log: LogFile) -> Iterator[Conversation | LogProblem]:
    """The conversations of a file of exchanges."""
    threads, unknown = _Threads(), Counter[str]()
    for line, record in records(log, unknown):
        exchange = exchange_of(record)
        if exchange is None or not (exchange.sent or exchange.answered):
            unknown["record without messages"] += 1
        elif not exchange.answered:
            unknown["request without a reply"] += 1
        else:
            threads.add(exchange, Span(line.offset, line.offset + len(line.data or b"")))
    if not threads.all:
        yield LogProblem(f"{log.name}: no conversation: no request has messages")
    for number, thread in enumerate(threads.all):
        source = log.name if len(threads.all) == 1 else f"{log.name}#{number + 1}"
        left_out = unknown if not number else Counter[str]()
        try:
            yield conversation_of(source, thread.format, thread.first, partial(_load, log, thread.places), left_out)
        except LogProblem as problem:
            yield LogProblem(f"{source}: {problem}")


def _load(log: LogFile, places: list[Span]) -> Iterator[Exchange]:
    for place in places:
        found = exchange_of(log.load(place))
        if found is not None:
            yield found


def conversation_of(
    source: str, format: str, first: Exchange, load: Load, left_out: Mapping[str, int] | None = None
) -> Conversation:
    """The conversation of these exchanges. Raises `LogProblem`."""
    request = first.request
    draft = Conversation(
        source,
        format,
        partial(_read, load, left_out or {}),
        system=text_of(request.get("system") or request.get("instructions") or ""),
        tools=tools_of(request.get("tools")),
        model=str(first.reply.get("model") or request.get("model") or "")[:200],
        session=first.name("conversation") or first.name("session_id"),
    )
    return checked(draft, "messages")


def _read(load: Load, left_out: Mapping[str, int], unknown: Counter[str]) -> Iterator[Step]:
    unknown.update(left_out)
    steps, history = Assembler(), History()
    reader = MessageReader(steps, unknown, strict=False)
    for exchange in load():
        for message in history.fresh(exchange.sent):
            reader.take(message, "request")
        if answered := exchange.answered:
            reader.take_reply(answered, "reply")
            history.add(answered)
            _note_reply(steps, exchange.reply)
        yield from steps.ready()
    yield from steps.rest()


def _note_reply(steps: Assembler, reply: Mapping[str, Any]) -> None:
    """Keep which model answered, and what the server counted."""
    last, usage = steps.last, reply.get("usage")
    if last is None or isinstance(last, UserMessage):
        return
    last.model = str(reply.get("model") or last.model)[:200]
    if isinstance(usage, Mapping):
        last.usage = {str(key): count for key, count in usage.items() if isinstance(count, int)}
