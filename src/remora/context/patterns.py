"""Redacts what looks like a secret, in what leaves the project: reports and exports.

Streams keep such text: only registered secrets are redacted before they are recorded (`context.secrets`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from operator import is_
from typing import Any, TypeVar

Value = TypeVar("Value")

_PATTERNS = {
    "private-key": (
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[^-]|-(?!----)){0,16384}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
    ),
    "anthropic-key": r"\bsk-ant-[A-Za-z0-9_-]{8,512}",
    "openai-key": r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{16,512}",
    "github-token": r"\b(?:gh[pousr]_[A-Za-z0-9]{8,255}|github_pat_[A-Za-z0-9_]{8,255})",
    "gitlab-token": r"\bgl(?:pat|ptt|dt|rt|soat)-[A-Za-z0-9_-]{8,255}",
    "slack-token": r"\bxox[abeoprs]-[A-Za-z0-9-]{8,255}",
    "aws-key": r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{12,124}",
    "google-key": r"\bAIza[A-Za-z0-9_-]{20,100}",
    "google-oauth": r"\bya29\.[A-Za-z0-9_-]{8,2048}",
    "stripe-key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{8,255}",
    "huggingface-token": r"\bhf_[A-Za-z0-9]{8,255}",
    "npm-token": r"\bnpm_[A-Za-z0-9]{8,255}",
    "pypi-token": r"\bpypi-[A-Za-z0-9_-]{16,2048}",
    "sendgrid-key": r"\bSG\.[A-Za-z0-9_-]{8,255}\.[A-Za-z0-9_-]{8,255}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{4,4096}",
    "bearer": r"(?i:\bbearer\s{1,4})(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{16,4096}={0,2}",
    "url-password": r"(?<=://)[^\s:/@'\"]{1,128}:[^\s:/@'\"]{1,256}(?=@)",
    "assignment": (
        r"(?i:(?<=password)|(?<=passwd)|(?<=secret)|(?<=api_key)|(?<=apikey)|(?<=access_token)|(?<=auth_token))"
        r"(?P<opens>[\"']?\s{0,4}[=:]\s{0,4}[\"'])[^\"'\s]{8,512}(?=[\"'])"
    ),
}
PATTERNS: dict[str, re.Pattern[str]] = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}
"""Regular expressions of well-known secrets, by name. Every repetition is bounded."""
_HINTS = re.compile(
    r"PRIVATE KEY|sk-|gh[pousr]_|github_pat_|gl(?:pat|ptt|dt|rt|soat)-|xox|AKIA|ASIA|AGPA|AIDA|AROA|AIza|ya29\."
    r"|[rs]k_|hf_|npm_|pypi-|SG\.|eyJ|(?i:bearer|passw|secret|api_?key|_token)|://"
)
"""What a text with any of these secrets contains. Most texts have none, and one search is faster than eighteen."""


def redact_patterns(text: str) -> str:
    """`text` with everything that looks like a well-known secret replaced by `[redacted:NAME]`."""
    if not _HINTS.search(text):
        return text
    redacted = text
    for name, pattern in PATTERNS.items():
        redacted = pattern.sub(_mark(name), redacted)
    return text if redacted == text else redacted


def _mark(name: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{match.groupdict().get('opens') or ''}[redacted:{name}]"


def redact_values(value: Value) -> Value:
    """`value` with every text in it redacted, at any depth: in mappings, lists, tuples and dataclasses."""
    redacted: Value = _walk(value)
    return redacted


def _walk(value: Any) -> Any:
    """The redacted value; the same object if there is nothing to redact, so that most values are not copied."""
    kind = type(value)
    if kind in _WITHOUT_TEXT:
        return value
    if isinstance(value, str):
        return redact_patterns(value)
    if isinstance(value, list | tuple):
        items = [_walk(item) for item in value]
        same = all(map(is_, items, value))
        return value if same else items if isinstance(value, list) else tuple(items)
    if kind is dict or isinstance(value, Mapping):
        pairs = {_walk(key): _walk(item) for key, item in value.items()}
        same = kind is dict and all(map(is_, pairs.values(), value.values())) and all(map(is_, pairs, value))
        return value if same else pairs
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        changed = {name: new for name in names if (new := _walk(old := getattr(value, name))) is not old}
        return replace(value, **changed) if changed else value
    return value


_WITHOUT_TEXT = frozenset({int, float, bool, type(None)})
