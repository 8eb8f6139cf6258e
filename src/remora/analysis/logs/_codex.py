"""Codex CLI rollouts: one file a session, one item of OpenAI's Responses a line, with records about the session.

A sub-agent has a file of its own. It names its parent, and what agents say to each other is an item in both files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from remora.analysis.logs._blocks import kind_of, result_of, text_of, type_of
from remora.analysis.logs._codex_history import Prompts, is_inherited, is_task, rolled_back
from remora.analysis.logs._conversation import Conversation, Link, checked, checked_branches, rewound_notice
from remora.analysis.logs._messages import SILENT_ITEMS, MessageReader
from remora.analysis.logs._records import records
from remora.analysis.logs._source import LogFile, LogProblem
from remora.analysis.logs._steps import Assembler, Step, Turn, UserMessage
from remora.context.text import number

FORMAT = "Codex"
_BETWEEN = "inter_agent_communication"
"""What agents say to each other, as a record of its own. Other versions write an item `agent_message`."""
_COUNTED = "token_usage_record"
_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_SILENT = frozenset(["event_msg", "turn_context", "session_meta", "world_state", "retained_context", _COUNTED])
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
    inherited: int = 0
    """Records of its parent that are copied before its own."""
    went_back: bool = False


def codex_conversations(log: LogFile) -> Iterator[Conversation | LogProblem]:
    """The session of a file, then the branches that a person left by going back."""
    found = _survey(log)
    meta = found.meta
    base = meta.get("base_instructions") or meta.get("instructions")
    prompts = _prompts(log, found) if found.went_back else Prompts(by_events=False)
    draft = Conversation(
        log.name,
        FORMAT if meta or found.model else "Responses",
        partial(_read, log, found, prompts.live() if prompts.left else None),
        system=text_of(base.get("text") if isinstance(base, Mapping) else base),
        model=found.model,
        session=str(meta.get("id") or "")[:200],
        parent=_parent(meta),
        started=str(meta.get("timestamp") or "")[:40],
        launches=found.launches,
        notices=_notices(found, len(prompts.left)),
    )
    try:
        yield checked(draft, "session")
    except LogProblem as problem:
        yield LogProblem(f"{log.name}: {problem}")
    yield from checked_branches(draft, [partial(_read, log, found, segments) for segments in prompts.left])


def _notices(found: _Survey, left: int) -> tuple[tuple[str, str], ...]:
    copied = f"{number(found.inherited, 'record')} of its parent at the beginning left out"
    return ((("inherited", copied),) if found.inherited else ()) + ((rewound_notice(left),) if left else ())


def _prompts(log: LogFile, found: _Survey) -> Prompts:
    prompts = Prompts(not found.says)
    for _, record in records(log, Counter()):
        if not is_inherited(record, found.meta):
            prompts.segment(record)
    return prompts


def _survey(log: LogFile) -> _Survey:
    found, spawns = _Survey(), set[str]()
    for _, record in records(log, Counter()):
        kind, inner = record.get("type"), record.get("payload")
        payload = inner if isinstance(inner, Mapping) else record
        if kind == "session_meta" or (kind is None and is_codex(record)):
            found.meta = found.meta or dict(payload)
        if is_inherited(record, found.meta):
            found.inherited += kind != "session_meta"
        elif kind == "turn_context":
            found.model = found.model or str(payload.get("model") or "")
        elif type_of(payload) == "message":
            found.says = True
        else:
            found.went_back = found.went_back or rolled_back(record) > 0
            _note_launch(found, kind, payload, spawns)
    return found


def _note_launch(found: _Survey, kind: Any, payload: Mapping[str, Any], spawns: set[str]) -> None:
    """Which call started another session: in an event, or in the result of the call."""
    if kind == "event_msg" and isinstance(payload.get("new_thread_id"), str):
        found.launches[payload["new_thread_id"]] = str(payload.get("call_id") or "")
    elif kind == "event_msg" and type_of(payload) == "sub_agent_activity":
        if payload.get("kind") == "started" and isinstance(payload.get("agent_thread_id"), str):
            found.launches.setdefault(payload["agent_thread_id"], str(payload.get("event_id") or ""))
    elif type_of(payload) == "function_call" and payload.get("name") == _SPAWN:
        spawns.add(str(payload.get("call_id")))
    elif spawns and payload.get("call_id") in spawns and kind == "response_item":
        answer = result_of(payload.get("output"))
        agent = answer.get("agent_id") if isinstance(answer, Mapping) else None
        if isinstance(agent, str):
            found.launches.setdefault(agent, str(payload["call_id"]))


def _parent(meta: Mapping[str, Any]) -> Link | None:
    """The session that started this one as a sub-agent, or that it was forked from."""
    above = _spawn(meta).get("parent_thread_id") or meta.get("parent_thread_id") or meta.get("forked_from_id")
    return Link(str(above)) if above else None


def _spawn(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a sub-agent was started; empty for other sessions."""
    source = meta.get("source")
    spawned = source.get("subagent") if isinstance(source, Mapping) else None
    spawn = spawned.get("thread_spawn") if isinstance(spawned, Mapping) else None
    return spawn if isinstance(spawn, Mapping) else {}


def _read(log: LogFile, found: _Survey, only: frozenset[int] | None, unknown: Counter[str]) -> Iterator[Step]:
    """The steps; with `only`, those of these segments of a session in which a person went back."""
    steps, usage, prompts = Assembler(), _Usage(), Prompts(not found.says)
    reader = MessageReader(steps, unknown, strict=False)
    for line, record in records(log, unknown):
        if is_inherited(record, found.meta) or (only is not None and prompts.segment(record) not in only):
            continue
        item = _item(record, steps, unknown, found)
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
        self._given: dict[str, int] = {}
        """What the last record of its own said. The event with the same numbers is of the same reply."""

    def take(self, record: Mapping[str, Any], last: UserMessage | Turn | None) -> None:
        payload = record.get("payload")
        if not isinstance(payload, Mapping):
            return
        info = payload.get("info") if type_of(payload) == "token_count" else None
        if isinstance(info, Mapping) and info.get("total_token_usage") != self._total:
            self._total, counts = info.get("total_token_usage"), _counts(info.get("last_token_usage"))
            self._waiting = counts if counts != self._given else {}
        if record.get("type") == _COUNTED and isinstance(last, Turn) and not last.usage:
            last.usage = self._given = _counts(payload.get("usage"))
        if self._waiting and isinstance(last, Turn) and not last.usage:
            last.usage, self._waiting = self._waiting, {}


def _counts(usage: Any) -> dict[str, int]:
    found = usage.items() if isinstance(usage, Mapping) else ()
    return {str(key): count for key, count in found if isinstance(count, int)}


def _item(
    record: Mapping[str, Any], steps: Assembler, unknown: Counter[str], found: _Survey
) -> Mapping[str, Any] | None:
    """The item of a record, if it is one."""
    kind, payload = type_of(record), record.get("payload")
    if kind == "event_msg" and isinstance(payload, Mapping):
        if type_of(payload) == "error":
            unknown["failed request"] += 1
        role = None if found.says else _SCREEN.get(type_of(payload))
        return {"type": "message", "role": role, "content": text_of(payload.get("message"))} if role else None
    if kind == _BETWEEN or (isinstance(payload, Mapping) and type_of(payload) == "agent_message"):
        _between(payload, steps, unknown, found)
        return None
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


def _between(payload: Any, steps: Assembler, unknown: Counter[str], found: _Survey) -> None:
    """What another agent said: the task of a sub-agent, or its answer. Some versions write both records of one message.

    What the agent itself said to others is in its calls.
    """
    if not isinstance(payload, Mapping) or payload.get("author") == _path(found.meta):
        return
    text, last = text_of(payload.get("content")), steps.last
    if not text:
        unknown["message of an agent without text"] += 1
    elif not (isinstance(last, UserMessage) and last.text == text):
        steps.user(text, meta=not is_task(text))


def _path(meta: Mapping[str, Any]) -> str:
    """The name of the session among the agents that work together."""
    return str(meta.get("agent_path") or _spawn(meta).get("agent_path") or "/root")
