"""Formats a call as one readable line, and its long arguments as further lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.context.evidence._records import flow

MAX_INLINE = 160
"""Most characters of an argument in the call's line."""
MAX_CALL = 600
MAX_GIVEN = 4_000
"""Most characters kept of a long argument."""


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


def _argument(value: Any) -> str:
    text = flow(value)
    return f"({text})" if isinstance(value, Mapping) else text.strip("\n")
