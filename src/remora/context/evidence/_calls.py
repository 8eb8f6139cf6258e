"""Formats a call as one readable line, and its long arguments as further lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from remora.context.evidence._reading import bounded, clean_lines
from remora.context.evidence._records import flow

MAX_INLINE = 160
"""Most characters of an argument in the call's line."""
HEAD = 60
"""Characters of a long argument in the call's line, so that the line says what was called."""
MAX_CALL = 600
MAX_GIVEN = 6_000
"""Most bytes kept of a long argument."""
HIDDEN = "…"
"""Stands for the rest of a long argument."""
LINE = "\n"


def call_line(tool: str, args: Mapping[str, Any]) -> tuple[str, tuple[str, ...], int]:
    """The call in one line, the lines of its long arguments, and how many of these are not kept."""
    short, given, omitted = [], list[str](), 0
    for name, value in args.items():
        text = _argument(value)
        if len(text) > MAX_INLINE or LINE in text:
            head, _, rest = text.partition(LINE)
            if len(args) == 1 and head.split(" ")[0] == tool:  # a command line that starts with the tool's name
                lines, omitted = _kept(rest)
                return head[:MAX_CALL], tuple(lines), omitted
            start, rest = _divided(text)
            lines, more = _kept(rest)
            omitted += more
            short.append(f"{name}={start}{HIDDEN}")
            if len(args) > 1:
                given.append(f"{name}:")
            given += [f" {line}" for line in lines]
        elif len(args) == 1 and text.split(" ")[0] == tool:
            return text.strip(), (), 0
        else:
            short.append(f"{name}={text}")
    line = f"{tool}({', '.join(short)})"
    return line if len(line) <= MAX_CALL else line[: MAX_CALL - 2] + "…)", tuple(given), omitted


def without_head(line: str, given: Sequence[str]) -> str:
    """The call's line without the beginning of a long argument that the first of its lines repeats."""
    return line.replace(f"={_divided(given[0])[0]}{HIDDEN}", f"={HIDDEN}", 1) if given else line


def _divided(text: str) -> tuple[str, str]:
    """The beginning of a long argument, and the lines to keep of it: without the first one if it is the beginning."""
    head, _, rest = text.lstrip().partition(LINE)
    if len(head) <= HEAD and rest:
        return head.rstrip(), rest
    cut = head.rfind(" ", HEAD // 2, HEAD)
    return head[: cut if cut > 0 else HEAD], text


def _kept(text: str) -> tuple[list[str], int]:
    """The lines of a long argument that are kept, from both ends, and how many are not."""
    lines = clean_lines(text.splitlines())
    kept = bounded(lines, MAX_GIVEN, dict)
    return [lines[at] for at in kept], len(lines) - len(kept)


def call_json(tool: str, args: Mapping[str, Any]) -> str:
    """The call as JSON; empty if it is too large. Of a long argument, the beginning, and `…` for its lines."""
    short = {}
    for name, value in args.items():
        text = _argument(value)
        is_command = len(args) == 1 and text.split(None, 1)[:1] == [tool]
        if len(text) <= MAX_INLINE and "\n" not in text:
            short[name] = value
        else:
            head = text.partition(LINE)[0][:MAX_INLINE] if is_command else _divided(text)[0]
            short[name] = f"{head}\n{HIDDEN}"
    try:
        written = orjson.dumps({"name": tool, "arguments": short}).decode()
    except (TypeError, ValueError):
        return ""
    return written if len(written) <= MAX_CALL else ""


def filled_args(values: Mapping[str, Any], lines: Sequence[str]) -> dict[str, Any]:
    """Put the shown lines of long arguments into the arguments that `call_json` has written."""
    long = [name for name, value in values.items() if isinstance(value, str) and _is_hidden(value)]
    if not long or not lines:
        return dict(values)
    found: dict[str, list[str]] = {name: [] for name in long}
    current = long[0]
    for line in lines:
        if len(values) > 1 and line.removesuffix(":") in found and line.endswith(":"):
            current = line.removesuffix(":")
        else:
            found[current].append(line.removeprefix(" "))
    return {**values, **{name: _filled(values[name], found[name]) for name in long}}


def _filled(value: str, lines: Sequence[str]) -> str:
    head, text = value.removesuffix(HIDDEN), LINE.join(lines)
    return text if lines and text.lstrip().startswith(head.rstrip()) else head + text


def _is_hidden(value: str) -> bool:
    return value == HIDDEN or value.endswith(f"\n{HIDDEN}")


def _argument(value: Any) -> str:
    text = flow(value)
    return f"({text})" if isinstance(value, Mapping) else text.strip("\n")
