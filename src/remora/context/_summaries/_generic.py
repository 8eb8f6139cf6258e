"""Summarizers for any JSON and any text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from remora.context._summaries._base import (
    EXCERPT_LINES,
    excerpt,
    line_count,
    lines_of,
    some,
    text_of,
    whole_text_of,
)
from remora.context.summary import Summarized
from remora.context.text import number, one_line

MAX_FACTS = 5
MAX_FACT = 80


def json_of(raw: Any) -> Any:
    """The JSON value of a result: its parsed text, or the value itself. None if the text is not JSON."""
    text = whole_text_of(raw)
    if text is None:
        return None if isinstance(raw, str) else raw
    if not text.lstrip()[:1] or text.lstrip()[0] not in "[{":
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def read_json(raw: Any, *, excerpts: bool = True) -> Summarized | None:
    """An object or a list: its size and its keys or items."""
    value = json_of(raw)
    if isinstance(value, Mapping):
        names = [_brief(key) for key in value]
        line = f"JSON object with {number(len(names), 'key')}: {some(names)}" if names else "Empty JSON object"
        return Summarized(line, _facts(value), _json_excerpt(value) if excerpts else ())
    if isinstance(value, list | tuple):
        return Summarized(_list_line(value), {}, _json_excerpt(value) if excerpts else ())
    return None


def read_text(raw: Any, *, excerpts: bool = True) -> Summarized:
    """Text: its length and first line. The excerpt is its end, where commands report their outcome."""
    text = text_of(raw)
    if text is None:
        return read_json(raw, excerpts=excerpts) or Summarized(_value_line(raw))
    lines = lines_of(text)
    filled = [line for line in lines if line.strip()]
    if not filled:
        return Summarized("No output")
    first = one_line(filled[0], 160)
    line = first if len(filled) == 1 else f"{number(line_count(raw), 'line')}: {first}"
    if not excerpts or len(filled) == 1:
        return Summarized(line)
    start = max(0, len(lines) - EXCERPT_LINES)
    return Summarized(line, {}, excerpt("output", lines[start:], start + 1))


def _list_line(items: Sequence[Any]) -> str:
    if not items:
        return "Empty list"
    if all(isinstance(item, Mapping) for item in items):
        return f"List of {number(len(items), 'object')} with {some([_brief(key) for key in items[0]]) or 'no keys'}"
    kind = "string" if all(isinstance(item, str) for item in items) else "value"
    return f"List of {number(len(items), kind)}: {some([_brief(item) for item in items])}"


def _facts(value: Mapping[Any, Any]) -> dict[str, Any]:
    """The first few numbers, booleans and short strings of an object."""
    plain = {
        _brief(key): item
        for key, item in value.items()
        if isinstance(item, bool | int | float) or (isinstance(item, str) and len(item) <= MAX_FACT)
    }
    return dict(list(plain.items())[:MAX_FACTS])


def _json_excerpt(value: Any) -> tuple[dict[str, Any], ...]:
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        return ()
    return excerpt("json", lines_of(text))


def _value_line(raw: Any) -> str:
    return "Nothing was returned" if raw is None else f"Returned {_brief(raw)}"


def _brief(value: Any) -> str:
    """A small value as text, any other by its type."""
    if isinstance(value, str):
        return one_line(value, 60)
    small = value is None or isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() < 200)
    return str(value) if small else f"a value of type {type(value).__name__}"
