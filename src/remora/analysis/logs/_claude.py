"""Claude Code sessions: one file a session, one record a line.

A reply is several records with the same message id, one for each block. A sub-agent's records are marked as a
sidechain: in the session's own file (older versions), or in a file of their own that names the session. Which call
started a sub-agent is in the call's result (`toolUseResult.agentId`), or found by the prompt that both have.

What `claude -p --output-format stream-json` prints is read too: there every record of a sub-agent names the call that
started it (`parent_tool_use_id`), and the task is missing unless the program repeats it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from remora.analysis.logs._blocks import args_of, kind_of, part_text, result_of, text_of, type_of
from remora.analysis.logs._claude_branches import CONTINUED, Branches
from remora.analysis.logs._conversation import Conversation, Link, checked, checked_branches, rewound_notice
from remora.analysis.logs._records import records
from remora.analysis.logs._source import Line, LogFile, LogProblem
from remora.analysis.logs._steps import Assembler, Step
from remora.events import digest

FORMAT = "Claude Code"
MAIN = ""
_SESSIONS = ("sessionId", "session_id")
_LAUNCHERS = ("Task", "Agent")
_SILENT = frozenset(
    [
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "progress",
        "attachment",
        "system",
        "ai-title",
        "custom-title",
        "last-prompt",
        "permission-mode",
        "agent-name",
        "agent-setting",
        "agent-color",
        "mode",
        "tag",
        "pr-link",
        "worktree-state",
        "bridge-session",
        "speculation-accept",
        "content-replacement",
        "started",
        "result",
        "stream_event",
        "rate_limit_event",
    ]
)
"""Kinds of records that hold no part of the conversation."""
_SEEN_UUIDS = 10_000
"""Sidechain records whose sub-agent is remembered, for their successors."""
_CONTEXT = ("<ide_", "<system-reminder>")
"""Beginnings of texts that the program puts beside what a person wrote."""
_COMMANDS = ("<command-", "<local-command-", "Caveat:", "<system-reminder>", "<bash-", CONTINUED)
_NOTHING = "(no content)"
"""What older versions write for an empty message."""
_COPIES = 100_000
"""Records that are remembered, to know a copy."""


def is_claude(record: Mapping[str, Any]) -> bool:
    """Whether the first record of a file is of Claude Code."""
    kind = type_of(record)
    if kind in ("user", "assistant"):
        return isinstance(record.get("message"), Mapping) and bool({*_SESSIONS, "parentUuid"} & record.keys())
    known = {"sessionId", "leafUuid", "messageId", "snapshot"} & record.keys()
    return kind in _SILENT and (bool(known) or (kind == "system" and "session_id" in record))


def _session_of(record: Mapping[str, Any]) -> str:
    return str(next(filter(None, map(record.get, _SESSIONS)), ""))


@dataclass
class _Group:
    """The records of one sub-agent, or of the session itself."""

    key: str
    start: int
    end: int = 0
    prompt: str = ""
    """Digest of its first message."""
    started: str = ""


@dataclass
class _Survey:
    """What one pass over a file finds: its groups, and which call started which."""

    groups: dict[str, _Group] = field(default_factory=dict)
    session: str = ""
    title: str = ""
    launches: dict[str, str] = field(default_factory=dict)
    """By agent id, the call that started it."""
    prompts: dict[str, str] = field(default_factory=dict)
    """By the digest of its prompt, a call that starts a sub-agent."""
    unknown: Counter[str] = field(default_factory=Counter)
    branches: Branches = field(default_factory=Branches)


class _Grouping:
    """Assigns every record to the session (empty key) or to one of its sub-agents."""

    def __init__(self) -> None:
        self._by_uuid: OrderedDict[str, str] = OrderedDict()
        self._roots = 0

    def key(self, record: Mapping[str, Any]) -> str:
        if isinstance(called := record.get("parent_tool_use_id"), str) and called:
            return called
        if not record.get("isSidechain"):
            return MAIN
        found = record.get("agentId")
        if not isinstance(found, str) or not found:
            found = self._by_uuid.get(str(record.get("parentUuid")), "")
        if not found:
            self._roots += 1
            found = f"sidechain-{self._roots}"
        self._by_uuid[str(record.get("uuid"))] = found
        if len(self._by_uuid) > _SEEN_UUIDS:
            self._by_uuid.popitem(last=False)
        return found


def claude_conversations(log: LogFile) -> Iterator[Conversation | LogProblem]:
    """The session of a file, then its sub-agents."""
    survey = _survey(log)
    calls = dict(survey.launches)
    for group in survey.groups.values():
        if group.key and group.key not in calls and group.prompt in survey.prompts:
            calls[group.key] = survey.prompts[group.prompt]
    if not survey.groups:
        yield LogProblem(f"{log.name}: no conversation: the session holds no message")
    left = survey.branches.abandoned() if MAIN in survey.groups else []
    live = survey.branches.live() if left else None
    for group in sorted(survey.groups.values(), key=lambda each: each.key != MAIN):
        main = group.key == MAIN
        draft = Conversation(
            log.name if main or len(survey.groups) == 1 else f"{log.name}#{group.key}",
            FORMAT,
            partial(_read, log, group, live if main else None),
            session=survey.session if main else f"{survey.session}/{group.key}",
            parent=None if main else Link(survey.session, calls.get(group.key, "")),
            title=survey.title if main else "",
            started=group.started,
            launches=_launches(survey, calls, group) if main or MAIN not in survey.groups else {},
            notices=(rewound_notice(len(left)),) if main and left else (),
        )
        try:
            yield checked(draft, "session")
        except LogProblem as problem:
            yield LogProblem(f"{draft.source}: {problem}")
        if main:
            yield from checked_branches(draft, [partial(_read, log, group, segments) for segments in left])


def _launches(survey: _Survey, calls: Mapping[str, str], group: _Group) -> dict[str, str]:
    """The calls that started other agents. A sub-agent that has a file of its own may start some too."""
    return {f"{survey.session}/{key}": call for key, call in calls.items() if key != group.key}


def _survey(log: LogFile) -> _Survey:
    found, grouping = _Survey(), _Grouping()
    for line, record in _originals(log, found.unknown):
        kind = record.get("type")
        found.branches.segment(record)
        if kind in ("summary", "ai-title", "custom-title"):
            words = record.get("summary") or record.get("aiTitle") or record.get("customTitle") or record.get("title")
            found.title = text_of(words)[:200] or found.title
        message = record.get("message")
        if kind not in ("user", "assistant") or not isinstance(message, Mapping):
            continue
        found.session = found.session or _session_of(record)
        key = grouping.key(record)
        if key and key == record.get("parent_tool_use_id"):
            found.launches[key] = key
        if key not in found.groups:
            started = str(record.get("timestamp") or "")[:40]
            group = _Group(key, line.offset, prompt=_prompt(text_of(message.get("content"))), started=started)
            found.groups[key] = group
        found.groups[key].end = line.offset + 1
        if kind == "user":
            _note_launch(found, record, message)
        else:
            _note_prompts(found, message)
    return found


def _originals(
    log: LogFile, unknown: Counter[str], start: int = 0, end: int | None = None
) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Every record once: a session that is resumed may write all of its past again, with the same ids and messages."""
    seen: OrderedDict[int, None] = OrderedDict()
    for line, record in records(log, unknown, start, end):
        if isinstance(record.get("uuid"), str) and "message" in record:
            own = hash((record["uuid"], orjson.dumps(record["message"])))  # redacted logs repeat ids
            if own in seen:
                continue
            seen[own] = None
            if len(seen) > _COPIES:
                seen.popitem(last=False)
        yield line, record


def _prompt(text: str) -> str:
    return digest(text.encode(errors="backslashreplace"))


def _note_launch(found: _Survey, record: Mapping[str, Any], message: Mapping[str, Any]) -> None:
    """The result of a call that started a sub-agent names it."""
    result = record.get("toolUseResult")
    agent = result.get("agentId") if isinstance(result, Mapping) else None
    if not isinstance(agent, str):
        return
    for part in _parts(message):
        if kind_of(part) == "tool_result" and isinstance(part, Mapping):
            found.launches[agent] = str(part.get("tool_use_id") or "")


def _parts(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _note_prompts(found: _Survey, message: Mapping[str, Any]) -> None:
    for part in _parts(message):
        if kind_of(part) == "tool_use" and isinstance(part, Mapping) and part.get("name") in _LAUNCHERS:
            given = part.get("input")
            prompt = given.get("prompt") if isinstance(given, Mapping) else None
            if isinstance(prompt, str):
                found.prompts[_prompt(prompt)] = str(part.get("id") or "")


def _read(log: LogFile, group: _Group, only: frozenset[int] | None, unknown: Counter[str]) -> Iterator[Step]:
    """The steps of one group. Its first record is where the group begins, so grouping can begin there too.

    With `only`, the steps of these segments of a session that was rewound.
    """
    steps, grouping, branches = Assembler(), _Grouping(), Branches()
    first = grouping_key = ""
    for line, record in _originals(log, unknown, group.start if only is None else 0, group.end):
        if only is not None and branches.segment(record) not in only:
            continue
        kind = type_of(record)
        if kind not in ("user", "assistant"):
            if kind not in _SILENT:
                unknown[kind_of(record)] += 1
            elif (words := _queued(record)) and grouping.key(record) == first:
                steps.user(words)
            continue
        grouping_key = grouping.key(record)
        if line.offset == group.start:
            first = grouping_key
        if grouping_key == first:
            _take(steps, record, unknown)
            yield from steps.ready()
    yield from steps.rest()


def _queued(record: Mapping[str, Any]) -> str:
    """What a person wrote while the agent worked. It reached the agent as an attachment, not as a message."""
    attached = record.get("attachment")
    is_queued = isinstance(attached, Mapping) and attached.get("type") == "queued_command"
    return text_of(attached.get("prompt")) if is_queued and isinstance(attached, Mapping) else ""


def _take(steps: Assembler, record: Mapping[str, Any], unknown: Counter[str]) -> None:
    message = record.get("message")
    if not isinstance(message, Mapping):
        unknown[f"{kind_of(record)} without a message"] += 1
    elif record.get("isApiErrorMessage"):
        unknown["failed request"] += 1  # written by the program, not by the model
    elif record["type"] == "assistant":
        _reply(steps, message, unknown)
    else:
        _user(steps, record, message, unknown)


def _reply(steps: Assembler, message: Mapping[str, Any], unknown: Counter[str]) -> None:
    turn = steps.turn(str(message.get("id") or ""))
    turn.model = str(message.get("model") or turn.model)
    usage = message.get("usage")
    if isinstance(usage, Mapping):
        turn.usage = {key: value for key, value in usage.items() if isinstance(value, int)}
    content = message.get("content")
    for part in content if isinstance(content, list) else [{"type": "text", "text": text_of(content)}]:
        kind = kind_of(part)
        if kind in ("thinking", "redacted_thinking"):
            turn.thoughts += [part_text(part)] if kind == "thinking" else []
        elif kind == "text":
            words = part_text(part)
            turn.texts += [words] if words not in turn.texts else []
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            steps.call(turn, str(part.get("id") or ""), str(part.get("name") or "tool"), args_of(part.get("input")))
        elif kind.endswith("_tool_result"):
            steps.result(str(part.get("tool_use_id") or "") or None, result_of(part.get("content")))
        else:
            unknown[f"{kind} in a reply"] += 1


def _user(steps: Assembler, record: Mapping[str, Any], message: Mapping[str, Any], unknown: Counter[str]) -> None:
    content, words = message.get("content"), []
    for part in content if isinstance(content, list) else []:
        if kind_of(part) != "tool_result":
            text = part_text(part) if isinstance(part, Mapping) else str(part)
            steps.user(text, meta=True) if text.startswith(_CONTEXT) else words.append(text)
            continue
        call_id = str(part.get("tool_use_id") or "")
        if not steps.result(call_id, result_of(part.get("content")), failed=bool(part.get("is_error"))):
            unknown["result without its call"] += 1
    text = "\n".join(words) if isinstance(content, list) else text_of(content)
    if text and text != _NOTHING:
        meta = bool(record.get("isMeta") or record.get("isCompactSummary")) or text.startswith(_COMMANDS)
        steps.user(text, meta=meta)
