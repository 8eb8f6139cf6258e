"""Formats a call as one readable line, and its long arguments as further lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from remora.context.evidence._records import flow

MAX_INLINE = 160
"""Most characters of an argument in the call's line."""
MAX_CALL = 600
MAX_GIVEN = 4_000
"""Most characters kept of a long argument."""
HIDDEN = "…"
"""Stands for a long argument."""
LINE = "\n"


def call_line(tool: str, args: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The call in one line, and the lines of its long arguments."""
    short, given = [], []
    for name, value in args.items():
        text = _argument(value)
        if len(text) > MAX_INLINE or "\n" in text:
            head, _, rest = text[:MAX_GIVEN].partition("\n")
            if len(args) == 1 and head.split(" ")[0] == tool:  # a command line that starts with the tool's name
                return head[:MAX_CALL], tuple(rest.splitlines()) if rest else ()
            short.append(f"{name}=…")
            if len(args) > 1:
                given.append(f"{name}:")
            given += [f" {line}" for line in text[:MAX_GIVEN].splitlines()]
        elif len(args) == 1 and text.split(" ")[0] == tool:
            return text.strip(), ()
        else:
            short.append(f"{name}={text}")
    line = f"{tool}({', '.join(short)})"
    return line if len(line) <= MAX_CALL else line[: MAX_CALL - 2] + "…)", tuple(given)


def call_json(tool: str, args: Mapping[str, Any]) -> str:
    """The call as JSON, with `…` for arguments that `call_line` gives lines of their own; empty if it is too large."""
    short = {}
    for name, value in args.items():
        text = _argument(value)
        is_command = len(args) == 1 and text.split(None, 1)[:1] == [tool]
        if len(text) <= MAX_INLINE and "\n" not in text:
            short[name] = value
        else:
            short[name] = f"{text.partition(LINE)[0][:MAX_INLINE]}\n{HIDDEN}" if is_command else HIDDEN
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
    return {**values, **{name: values[name].removesuffix(HIDDEN) + LINE.join(found[name]) for name in long}}


def _is_hidden(value: str) -> bool:
    return value == HIDDEN or value.endswith(f"\n{HIDDEN}")


def _argument(value: Any) -> str:
    text = flow(value)
    return f"({text})" if isinstance(value, Mapping) else text.strip("\n")
