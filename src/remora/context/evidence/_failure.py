"""Detects results that report a failure. Text that only mentions errors does not count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from remora.context.evidence._parsing import content_blocks, parsed, parsed_text

HEAD = 2_000
"""Characters examined at each end of a text."""
SHORT = 400
"""Most characters of a text that is nothing but an error message."""
MAX_CODE_LINE = 80
"""Most characters of a line that states an exit code."""
FEW = 4
"""Fields of a record that describes this call. A larger one may describe something else that failed."""

_FIRST = re.compile(
    r"\s*(?:(?:fatal|error|exception|failed|failure|panic)(?: ?[\[(][^\n\])]{0,40}[\])])?[:!](?! ?0\b)"
    r"|(?:fatal|syntax|usage|runtime|internal|server) ?error\b[^\n]{0,40}?:"
    r"|[\w.]*(?:Error|Exception): "
    r"|[\w.-]{1,30}:? error(?: \w{1,8})?: (?!-?[\d.]+\s)"
    r"|error (?:while|when|in|at|on|occurred|running|executing|parsing|reading|opening|loading|calling|during)\b"
    r"|an? (?:\w+ )?(?:error|exception) (?:occurred|was raised)\b"
    r"|(?:failed|unable) to \w|could not \w|(?:execution|command|request|operation) (?:timed out|failed)\b"
    r"|cannot (?:read|open|find|access|write|connect|import|create|delete|parse|load|execute|resolve|query)\b"
    r"|(?:permission|access) denied\b|segmentation fault\b|(?:\w+ )?(?:rate limit|quota) exceeded\b"
    r"|invalid (?:argument|json|request|input|option|parameter|value|path|syntax)\b|time(?:d )?out: (?!\d)"
    r"|<(?:\w+_)?error>|uncaught \w*(?:error|exception)\b|exception in thread \"|thread '[^'\n]*' panicked at "
    r"|(?:http(?:/[\d.]+)?(?: status)? ?)?[45]\d\d (?:client error|server error|bad request|unauthorized|forbidden"
    r"|not found|method not allowed|request timeout|conflict|gone|too many requests|internal server error|bad gateway"
    r"|service unavailable|gateway timeout|unprocessable \w+)\b"
    r"|[^\s:]+:\d+(?::\d+)?: (?:fatal )?error: |npm (?:ERR!|error) |curl: \(\d+\) )",
    re.IGNORECASE,
)
_COMPLAINT = re.compile(
    r"^[\w./~-]+: (?:.{0,200}: )?(?:no such file or directory|command not found|not found|permission denied|"
    r"is a directory|not a directory|cannot (?:open|access|create|stat|remove)\b.*"
    r"|unrecognized (?:option|arguments)\b.*)$"
    r"|^make(?:\[\d+\])?: \*\*\* ",
    re.IGNORECASE | re.MULTILINE,
)
_WHOLE = re.compile(
    r"\s*(?:killed|aborted|unauthorized|forbidden|not found|no such file or directory(?:: .*)?"
    r"|(?:the )?(?:file|path|directory|folder|url|page|resource|module|table|column|user|key|tool|command|branch"
    r"|repository|string to replace)\b.{0,200}\b(?:not found|not find|does not exist|could not be found)\b"
    r".{0,80})[.!]?\s*",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"\W*(?:the )?(?:process|command|script|program|tool)? ?(?:has )?(?:exited|failed|finished|terminated|returned)? ?"
    r"(?:with )?(?:an? )?(?:non-zero )?(?:exit|return)?[ _-]?(?:code|status)(?: was| is)?[ :=]*-?[1-9]\d{0,9}\W*",
    re.IGNORECASE,
)
"""A line that states an exit code other than 0."""
_RAISED = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::|$)", re.MULTILINE)
_REFUSED = re.compile(
    r"\b(?:changes? (?:have|has) not been (?:applied|made|saved)|edit (?:was )?not applied"
    r"|has introduced new syntax error|no changes were made)\b",
    re.IGNORECASE,
)
_REFUSALS = ("not been", "not applied", "has introduced new", "no changes were")
"""Of these, every text that `_REFUSED` finds contains one. Searching for them is faster."""
_BAD = frozenset({"error", "failed", "failure", "fail", "exception", "timeout", "denied"})
_EXIT_CODES = ("returncode", "return_code", "exit_code", "exitcode", "exitCode", "exit_status")
_HTTP_CODES = ("status_code", "statusCode", "http_status", "status")
_GRAPHQL = frozenset({"data", "errors", "extensions"})


def says_failed(value: Any) -> bool:
    """Whether a result reports that the call failed: a value, a JSON text or content blocks."""
    value = parsed_text(value)
    if isinstance(value, Mapping) and _record_failed(value):
        return True
    if content_blocks(value) is not None:
        return says_failed(parsed(value))
    return isinstance(value, str) and _text_failed(value)


def _record_failed(record: Mapping[str, Any]) -> bool:
    for key in ("error", "Error", "exception"):
        if (found := record.get(key)) is True or (isinstance(found, str | Mapping) and found):
            return True
    if any(record.get(key) is False for key in ("ok", "success", "succeeded")):
        return True
    if any(record.get(key) is True for key in ("isError", "is_error", "failed")):
        return True
    if any(_is_code(record.get(key)) for key in _EXIT_CODES) or (_is_code(record.get("code")) and "stderr" in record):
        return True
    return any(_is_http_error(record.get(key)) for key in _HTTP_CODES) or _small_record_failed(record)


def _small_record_failed(record: Mapping[str, Any]) -> bool:
    """Whether a record without a field for failures is an error message."""
    if len(record) > FEW:
        return False
    for key in ("status", "outcome", "result", "type"):
        if isinstance(found := record.get(key), str) and found.lower() in _BAD:
            return True
    if _is_http_error(record.get("code")) and "message" in record:
        return True
    if isinstance(record.get("detail"), str) and len(record) == 1:
        return True
    return bool(record.get("errors")) and record.get("data") is None and record.keys() <= _GRAPHQL


def _is_code(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value != 0


def _is_http_error(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599


@lru_cache(maxsize=1)
def _text_failed(text: str) -> bool:
    """Whether a text reports a failure. Cached, because an output is distilled first and then read as evidence."""
    head, tail = text[:HEAD], text[-HEAD:]
    if _FIRST.match(head) or _refuses(head) or _refuses(tail) or _states_code(head, tail):
        return True
    start = text.find("Traceback (most recent call last)")
    if start < 0 and text.lstrip().startswith('File "'):
        start = text.index('File "')
    if start >= 0 and not text[:start].rpartition("\n")[2].strip() and _RAISED.search(tail):
        return True
    return len(text) <= SHORT and (_COMPLAINT.search(text) or _WHOLE.fullmatch(text)) is not None


def _states_code(head: str, tail: str) -> bool:
    """Whether the first or the last line states an exit code other than 0."""
    first, last = head.lstrip().partition("\n")[0], tail.rstrip().rpartition("\n")[2]
    return any(len(line) < MAX_CODE_LINE and _CODE.fullmatch(line) for line in (first, last))


def _refuses(text: str) -> bool:
    if text.isascii():
        lower = text.lower()
        if not any(words in lower for words in _REFUSALS):
            return False
    return _REFUSED.search(text) is not None
