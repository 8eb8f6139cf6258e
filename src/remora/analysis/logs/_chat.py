"""Documents with conversations: chat logs, trajectories (SWE-agent, mini-swe-agent, ATIF), tau-bench, Inspect."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import orjson

from remora.analysis.logs._atif import atif_conversations, is_atif
from remora.analysis.logs._blocks import action_of, text_of, tools_of
from remora.analysis.logs._conversation import Conversation, checked
from remora.analysis.logs._document import Document
from remora.analysis.logs._exchanges import conversation_of, exchange_of
from remora.analysis.logs._inspect import inspect_samples, is_inspect, resolve_attachments, sample_error
from remora.analysis.logs._messages import MessageReader
from remora.analysis.logs._source import LogProblem
from remora.analysis.logs._steps import Assembler, Step, UserMessage

EXPECTED = "expected a list of messages, or an object with `messages`, `history` or `trajectory`"
_LISTS = ("messages", "history", "traj", "input")


def conversations(place: str, document: Document) -> Iterator[Conversation | LogProblem]:
    """Every conversation of a document, or a problem with its place."""
    for source, part in _parts(place, document):
        try:
            if is_atif(part):
                yield from atif_conversations(source, part)
            else:
                yield _conversation(source, part)
        except LogProblem as problem:
            yield LogProblem(f"{source}: {problem}")


def _parts(place: str, document: Document) -> Iterator[tuple[str, Document]]:
    """One document is one conversation, unless it is a list of them, or an evaluation with samples."""
    fields = document.fields()
    if is_inspect(fields):
        yield from inspect_samples(place, fields)
    elif "simulations" in fields and fields["simulations"].is_list:
        yield from _numbered(f"{place}.simulations", fields["simulations"])
    elif document.is_list and not _is_messages(document):
        yield from _numbered(place, document)
    else:
        yield place, document


def _numbered(place: str, listed: Document) -> Iterator[tuple[str, Document]]:
    yield from ((f"{place}[{index}]", element) for index, element in enumerate(listed.elements()))


def _is_messages(document: Document) -> bool:
    """Whether the first element is a message or an item, not a conversation. An empty list is one of messages."""
    first = next(document.elements(), None)
    names = first.fields() if first is not None and first.is_object else {}
    lists = any(key in names and names[key].is_list for key in (*_LISTS, "trajectory"))
    return first is None or "role" in names or ("type" in names and not lists)


def _conversation(source: str, document: Document) -> Conversation:
    if document.is_list:
        read = partial(_read_messages, "messages", document, None, {})
        return checked(Conversation(source, "chat", read))
    fields = document.fields()
    around = document.small()
    if "role" in around:
        raise LogProblem("a single message; expected a whole conversation a line, as a list of messages")
    if (exchange := exchange_of(around)) is not None and (exchange.sent or exchange.answered):
        return conversation_of(source, exchange.format, exchange, lambda: iter([exchange]))
    trajectory = fields.get("trajectory")
    for key in _LISTS:
        if key in fields and fields[key].is_list and next(fields[key].elements(), None) is not None:
            read = partial(_read_messages, key, fields[key], trajectory, around)
            return checked(_around(source, around, read), key)
    if trajectory is not None and trajectory.is_list:
        return checked(_around(source, around, partial(_read_actions, trajectory)), "trajectory")
    if isinstance(around.get("input"), str) and isinstance(around.get("output"), list):
        read = partial(_read_messages, "input", None, None, around)
        return checked(_around(source, around, read), "input")
    raise LogProblem(f"no conversation: {EXPECTED}")


def _around(source: str, around: Mapping[str, Any], read: Any) -> Conversation:
    return Conversation(
        source,
        _format(around),
        read,
        system=text_of(around.get("system") or around.get("instructions") or ""),
        tools=tools_of(around.get("tools")),
        model=_model(around),
        session=str(around.get("id") or around.get("task_id") or "")[:200],
        notices=sample_error(around),
    )


_MODELS = (
    ("model",),
    ("info", "config", "model", "model_name"),  # mini-swe-agent
    ("replay_config", "agent", "model", "name"),  # SWE-agent
    ("output", "model"),  # Inspect
)
"""Where documents name their model."""


def _model(around: Mapping[str, Any]) -> str:
    """The model that a document names beside its messages; empty if it names none."""
    for first, *rest in _MODELS:
        value = _parsed(around.get(first))
        for name in rest:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value and isinstance(value, str):
            return value[:200]
    return ""


def _parsed(value: Any) -> Any:
    """A value, or what a text of JSON holds: SWE-agent writes its settings as one."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _format(around: Mapping[str, Any]) -> str:
    if "trajectory_format" in around or _is_mini(around):
        return "mini-swe-agent"
    if "trajectory" in around or "environment" in around:
        return "SWE-agent"
    if "traj" in around or "reward" in around:
        return "tau-bench"
    if "scores" in around and "target" in around:
        return "Inspect"
    if "output" in around:
        return "Responses"
    return "chat"


def _is_mini(around: Mapping[str, Any]) -> bool:
    info = around.get("info")
    return isinstance(info, Mapping) and ("mini_version" in info or ("model_stats" in info and "messages" in around))


def _read_messages(
    key: str, listed: Document | None, trajectory: Document | None, around: Mapping[str, Any], unknown: Counter[str]
) -> Iterator[Step]:
    """The steps of a list of messages, of the request before it, and of the reply after it."""
    steps = Assembler()
    reader = MessageReader(steps, unknown, strict=True, fenced=_is_mini(around))
    if isinstance(around.get("input"), str) and listed is None:
        steps.user(around["input"])
    attachments = around.get("attachments")
    for index, message in enumerate(listed.values() if listed is not None else ()):
        if isinstance(attachments, Mapping) and attachments:
            message = resolve_attachments(message, attachments)
        reader.take(message, f"{key}[{index}]")
        yield from steps.ready()
    for message in _reply(key, around):
        reader.take(message, "reply")
    if trajectory is not None and trajectory.is_list:
        _complete(steps, trajectory)
    yield from steps.rest()


def _reply(key: str, around: Mapping[str, Any]) -> list[Any]:
    """The messages of the reply that is in the same object as the request."""
    choices, output = around.get("choices"), around.get("output")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return [choices[0]["message"]] if isinstance(choices[0].get("message"), Mapping) else []
    return list(output) if isinstance(output, list) and key == "input" else []


def _complete(steps: Assembler, trajectory: Document) -> None:
    """Add the last observation, which only the trajectory has: no message was sent after it."""
    last = steps.last
    if last is None or isinstance(last, UserMessage) or len(last.results) == len(last.calls):
        return
    final = next(iter(deque(trajectory.values(), maxlen=1)), None)
    if isinstance(final, Mapping) and "observation" in final:
        steps.result(None, final["observation"])


def _read_actions(trajectory: Document, unknown: Counter[str]) -> Iterator[Step]:
    """The steps of a trajectory without messages: each an action and its observation."""
    del unknown
    steps = Assembler()
    for index, item in enumerate(trajectory.values()):
        if not isinstance(item, Mapping):
            raise LogProblem(f"trajectory[{index}]: expected an object with `action` and `observation`")
        turn = steps.turn()
        turn.by_text = True
        turn.texts.append(text_of(item.get("response") or item.get("thought") or ""))
        if named := action_of(item.get("action")):
            steps.call(turn, f"call-{index}", *named)
            if "observation" in item:
                turn.results[0] = item["observation"]
        yield from steps.ready()
    yield from steps.rest()
