"""The shapes of OpenAI-compatible chat: a tool as a dict, a reply as an object of the `openai` client or as its dict.

Read by their shape alone, so nothing is imported for it. What a model wrote is never a reason to stop: a call that
cannot be understood is told, and the others stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from remora.context.contracts import ToolSpec
from remora.errors import ConfigError, DecisionError, ToolArgumentsInvalid, ToolError, ToolNotFound
from remora.events import Call, canonical
from remora.ports import Decision


@dataclass(frozen=True)
class BadCall:
    """A call that cannot be made, as the model wrote it, and what the model should read about it."""

    call: Call
    written: str
    error: ToolError


@dataclass(frozen=True)
class Reply:
    """What a model answered: the calls that can be made, and those that cannot."""

    decision: Decision
    bad: tuple[BadCall, ...] = ()


def tool_spec(tool: ToolSpec | Mapping[str, Any]) -> ToolSpec:
    """A tool, ours or in OpenAI's shape. Raises `ConfigError`."""
    if isinstance(tool, ToolSpec):
        return tool
    inner = _get(tool, "function") or tool
    fields = {name: _get(inner, name) for name in ToolSpec.model_fields}
    try:
        return ToolSpec.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise ConfigError(
            f"`{tool!r:.80}` is not a tool: expected a `ToolSpec` or a dict in OpenAI's shape",
            hint='{"type": "function", "function": {"name": …, "description": …, "parameters": {…}}}',
        ) from error


def read_reply(reply: object, tools: Sequence[ToolSpec], *, turn: int, in_text: bool = False) -> Reply:
    """The reply of a model: a completion, its message, or the dict of either. Raises `DecisionError` for others.

    With `in_text`, a text that is `{"tool": …, "args": …}` is a call.
    """
    choices = _get(reply, "choices")
    first = choices[0] if isinstance(choices, list | tuple) and choices else None
    message = _get(first, "message") if first is not None else reply
    if _get(message, "role") is None and _get(message, "tool_calls") is None and _get(message, "content") is None:
        raise DecisionError(
            f"`{reply!r:.200}` is not a reply: expected a `Decision`, or a chat completion or its dict",
            hint="A stream is put together first: `stream=False`, or the client's own final completion",
        )
    text = _text(_get(message, "content"))
    written = _get(message, "tool_calls") or (_calls_in(text) if in_text else ())
    good, bad = _sorted_calls(written, tools, turn)
    decision = Decision(
        calls=good,
        text=text,
        model=_text(_get(reply, "model")),
        usage=_usage(_get(reply, "usage")),
        finish=_text(_get(first, "finish_reason")),
    )
    return Reply(decision, bad)


def read_call(call: object, *, number: str = "call") -> Call | BadCall:
    """A call: ours, `{"tool": …, "args": …}`, or a tool call in OpenAI's shape."""
    if isinstance(call, Call):
        return call
    inner = _get(call, "function") or call
    name = _text(_get(inner, "name") or _get(inner, "tool"))
    arguments = _get(inner, "arguments")
    arguments = _get(inner, "args") if arguments is None else arguments
    named = Call(call_id=_text(_get(call, "id") or _get(call, "call_id")) or number, tool=name)
    try:
        return named.model_copy(update={"args": _arguments(arguments)})
    except (TypeError, ValueError) as error:
        return BadCall(named, _text(arguments), ToolArgumentsInvalid(name, [f"expected a JSON object ({error})"]))


def _sorted_calls(
    written: Iterable[object], tools: Sequence[ToolSpec], turn: int
) -> tuple[tuple[Call, ...], tuple[BadCall, ...]]:
    """The calls that can be made, and those that cannot; every id once."""
    names = [tool.name for tool in tools]
    good: list[Call] = []
    bad: list[BadCall] = []
    for place, item in enumerate(written):
        number = f"call-{turn}-{place}"
        call = read_call(item, number=number)
        if isinstance(call, Call) and names and call.tool not in names:
            call = BadCall(call, canonical(call.args).decode(), ToolNotFound(call.tool, agent="own loop", known=names))
        if isinstance(call, BadCall):
            bad.append(call)
        else:
            taken = any(call.call_id == other.call_id for other in good)
            good.append(call.model_copy(update={"call_id": number}) if taken else call)
    return tuple(good), tuple(bad)


def _calls_in(text: str) -> tuple[dict[str, Any], ...]:
    try:
        value = orjson.loads(text)
    except ValueError:
        return ()
    return (value,) if isinstance(value, dict) and "tool" in value else ()


def _arguments(written: Any) -> dict[str, Any]:
    """The arguments as an object that a stream can hold. Raises `TypeError` or `ValueError`."""
    if written is None or written == "":
        return {}
    value = orjson.loads(canonical(written) if isinstance(written, Mapping) else written)
    if not isinstance(value, dict):
        raise TypeError("not an object")
    canonical(value)  # what is nested too deeply can be read, but not written
    return value


def _usage(usage: Any) -> dict[str, Any]:
    dump = getattr(usage, "model_dump", None)
    plain = dump() if callable(dump) else usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {})
    try:
        stored: dict[str, Any] = orjson.loads(canonical({key: item for key, item in plain.items() if item is not None}))
    except (TypeError, ValueError):
        return {}
    return stored


def _text(value: Any) -> str:
    """Text that a stream can hold; of a list of parts, the parts that are text."""
    if isinstance(value, list | tuple):
        return "".join(_text(_get(part, "text")) for part in value)
    return "" if value is None else str(value).encode(errors="replace").decode()


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
