"""Converts tool calls of models and servers to `Call`. Input is duck-typed.

Invalid calls never raise: each becomes a `BadCall` that the model reads as an error, and the valid ones are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from remora.context.contracts import ToolSpec
from remora.context.schema import problems
from remora.errors import ToolArgumentsInvalid, ToolError, ToolNotFound
from remora.events import Call, canonical

MAX_ID = 200
"""Most characters of a call's id. A longer id is replaced."""


@dataclass(frozen=True)
class BadCall:
    """An invalid call: the call, its arguments as written, and the error that the model reads."""

    call: Call
    written: str
    error: ToolError


class FunctionCallLike(Protocol):
    """A tool call of OpenAI's chat completions."""

    @property
    def function(self) -> Any: ...


class NamedCallLike(Protocol):
    """A call of OpenAI's Responses API, or a `tool_use` block of Anthropic's Messages API."""

    @property
    def name(self) -> Any: ...


CallLike = Call | Mapping[str, Any] | FunctionCallLike | NamedCallLike
"""Accepted as a call: a `Call`, `{"tool": …, "args": …}`, or a call of an OpenAI or Anthropic client."""


def read_call(call: object, *, number: str = "call") -> Call | BadCall:
    """Convert a `Call`, `{"tool": …, "args": …}`, or a tool call as OpenAI or Anthropic write it.

    `number` is the default id.
    """
    if isinstance(call, Call):
        return call
    inner = get(call, "function") or call
    name = text_of(get(inner, "name") or get(inner, "tool"))
    arguments = get(inner, "arguments")
    for other in ("args", "input"):
        arguments = get(inner, other) if arguments is None else arguments
    call_id = text_of(get(call, "call_id") or get(call, "id"))
    named = Call(call_id=call_id if 0 < len(call_id) <= MAX_ID else number, tool=name)
    try:
        return named.model_copy(update={"args": _arguments(arguments)})
    except (TypeError, ValueError) as error:
        return BadCall(named, text_of(arguments), ToolArgumentsInvalid(name, [f"expected a JSON object ({error})"]))


def sort_calls(
    written: Iterable[object], tools: Sequence[ToolSpec], turn: int, *, strict: bool = False
) -> tuple[tuple[Call, ...], tuple[BadCall, ...]]:
    """Split calls into valid and invalid ones, and make ids unique. `strict` validates arguments by their schema."""
    specs = {tool.name: tool for tool in tools}
    good: dict[str, Call] = {}
    bad: list[BadCall] = []
    for place, item in enumerate(written):
        number = f"call-{turn}-{place}"
        call = _validate(read_call(item, number=number), specs, strict)
        if isinstance(call, BadCall):
            bad.append(call)
        else:
            call_id = number if call.call_id in good else call.call_id
            good[call_id] = call.model_copy(update={"call_id": call_id})
    return tuple(good.values()), tuple(bad)


def drop_extra_arguments(written: Iterable[object], tools: Sequence[ToolSpec]) -> tuple[list[object], list[str]]:
    """Remove arguments that a call's tool does not have. Returns the calls, and a sentence for each one changed.

    Models like to pass a field of the packet, such as `node_id`, beside the right arguments. A tool that has no
    `properties`, or that accepts other ones, keeps everything.
    """
    specs = {tool.name: tool.parameters for tool in tools}
    calls: list[object] = []
    sentences: list[str] = []
    for item in written:
        call = read_call(item, number="")
        schema = specs.get(call.tool, {}) if isinstance(call, Call) else {}
        known = schema.get("properties")
        if isinstance(call, BadCall) or not isinstance(known, Mapping) or schema.get("additionalProperties"):
            calls.append(item)
            continue
        extra = [name for name in call.args if name not in known]
        args = {name: value for name, value in call.args.items() if name in known}
        calls.append(call.model_copy(update={"args": args}) if extra else item)
        if extra:
            names = ", ".join(f"`{name:.80}`" for name in extra[:8])
            sentences.append(f"`{call.tool}` has no argument {names}: the call was made without")
    return calls, sentences


def _validate(call: Call | BadCall, specs: Mapping[str, ToolSpec], strict: bool) -> Call | BadCall:
    if isinstance(call, BadCall) or (not specs and call.tool):
        return call
    if call.tool not in specs:
        return BadCall(call, canonical(call.args).decode(), ToolNotFound(call.tool, known=specs))
    errors = problems(specs[call.tool].parameters, call.args) if strict else []
    if errors:
        return BadCall(call, canonical(call.args).decode(), ToolArgumentsInvalid(call.tool, errors[:3]))
    return call


def _arguments(written: Any) -> dict[str, Any]:
    """The arguments as a JSON object. Raises `TypeError` or `ValueError`."""
    if written is None or written == "":
        return {}
    value = orjson.loads(canonical(written) if isinstance(written, Mapping) else written)
    if not isinstance(value, dict):
        raise TypeError("not an object")
    canonical(value)  # raises for nesting that orjson can parse but not write
    return value


def text_of(value: Any) -> str:
    """Text without lone surrogates. Of a list of message parts, the text parts joined."""
    if isinstance(value, list | tuple):
        return "".join(text_of(get(part, "text")) for part in value)
    return "" if value is None else str(value).encode(errors="replace").decode()


def usage_of(usage: Any) -> dict[str, Any]:
    """A server's token usage as plain JSON."""
    dump = getattr(usage, "model_dump", None)
    plain = dump() if callable(dump) else usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {})
    try:
        stored: dict[str, Any] = orjson.loads(canonical({key: item for key, item in plain.items() if item is not None}))
    except (TypeError, ValueError):
        return {}
    return stored


def get(value: Any, name: str) -> Any:
    """An attribute of an object, or an item of a mapping; None if missing."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
