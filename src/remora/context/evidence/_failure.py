"""Detects results that report a failure. Text that only mentions errors does not count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

HEAD = 2_000
"""Characters examined at each end of a text."""
SHORT = 400
"""Most characters of a text that is nothing but a shell's error message."""

_FIRST = re.compile(
    r"\s*(?:(?:fatal|error|exception|failed|failure|panic)(?: ?[\[(][^\n\])]{0,40}[\])])?[:!](?! ?0\b)"
    r"|(?:fatal|syntax|usage|runtime|internal|server) ?error\b[^\n]{0,40}?:"
    r"|[\w.]*(?:Error|Exception): "
    r"|error (?:while|when|in|at|on|occurred|running|executing|parsing|reading|opening|loading|calling|during)\b"
    r"|an? (?:\w+ )?(?:error|exception) (?:occurred|was raised)\b"
    r"|(?:failed|unable) to \w|could not \w|(?:execution|command|request|operation) (?:timed out|failed)\b)",
    re.IGNORECASE,
)
_COMPLAINT = re.compile(
    r"^[\w./~-]+: (?:.{0,200}: )?(?:no such file or directory|command not found|not found|permission denied|"
    r"is a directory|not a directory|cannot (?:open|access|create|stat)\b.*|unrecognized (?:option|arguments)\b.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_RAISED = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::|$)", re.MULTILINE)
_REFUSED = re.compile(
    r"\b(?:changes? (?:have|has) not been (?:applied|made|saved)|edit (?:was )?not applied"
    r"|has introduced new syntax error|no changes were made)\b",
    re.IGNORECASE,
)
_REFUSALS = ("not been", "not applied", "has introduced new", "no changes were")
"""Of these, every text that `_REFUSED` finds contains one. Searching for them is faster."""
_BAD = frozenset({"error", "failed", "failure", "fail", "exception", "timeout", "denied"})


def says_failed(value: Any) -> bool:
    """Whether a result reports that the call failed."""
    if isinstance(value, Mapping):
        return _record_failed(value)
    return isinstance(value, str) and _text_failed(value)


def _record_failed(record: Mapping[str, Any]) -> bool:
    for key in ("error", "Error", "exception"):
        if isinstance(record.get(key), str | Mapping) and record[key]:
            return True
    if any(record.get(key) is False for key in ("ok", "success", "succeeded")):
        return True
    if record.get("isError") is True or record.get("is_error") is True:
        return True
    if any(_is_code(record.get(key)) for key in ("returncode", "return_code", "exit_code", "exitcode")):
        return True
    # A large record may describe something else that failed; a small one describes this call.
    status = record.get("status", record.get("outcome"))
    return isinstance(status, str) and status.lower() in _BAD and len(record) <= 4


def _is_code(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value != 0


@lru_cache(maxsize=1)
def _text_failed(text: str) -> bool:
    """Whether a text reports a failure. Cached, because an output is distilled first and then read as evidence."""
    head, tail = text[:HEAD], text[-HEAD:]
    if _FIRST.match(head) or _refuses(head) or _refuses(tail):
        return True
    start = text.find("Traceback (most recent call last)")
    if start >= 0 and (start == 0 or text[start - 1] == "\n") and _RAISED.search(tail):
        return True
    return len(text) <= SHORT and _COMPLAINT.search(text) is not None


def _refuses(text: str) -> bool:
    if text.isascii():
        lower = text.lower()
        if not any(words in lower for words in _REFUSALS):
            return False
    return _REFUSED.search(text) is not None
