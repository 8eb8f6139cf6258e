"""Codex CLI rollouts: one file a session, one item of OpenAI's Responses a line, with records about the session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from remora.analysis.logs._blocks import kind_of, text_of, type_of
from remora.analysis.logs._conversation import Conversation, Link, checked
from remora.analysis.logs._messages import SILENT_ITEMS, MessageReader
from remora.analysis.logs._records import records
from remora.analysis.logs._source import LogFile, LogProblem
from remora.analysis.logs._steps import Assembler, Step

FORMAT = "Codex"
_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_SILENT = frozenset(["event_msg", "turn_context", "session_meta", "world_state"])
"""`event_msg` repeats what the items say, for a screen."""
_OLD_ITEMS = ("message", "reasoning", "function_call", "function_call_output", "local_shell_call")


def is_codex(record: Mapping[str, Any]) -> bool:
    """Whether the first record of a file is of a rollout. The oldest begin with the session, without a type."""
    if record.get("type") in _ENVELOPES:
        return isinstance(record.get("payload"), Mapping)
    return (
        "type" not in record and {"id", "timestamp"} <= record.keys() and bool({"instructions", "git"} & record.keys())
    )


def is_items(record: Mapping[str, Any]) -> bool:
    """Whether the first record of a file is an item of OpenAI's Responses on a line of its own."""
    return record.get("type") in _OLD_ITEMS and "sessionId" not in record


def codex_conversations(log: LogFile) -> Iterator[Conversation | LogProblem]:
    """The session of a file."""
    meta: dict[str, Any] = {}
    started = model = ""
    for _, record in records(log, Counter()):
        inner = record.get("payload")
        payload = inner if isinstance(inner, Mapping) else record
        if record.get("type") == "session_meta" or (is_codex(record) and "type" not in record):
            meta = meta or dict(payload)
            started = started or str(payload.get("timestamp") or "")[:40]
        if record.get("type") == "turn_context":
            model = str(payload.get("model") or "")
        if model and meta:
            break
    base = meta.get("base_instructions") or meta.get("instructions")
    draft = Conversation(
        log.name,
        FORMAT if meta or model else "Responses",
        partial(_read, log),
        system=text_of(base.get("text") if isinstance(base, Mapping) else base),
        model=model,
        session=str(meta.get("id") or "")[:200],
        parent=_parent(meta),
        started=started,
    )
    try:
        yield checked(draft, "session")
    except LogProblem as problem:
        yield LogProblem(f"{log.name}: {problem}")


def _parent(meta: Mapping[str, Any]) -> Link | None:
    """The session that started this one as a sub-agent, or that it was forked from."""
    source = meta.get("source")
    spawned = source.get("subagent") if isinstance(source, Mapping) else None
    spawn = spawned.get("thread_spawn") if isinstance(spawned, Mapping) else None
    above = spawn.get("parent_thread_id") if isinstance(spawn, Mapping) else meta.get("forked_from_id")
    return Link(str(above)) if above else None


def _read(log: LogFile, unknown: Counter[str]) -> Iterator[Step]:
    steps = Assembler()
    reader = MessageReader(steps, unknown, strict=False)
    for line, record in records(log, unknown):
        item = _item(record, steps, unknown)
        if item is not None:
            reader.take(item, f"line {line.number}")
            yield from steps.ready()
    yield from steps.rest()


def _item(record: Mapping[str, Any], steps: Assembler, unknown: Counter[str]) -> Mapping[str, Any] | None:
    """The item of a record, if it is one."""
    kind, payload = type_of(record), record.get("payload")
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
