"""Detects results that report a failure. Values and text that only mention errors do not count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from remora.context.evidence._failure_text import text_failed
from remora.context.evidence._parsing import content_blocks, parsed, parsed_text

FEW = 4
"""Fields of a record that describes this call. A larger one may describe something else that failed."""

_BAD = frozenset({"error", "failed", "failure", "fail", "exception", "timeout", "denied"})
_MESSAGES = ("errorMessage", "error_message", "errmsg", "error_msg", "ErrorMessage")
"""Fields that hold an error message, and nothing else."""
_EXIT_CODES = ("returncode", "return_code", "exit_code", "exitcode", "exitCode", "exit_status")
_HTTP_CODES = ("status_code", "statusCode", "http_status", "status")
_GRAPHQL = frozenset({"data", "errors", "extensions"})
_GITHUB = frozenset({"message", "documentation_url", "errors", "status"})
_BAD_CODE = re.compile(
    r"(?:\w+[_.-])?(?:not_?found|no_?such\w*|errors?|exception|invalid\w*|unauthori[sz]ed|unauthenticated|forbidden"
    r"|denied|failed|failure|timeout|unavailable|conflict|exceeded|missing\w*|bad_?request)(?:[_.-]\w+)?",
    re.IGNORECASE,
)
"""A code in words that names an error."""


def says_failed(value: Any) -> bool:
    """Whether a result reports that the call failed: a value, a JSON text or content blocks."""
    value = parsed_text(value)
    if isinstance(value, Mapping) and _record_failed(value):
        return True
    if content_blocks(value) is not None:
        return says_failed(parsed(value))
    return isinstance(value, str) and text_failed(value)


def names_error(found: Any, record: Mapping[str, Any]) -> bool:
    """Whether the field `error` of a record reports one. A number does only beside a message: else it is a measure."""
    if isinstance(found, bool) or found is None:
        return found is True
    if isinstance(found, int | float):
        return found != 0 and any(isinstance(record.get(name), str) for name in ("message", "msg", "error_description"))
    return bool(found)


def _record_failed(record: Mapping[str, Any]) -> bool:
    for key in ("error", "Error", "exception"):
        found = record.get(key)
        if not isinstance(found, list | tuple) and names_error(found, record):
            return True
    if any(record.get(key) is False for key in ("ok", "success", "succeeded")):
        return True
    if any(record.get(key) is True for key in ("isError", "is_error", "failed")):
        return True
    if any(isinstance(found := record.get(key), str) and found for key in _MESSAGES):
        return True
    if any(_is_code(record.get(key)) for key in _EXIT_CODES) or (_is_code(record.get("code")) and "stderr" in record):
        return True
    if any(_is_http_error(record.get(key)) for key in _HTTP_CODES):
        return True
    return _is_known_error(record) or _small_record_failed(record)


def _is_known_error(record: Mapping[str, Any]) -> bool:
    """Whether it is an error as Kubernetes, GitHub or AWS write it."""
    if record.get("kind") == "Status" and record.get("status") == "Failure":
        return True
    if {"message", "documentation_url"} <= record.keys() <= _GITHUB:
        return True
    return isinstance(kind := record.get("__type"), str) and kind.endswith(("Exception", "Error", "Fault"))


def _small_record_failed(record: Mapping[str, Any]) -> bool:
    """Whether a record without a field for failures is an error message."""
    if len(record) > FEW:
        return False
    for key in ("status", "outcome", "result", "type"):
        if isinstance(found := record.get(key), str) and found.lower() in _BAD:
            return True
    code = record.get("code")
    if isinstance(record.get("message"), str) and (
        _is_http_error(code) or (isinstance(code, str) and _BAD_CODE.fullmatch(code))
    ):
        return True
    if len(record) == 1 and (_is_detail(record.get("detail")) or isinstance(record.get("fault"), Mapping)):
        return True
    return bool(record.get("errors")) and record.get("data") is None and record.keys() <= _GRAPHQL


def _is_detail(value: Any) -> bool:
    """Whether a value is a web framework's error: a text, or what is wrong with each field."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, Mapping) and {"loc", "msg"} <= item.keys() for item in value)
    return isinstance(value, str)


def _is_code(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value != 0


def _is_http_error(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599
