"""Codex CLI rollouts: one file a session, one item of OpenAI's Responses a line, with records about the session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from remora.analysis.logs._blocks import kind_of, result_of, text_of, type_of
from remora.analysis.logs._conversation import Conversation, Link, checked
from remora.analysis.logs._messages import SILENT_ITEMS, MessageReader
from remora.analysis.logs._records import records
from remora.analysis.logs._source import LogFile, LogProblem
from remora.analysis.logs._steps import Assembler, Step, Turn, UserMessage

FORMAT = "Codex"
_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_SILENT = frozenset(["event_msg", "turn_context", "session_meta", "world_state"])
"""`event_msg` repeats what the items say, for a screen."""
_SCREEN = {"user_message": "user", "agent_message": "assistant"}
_SPAWN = "spawn_agent"
"""The tool that starts a sub-agent."""
_OLD_ITEMS = ("message", "reasoning", "function_call", "function_call_output", "local_shell_call")


def is_codex(record: Mapping[str, Any]) -> bool:
    """Whether the first record of a file is of a rollout. The oldest begin with the session, without a type."""
    if record.get("type") in _ENVELOPES:
        return isinstance(record.get("payload"), Mapping)
    named = record.keys() == {"id", "timestamp"} or bool({"instructions", "git"} & record.keys())
    return "type" not in record and {"id", "timestamp"} <= record.keys() and named


def is_items(record: Mapping[str, Any]) -> bool:
    """Whether the first record of a file is an item of OpenAI's Responses on a line of its own."""
    return record.get("type") in _OLD_ITEMS and "sessionId" not in record


@dataclass
class _Survey:
    """What one pass over a file finds: its session, its model, and which calls started other sessions."""

    meta: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    says: bool = False
    """Whether it has items with messages. Then the events for a screen repeat them."""
    launches: dict[str, str] = field(default_factory=dict)


def codex_conversations(log: LogFile) -> Iterator[Conversation | LogProblem]:
    """The session of a file."""
    found = _survey(log)
    meta = found.meta
    base = meta.get("base_instructions") or meta.get("instructions")
    draft = Conversation(
        log.name,
        FORMAT if meta or found.model else "Responses",
        partial(_read, log, not found.says),
        system=text_of(base.get("text") if isinstance(base, Mapping) else base),
        model=found.model,
        session=str(meta.get("id") or "")[:200],
        parent=_parent(meta),
        started=str(meta.get("timestamp") or "")[:40],
        launches=found.launches,
    )
    try:
        yield checked(draft, "session")
    except LogProblem as problem:
        yield LogProblem(f"{log.name}: {problem}")


def _survey(log: LogFile) -> _Survey:
    found, spawns = _Survey(), set[str]()
    for _, record in records(log, Counter()):
        kind, inner = record.get("type"), record.get("payload")
        payload = inner if isinstance(inner, Mapping) else record
        if kind == "session_meta" or (kind is None and is_codex(record)):
            found.meta = found.meta or dict(payload)
        elif kind == "turn_context":
            found.model = found.model or str(payload.get("model") or "")
        elif kind == "event_msg" and isinstance(payload.get("new_thread_id"), str):
            found.launches[payload["new_thread_id"]] = str(payload.get("call_id") or "")
        elif type_of(payload) == "message":
            found.says = True
        elif type_of(payload) == "function_call" and payload.get("name") == _SPAWN:
            spawns.add(str(payload.get("call_id")))
        elif spawns and payload.get("call_id") in spawns and kind == "response_item":
            answer = result_of(payload.get("output"))
            agent = answer.get("agent_id") if isinstance(answer, Mapping) else None
            if isinstance(agent, str):
                found.launches.setdefault(agent, str(payload["call_id"]))
    return found


def _parent(meta: Mapping[str, Any]) -> Link | None:
    """The session that started this one as a sub-agent, or that it was forked from."""
    source = meta.get("source")
    spawned = source.get("subagent") if isinstance(source, Mapping) else None
    spawn = spawned.get("thread_spawn") if isinstance(spawned, Mapping) else None
    above = spawn.get("parent_thread_id") if isinstance(spawn, Mapping) else meta.get("forked_from_id")
    return Link(str(above)) if above else None


def _read(log: LogFile, by_events: bool, unknown: Counter[str]) -> Iterator[Step]:
    """The steps. With `by_events`, what was said is only in the events for a screen."""
    steps, usage = Assembler(), _Usage()
    reader = MessageReader(steps, unknown, strict=False)
    for line, record in records(log, unknown):
        item = _item(record, steps, unknown, by_events)
        if item is not None:
            reader.take(item, f"line {line.number}")
        usage.take(record, steps.last)
        yield from steps.ready()
    yield from steps.rest()


class _Usage:
    """Gives every reply the tokens that the server counted for it.

    Their record is before the items of the reply in some versions, and after them in others; it is repeated at the next
    request.
    """

    def __init__(self) -> None:
        self._total: Any = None
        self._waiting: dict[str, int] = {}

    def take(self, record: Mapping[str, Any], last: UserMessage | Turn | None) -> None:
        payload = record.get("payload")
        info = payload.get("info") if isinstance(payload, Mapping) and type_of(payload) == "token_count" else None
        if isinstance(info, Mapping) and info.get("total_token_usage") != self._total:
            self._total, counts = info.get("total_token_usage"), info.get("last_token_usage")
            if isinstance(counts, Mapping):
                self._waiting = {str(key): count for key, count in counts.items() if isinstance(count, int)}
        if self._waiting and isinstance(last, Turn) and not last.usage:
            last.usage, self._waiting = self._waiting, {}


def _item(
    record: Mapping[str, Any], steps: Assembler, unknown: Counter[str], by_events: bool
) -> Mapping[str, Any] | None:
    """The item of a record, if it is one."""
    kind, payload = type_of(record), record.get("payload")
    if kind == "event_msg" and isinstance(payload, Mapping):
        if type_of(payload) == "error":
            unknown["failed request"] += 1
        role = _SCREEN.get(type_of(payload)) if by_events else None
        return {"type": "message", "role": role, "content": text_of(payload.get("message"))} if role else None
    if kind == "response_item" and isinstance(payload, Mapping):
        return None if type_of(payload) in SILENT_ITEMS else payload
    if kind == "compacted" and isinstance(payload, Mapping):
        steps.user(text_of(payload.get("message")), meta=True)
        return None
    if kind in _SILENT or "record_type" in record or kind in SILENT_ITEMS or is_codex(record):
        return None
    if kind and payload is None:
        return record
    unknown[kind_of(record)] += 1
    return None
