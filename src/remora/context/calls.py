"""Tool calls as models and servers write them, made into ours. They are read by their shape alone.

What a model wrote is never a reason to stop: a call that cannot be understood is told, and the others stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from remora.context.contracts import ToolSpec
from remora.context.schema import problems
from remora.errors import ToolArgumentsInvalid, ToolError, ToolNotFound
from remora.events import Call, canonical

MAX_ID = 200
"""Characters of a call's id; a longer one is replaced by ours."""


@dataclass(frozen=True)
class BadCall:
    """A call that cannot be made, as the model wrote it, and what the model should read about it."""

    call: Call
    written: str
    error: ToolError


def read_call(call: object, *, number: str = "call") -> Call | BadCall:
    """A call: ours, `{"tool": …, "args": …}`, or a tool call in OpenAI's shape."""
    if isinstance(call, Call):
        return call
    inner = get(call, "function") or call
    name = text_of(get(inner, "name") or get(inner, "tool"))
    arguments = get(inner, "arguments")
    arguments = get(inner, "args") if arguments is None else arguments
    call_id = text_of(get(call, "id") or get(call, "call_id"))
    named = Call(call_id=call_id if 0 < len(call_id) <= MAX_ID else number, tool=name)
    try:
        return named.model_copy(update={"args": _arguments(arguments)})
    except (TypeError, ValueError) as error:
        return BadCall(named, text_of(arguments), ToolArgumentsInvalid(name, [f"expected a JSON object ({error})"]))


def sort_calls(
    written: Iterable[object], tools: Sequence[ToolSpec], turn: int, *, strict: bool = False
) -> tuple[tuple[Call, ...], tuple[BadCall, ...]]:
    """The calls that can be made, and those that cannot; every id once. `strict` holds arguments to their schema."""
    specs = {tool.name: tool for tool in tools}
    good: dict[str, Call] = {}
    bad: list[BadCall] = []
    for place, item in enumerate(written):
        number = f"call-{turn}-{place}"
        call = _checked(read_call(item, number=number), specs, strict)
        if isinstance(call, BadCall):
            bad.append(call)
        else:
            call_id = number if call.call_id in good else call.call_id
            good[call_id] = call.model_copy(update={"call_id": call_id})
    return tuple(good.values()), tuple(bad)


def _checked(call: Call | BadCall, specs: Mapping[str, ToolSpec], strict: bool) -> Call | BadCall:
    if isinstance(call, BadCall) or not specs:
        return call
    if call.tool not in specs:
        return BadCall(call, canonical(call.args).decode(), ToolNotFound(call.tool, known=specs))
    misfits = problems(specs[call.tool].parameters, call.args) if strict else []
    if misfits:
        return BadCall(call, canonical(call.args).decode(), ToolArgumentsInvalid(call.tool, misfits[:3]))
    return call


def _arguments(written: Any) -> dict[str, Any]:
    """The arguments as an object that a stream can hold. Raises `TypeError` or `ValueError`."""
    if written is None or written == "":
        return {}
    value = orjson.loads(canonical(written) if isinstance(written, Mapping) else written)
    if not isinstance(value, dict):
        raise TypeError("not an object")
    canonical(value)  # what is nested too deeply can be read, but not written
    return value


def text_of(value: Any) -> str:
    """Text that a stream can hold; of a list of parts, the parts that are text."""
    if isinstance(value, list | tuple):
        return "".join(text_of(get(part, "text")) for part in value)
    return "" if value is None else str(value).encode(errors="replace").decode()


def usage_of(usage: Any) -> dict[str, Any]:
    """What a server counted, as a stream can hold it."""
    dump = getattr(usage, "model_dump", None)
    plain = dump() if callable(dump) else usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {})
    try:
        stored: dict[str, Any] = orjson.loads(canonical({key: item for key, item in plain.items() if item is not None}))
    except (TypeError, ValueError):
        return {}
    return stored


def get(value: Any, name: str) -> Any:
    """A field of an object, or the item of that name."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
