"""All lines of an output, for those who look something up in it: none is left out, and none is long.

Lines of JSON begin with their path, so that each can be read by itself:

    data[776]: id: itm_00776, sku: SKU-3219, price: 12.5
    items[2].status.containerStatuses[0].state: waiting: (reason: CrashLoopBackOff)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from remora.context.evidence._parsing import parsed
from remora.context.evidence._records import MAX_DEPTH, flow

MAX_WHOLE = 1_000
"""Most characters of a line. A longer one is divided."""
MAX_PART = 400
"""Most characters of a part of it."""
MAX_JOINED = 200
"""Most characters of a line that holds several values."""
MAX_PARTS = 50
"""Most parts of a value in one line."""
MAX_PATH = 40
"""Levels of a value that are divided. Deeper ones are one text."""
_BREAKS = ("\n", "; ", ", ", " ", ";", ",", "}", ">", "&")
"""Where a long line is divided, the best first."""
_RECORDS = (dict, Mapping)
_NESTED = (dict, list, tuple, Mapping)


def whole_lines(text: str, *, is_value: bool = False) -> list[str]:
    """All lines of an output's text. JSON that is a value or has long lines is written as lines with paths."""
    lines = text.splitlines()
    is_long = any(len(line) > MAX_WHOLE for line in lines)
    if is_value or is_long:
        value = parsed(text)
        if not isinstance(value, str):
            return [piece for line in path_lines(value) for piece in _divided(line)]
    if is_long and text.lstrip().startswith("<"):
        lines = text.replace("><", ">\n<").splitlines()
    return [piece for line in lines for piece in _divided(line)] if is_long else lines


def path_lines(value: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    """A JSON value as lines that begin with their paths."""
    label = f"{path}: " if path else ""
    if not isinstance(value, _NESTED) or depth >= MAX_PATH:
        text = (_json(value) if isinstance(value, _NESTED) else flow(value)).splitlines() or [""]
        yield label + text[0]
        yield from (f" {line}" for line in text[1:])
    elif _is_small(value) and len(line := label + flow(value)) <= MAX_JOINED:
        yield line if value else f"{label}none"
    elif isinstance(value, _RECORDS):
        plain = {name: item for name, item in value.items() if not isinstance(item, _NESTED) and _is_small(item)}
        yield from _joined(label, plain)
        for name, item in value.items():
            if name not in plain:
                yield from path_lines(item, f"{path}.{name}" if path else str(name), depth + 1)
    else:
        for number, item in enumerate(value):
            yield from path_lines(item, f"{path}[{number}]", depth + 1)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()
    except (TypeError, ValueError):
        return repr(value)


def _joined(label: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """The plain fields of a record in as few lines as they fit, so that an id stands beside what it names."""
    line = ""
    for name, item in fields.items():
        part = f"{name}: {flow(item)}"
        if line and len(label) + len(line) + len(part) + 2 > MAX_JOINED:
            yield label + line
            line = ""
        line = f"{line}, {part}" if line else part
    if line:
        yield label + line


def _is_small(value: Any, depth: int = 0) -> bool:
    """Whether one line can show a value whole: it has few levels, few parts, and no text of several lines."""
    if isinstance(value, str):
        return "\n" not in value and len(value) <= MAX_JOINED
    if not isinstance(value, _NESTED):
        return True
    parts: Sequence[Any] = list(value.values()) if isinstance(value, Mapping) else value
    return depth < MAX_DEPTH - 1 and len(parts) <= MAX_PARTS and all(_is_small(part, depth + 1) for part in parts)


def _divided(line: str) -> Iterator[str]:
    """A long line in parts, between words or values where possible."""
    if len(line) <= MAX_WHOLE:
        yield line
        return
    while len(line) > MAX_PART:
        ends = (line.rfind(sign, MAX_PART // 2, MAX_PART) + len(sign) for sign in _BREAKS)
        end = next((end for end in ends if end > MAX_PART // 2), MAX_PART)
        yield line[:end].rstrip()
        line = f" … {line[end:].lstrip()}"
    yield line
