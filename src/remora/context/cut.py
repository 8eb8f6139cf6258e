"""Replies that were cut at their limit of tokens: what to tell the model, and whether a longer reply can help."""

from __future__ import annotations

import re

from remora.context.text import one_line

CUT = "length"
"""The finish reason of a reply that was cut."""
_TAIL = 600
_REPEATED = re.compile(r"(.{3,120}?)\1{3,}(?P<rest>.{0,120})\Z", re.DOTALL)


def repeated_part(text: str) -> str:
    """The part that `text` repeats until it ends, at least four times; empty if there is none."""
    found = _REPEATED.search(text[-_TAIL:])
    return found[1] if found and found[1].startswith(found["rest"]) and found[1].strip() else ""


def may_be_longer(finish: str, text: str) -> bool:
    """Whether the reply was cut and a longer one may be complete. One that repeats itself never is."""
    return finish == CUT and not repeated_part(text)


def describe_cut(text: str, limit: int, next_limit: int) -> str:
    """What the model is told about its reply that was cut after `limit` tokens. The next one may have `next_limit`."""
    if part := repeated_part(text):
        shown = one_line(part, 60)
        return f"The reply repeated `{shown}` until it was cut at {limit} tokens: write it once and end the call"
    if next_limit > limit:
        return f"The reply was cut at {limit} tokens, before the call was complete: the next may have {next_limit}"
    return f"The reply was cut at {limit} tokens, before the call was complete: write a shorter call"
