"""Reading chat logs of other programs as steps to record on both tracks. Pure: bytes in, conversations and problems
out.

Formats: OpenAI-style messages (`tool_calls`, the older `function_call`, role `tool`) and SWE-agent trajectories, with
function calls or text actions. A file contains one conversation per line (JSONL), or one JSON document: a list of
messages, an object with `messages`, `history` or `trajectory`, or a list of those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import orjson

from remora.analysis._messages import AssistantTurn, ChatProblem, UserMessage, read_messages, read_steps, text_of
from remora.context.contracts import ToolSpec
from remora.events import digest

_LINES = (".jsonl", ".ndjson")
_EXPECTED = "expected a list of messages, or an object with `messages`, `history` or `trajectory`"


@dataclass(frozen=True)
class Chat:
    """One conversation. It is recorded only if all of it could be read."""

    source: str
    """File name and line, or file name and index."""
    sha256: str
    """Of the whole file."""
    system: str
    """Everything before the task: system messages and demonstrations."""
    goal: str
    tools: tuple[ToolSpec, ...]
    steps: tuple[UserMessage | AssistantTurn, ...]
    model: str = ""


def read_chats(name: str, data: bytes) -> Iterator[Chat | ChatProblem]:
    """Yield every conversation of a file, in order; a problem with its place for each that cannot be read."""
    sha256 = digest(data)
    for place, document in _documents(name, data):
        try:
            if isinstance(document, ChatProblem):
                raise document
            yield _chat(place, sha256, document)
        except ChatProblem as problem:
            yield ChatProblem(f"{place}: {problem}" if problem is not document else str(problem))


def _documents(name: str, data: bytes) -> Iterator[tuple[str, Any]]:
    if not data.strip():
        yield name, ChatProblem(f"{name}: the file is empty: {_EXPECTED}")
        return
    whole, lines = _loads(name, data), data.splitlines()
    first = _loads(name, next(line for line in lines if line.strip()))
    named = PurePath(name).suffix.lower() in _LINES
    broken, lined = isinstance(whole, ChatProblem), not isinstance(first, ChatProblem)
    if (lined and (named or broken)) or (named and broken):
        places = ((f"{name}:{number}", line) for number, line in enumerate(lines, 1) if line.strip())
        yield from ((place, _loads(place, line)) for place, line in places)
    elif broken:
        yield name, whole
    else:
        yield from _conversations(name, whole)


def _conversations(name: str, document: Any) -> Iterator[tuple[str, Any]]:
    """One document is one conversation, unless it is a list of them."""
    if isinstance(document, list) and document and not _is_message(document[0]):
        yield from ((f"{name}[{index}]", item) for index, item in enumerate(document))
    else:
        yield name, document


def _loads(place: str, data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return ChatProblem(f"{place}: not JSON: {error}")


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "role" in value


def _chat(source: str, sha256: str, document: Any) -> Chat:
    around = document if isinstance(document, Mapping) else {}
    if _is_message(document):
        raise ChatProblem("a single message; expected a whole conversation a line, as a list of messages")
    steps, key = _steps(document, around)
    system, rest = _opening(steps)
    goal = rest.pop(0).text if rest and isinstance(rest[0], UserMessage) else ""
    if not any(isinstance(step, AssistantTurn) for step in rest):
        raise ChatProblem(f"`{key}` holds no message of an assistant")
    return Chat(
        source=source,
        sha256=sha256,
        system=system,
        goal=goal,
        tools=_tools(around.get("tools")),
        steps=tuple(rest),
        model=str(around.get("model") or ""),
    )


def _steps(document: Any, around: Mapping[str, Any]) -> tuple[list[UserMessage | AssistantTurn], str]:
    if isinstance(document, list):
        return read_messages("messages", document), "messages"
    trajectory = around.get("trajectory")
    observed = trajectory if isinstance(trajectory, list) else []
    for key in ("messages", "history"):
        if isinstance(around.get(key), list) and around[key]:
            return read_messages(key, around[key], observed), key
    if observed:
        return read_steps(observed), "trajectory"
    raise ChatProblem(f"no conversation: {_EXPECTED}")


def _opening(steps: Sequence[UserMessage | AssistantTurn]) -> tuple[str, list[UserMessage | AssistantTurn]]:
    """System texts and demonstrations, wherever they are, and the remaining steps."""
    fixed = [step.text for step in steps if isinstance(step, UserMessage) and step.fixed]
    return "\n\n".join(fixed), [step for step in steps if not (isinstance(step, UserMessage) and step.fixed)]


def _tools(offered: Any) -> tuple[ToolSpec, ...]:
    """The tools that the log says were offered. Many logs do not say."""
    specs = map(_spec, offered) if isinstance(offered, list) else ()
    return tuple({spec.name: spec for spec in specs if spec is not None}.values())


def _spec(item: Any) -> ToolSpec | None:
    function = item.get("function", item) if isinstance(item, Mapping) else {}
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return None
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    fits = isinstance(properties, Mapping) and all(isinstance(schema, Mapping) for schema in properties.values())
    description = text_of(function.get("description") or "")
    if not fits:
        return ToolSpec(name=function["name"], description=description)
    return ToolSpec(name=function["name"], description=description, parameters=dict(parameters or {}))
