"""Redacts what looks like a secret, in what is shown and exported.

Streams keep such text: only registered secrets are redacted before they are recorded (`context.secrets`).
"""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from operator import is_
from typing import Any, TypeVar

from pydantic import BaseModel

Value = TypeVar("Value")

_NAMED = "|".join(f"(?<={name})" for name in ("password", "passwd", "secret", "secret_key", "api_key", "apikey"))
"""Behind a name of a secret."""
_VALUE = r"A-Za-z0-9_+/=~!@#%^&*.:-"
"""Characters of a secret that stands without quotes."""
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
    "huggingface-token": r"\bhf_(?:(?=[a-z]{0,255}[A-Z0-9])[A-Za-z0-9]{8,255}|[a-z]{16,255})",
    "npm-token": r"\bnpm_(?:(?=[a-z]{0,255}[A-Z0-9])[A-Za-z0-9]{8,255}|[a-z]{16,255})",
    "pypi-token": r"\bpypi-[A-Za-z0-9_-]{16,2048}",
    "sendgrid-key": r"\bSG\.[A-Za-z0-9_-]{8,255}\.[A-Za-z0-9_-]{8,255}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{4,4096}",
    "bearer": r"(?i:\bbearer\s{1,4})(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{16,4096}={0,2}",
    "url-password": r"(?<=://)[^\s:/@'\"]{1,128}:(?:[^\s:/@'\"]{1,256}(?=@)|(?!\d{1,5}…)[^\s:/@'\"…]{1,256}(?=…))",
    "assignment": (
        rf"(?i:{_NAMED}|(?<=access_token)|(?<=auth_token))"
        r"(?P<opens>[\"']?\s{0,4}[=:]\s{0,4}[\"'])(?:[^\"'\s]{8,512}(?=[\"'])|[^\"'\s…]{8,512}(?=…))"
    ),
    "env-secret": (  # without quotes, as in the files and output of shells: letters and digits, so no name and no path
        rf"(?i:{_NAMED}|(?<=access_key)|(?<=_token))"
        rf"(?P<opens>=|:\s)(?=[{_VALUE}]{{0,64}}[0-9])(?=[{_VALUE}]{{0,64}}[A-Za-z])(?![/.$:])[{_VALUE}]{{8,512}}"
    ),
}
PATTERNS: dict[str, re.Pattern[str]] = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}
"""Regular expressions of well-known secrets, by name. Every repetition is bounded. `…` ends a text that was cut."""
MAX_DEPTH = 100
"""Levels of a value that are redacted text by text."""
MAX_PARTS = 1000
"""Parts of secrets that are looked for by themselves."""
LEAST_PART = 12
"""Characters of a part that is looked for by itself."""
LEAST_SIGNS = 5
"""Different ones among them."""
_SEPARATORS = re.compile(r"\s+|\\n")
_HINTS = re.compile(
    r"PRIVATE KEY|sk-|gh[pousr]_|github_pat_|gl(?:pat|ptt|dt|rt|soat)-|xox|AKIA|ASIA|AGPA|AIDA|AROA|AIza|ya29\."
    r"|[rs]k_|hf_|npm_|pypi-|SG\.|eyJ|(?i:bearer|passw|secret|api_?key|access_key|_token)|://"
)
"""What a text with any of these secrets contains. Most texts have none, and one search is faster than eighteen."""


def redact_patterns(text: str) -> str:
    """`text` with everything that looks like a well-known secret replaced by `[redacted:NAME]`."""
    return Redactor().text(text)


def redact_values(value: Value) -> Value:
    """`value` with every text in it redacted, at any depth: in mappings, lists, tuples, dataclasses and models."""
    return Redactor().values(value)


class Redactor:
    """Redacts texts and values, and knows how many different secrets it found.

    What was recognized once is redacted wherever it stands, also without what it was recognized by: a password alone, a
    line of a key.
    """

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._parts: dict[str, str] = {}
        self._longest: list[str] = []
        self._depth = 0

    @property
    def count(self) -> int:
        """The number of different secrets."""
        return len(self._found)

    def text(self, text: str) -> str:
        """Like `redact_patterns`."""
        redacted = text
        if _HINTS.search(text):
            for name, pattern in PATTERNS.items():
                redacted = pattern.sub(partial(self._mark, name), redacted)
        for part in self._longest:  # one may be in another; not one expression, as each new part would compile it again
            if part in redacted:
                redacted = redacted.replace(part, f"{_MARK}{self._parts[part]}]")
        return text if redacted == text else redacted

    def values(self, value: Value) -> Value:
        """Like `redact_values`. The same object if there is nothing to redact, so that most values are not copied."""
        before = len(self._parts)
        redacted: Value = self._walk(value)
        if len(self._parts) > before:  # what was found late may stand in an earlier text
            redacted = self._walk(redacted)
        return redacted

    def _mark(self, name: str, match: re.Match[str]) -> str:
        opens = match.groupdict().get("opens") or ""
        secret = match[0].removeprefix(opens)
        if not secret.startswith(_MARK):  # what an earlier pattern has found
            self._found.add(secret)
            self._remember(name, secret)
        return f"{opens}{_MARK}{name}]"

    def _remember(self, name: str, secret: str) -> None:
        for part in _parts(name, secret):
            if len(self._parts) < MAX_PARTS and part not in self._parts:
                self._parts[part] = name
                insort(self._longest, part, key=lambda each: -len(each))

    def _walk(self, value: Any) -> Any:
        kind = type(value)
        if kind in _WITHOUT_TEXT:
            return value
        if isinstance(value, str):
            return self.text(value)
        if self._depth >= MAX_DEPTH:
            return self._deep(value)
        self._depth += 1
        try:
            return self._inside(value)
        finally:
            self._depth -= 1

    def _deep(self, value: Any) -> Any:
        """A value that is nested too deep to be walked: as it is, or not at all if a secret is in it."""
        waiting = [value]
        while waiting:
            each = waiting.pop()
            if isinstance(each, str) and self.text(each) != each:
                return f"{_MARK}nested]"
            if isinstance(each, Mapping):
                waiting += [*each.keys(), *each.values()]
            elif isinstance(each, list | tuple):
                waiting += each
        return value

    def _inside(self, value: Any) -> Any:
        """A redacted list, mapping, model or dataclass."""
        kind = type(value)
        if isinstance(value, list | tuple):
            items = list(self._items(value))
            return value if all(map(is_, items, value)) else _like(value, items)
        if kind is dict or isinstance(value, Mapping):
            pairs = self._pairs(value)
            same = kind is dict and all(map(is_, pairs.values(), value.values())) and all(map(is_, pairs, value))
            return value if same else pairs
        if isinstance(value, BaseModel):
            changed = self._changed({**value.__dict__, **(value.__pydantic_extra__ or {})})
            return value.model_copy(update=changed) if changed else value
        if is_dataclass(value) and not isinstance(value, type):
            changed = self._changed({field.name: getattr(value, field.name) for field in fields(value)})
            return replace(value, **changed) if changed else value
        return value

    def _pairs(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        """The redacted entries. Two keys with secrets stay two."""
        pairs: dict[Any, Any] = {}
        more = Counter[Any]()
        for key, item in value.items():
            shown = self._walk(key)
            if shown in pairs:
                more[shown] += 1
                shown = f"{shown} ({more[shown] + 1})"
            pairs[shown] = self._walk(item)
        return pairs

    def _items(self, value: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
        """The redacted items. A private key whose lines are items of a list is redacted to its end."""
        is_key = False
        for item in value:
            is_line = isinstance(item, str)
            if is_key and is_line and (end := _KEY_ENDS.search(item)):
                item, is_key = f"{_MARK}private-key]{item[end.end() :]}", False
            is_key = is_key and is_line
            yield f"{_MARK}private-key]" if is_key else self._walk(item)
            is_key = is_key or (is_line and _is_open_key(item))

    def _changed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: new for name, old in values.items() if (new := self._walk(old)) is not old}


def _parts(name: str, secret: str) -> list[str]:
    """What of a secret is looked for by itself: the password without its user, the lines of a key.

    Not what may stand anywhere: a word, a name such as `new_password` that was assigned to something called so, or a
    mask of asterisks.
    """
    found = _SEPARATORS.split(secret.partition(":")[2] if name == "url-password" else secret)
    long = [part for part in found if len(part) >= LEAST_PART and not part.startswith("-----")]
    long = [part for part in long if len(set(part)) >= LEAST_SIGNS]
    return [part for part in long if not _is_name(part) or (name != "assignment" and not part.islower())]


def _is_open_key(text: str) -> bool:
    """Whether a private key begins in the text and does not end in it."""
    begins = [match.end() for match in _KEY_BEGINS.finditer(text)]
    return bool(begins) and text.find("-----END", begins[-1]) < 0


def _is_name(part: str) -> bool:
    word = part.strip("${}<>%[]").replace("-", "_")
    return word.isidentifier() and not any(letter.isdigit() for letter in word)


def _like(value: list[Any] | tuple[Any, ...], items: list[Any]) -> Any:
    """The items as a list, a tuple or a named tuple, as `value` is."""
    if isinstance(value, list):
        return items
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


_MARK = "[redacted:"
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY-----")
_WITHOUT_TEXT = frozenset({int, float, bool, type(None)})
