"""Extracts identifiers from an output, each with its key or label. They are kept longer than the output itself."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from remora.context.evidence._words import is_identifier

Identifiers = tuple[tuple[str, str], ...]
"""Pairs of key and value."""

MAX_IDENTIFIERS = 64
"""Most identifiers of one output."""
MAX_VALUE = 120
_SCANNED = 400
"""Lines of a text in which identifiers are looked for."""
_LISTS = (list, tuple)
_RECORDS = (dict, Mapping)
_PLAIN = (str, int, float, type(None), list)
_MAX_DEPTH = 8

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d|\d\d?:\d\d")
_SUFFIX = "py|js|ts|c|h|cpp|rs|go|java|md|toml|json|ya?ml|txt|cfg|sh"
_PATH = re.compile(rf"(?:[\w.~-]*/)+[\w.-]+|[\w-]+\.(?:{_SUFFIX})", re.ASCII)
_PATH_SIGNS = string.ascii_letters.encode() + b"0123456789_./~-:"
_PATH_OR_SPACE = bytes(byte if byte in _PATH_SIGNS else 32 for byte in range(256))
_NO_PATH = "0123456789_./~-"
"""Nothing but these is a date or a number."""
_WORDS_OF_DEFINITIONS = ("def ", "class ", "function ", "fn ", "func ", "struct ", "interface ")
_DEFINED = re.compile(
    r"^[ \t]*(?:\d+[:|\t ])?[ \t]*(?:async |export |pub |static )*"
    r"(?:def|class|function|fn|func|struct|interface)\s+(\w{3,})\s*[({:<]",
    re.MULTILINE,
)
_RAISED = re.compile(r"^\s*(?:[\w.]+\.)?(\w*(?:Error|Exception))\b", re.MULTILINE)
# Possessive (`+`): what follows cannot match inside the name, so trying shorter names would only take time.
_NAMED = re.compile(r"\b([A-Za-z_][\w.-]{1,30}+) ?[=:] ?[\"']?([\w./@-]{1,80})")
_NAMED_ASCII = re.compile(_NAMED.pattern, re.ASCII)
"""The same for texts that are ASCII, in half the time."""


def identifiers(value: Any, kind: str, lines: Sequence[str], rest: Sequence[str] = ()) -> Identifiers:
    """The unique identifiers of an output, in order. Of lines that are not kept, `rest`, only ids and names."""
    pairs: dict[str, str] = {}
    if kind == "records":
        _take_records("", value, 0, pairs)
    else:
        _take_pairs(_of_text("\n".join(lines[:_SCANNED]), kind), pairs)
        _take_pairs(_named("\n".join(rest[:_SCANNED]), keys_only=True) if rest else (), pairs)
    return tuple((key, text) for text, key in pairs.items())


def _take_pairs(found: Iterable[tuple[str, str]], pairs: dict[str, str]) -> None:
    for key, text in found:
        if len(pairs) == MAX_IDENTIFIERS:
            return
        if len(text) <= MAX_VALUE:
            pairs.setdefault(text, key)


def _take_records(key: str, value: Any, depth: int, pairs: dict[str, str]) -> None:
    """Add the identifiers of a JSON value to `pairs`, keys by identifier, until there are `MAX_IDENTIFIERS`."""
    if len(pairs) == MAX_IDENTIFIERS:
        return
    if isinstance(value, str):
        is_new = value and value not in pairs and len(value) <= MAX_VALUE and "\n" not in value
        if is_new and (_is_key(key) or _is_value(value)) and not _is_named_url(value, pairs):
            pairs[value] = key
    elif isinstance(value, int):
        if not isinstance(value, bool) and _is_key(key) and len(text := str(value)) <= MAX_VALUE:
            pairs.setdefault(text, key)
    elif value is None or isinstance(value, float) or depth > _MAX_DEPTH:
        return
    elif isinstance(value, _LISTS):
        for item in value:
            _take_records(key, item, depth + 1, pairs)
    elif isinstance(value, _RECORDS):
        for name, item in value.items():
            _take_field(key, str(name), item, depth, pairs)


def _is_named_url(value: str, pairs: Mapping[str, str]) -> bool:
    """Whether a URL ends with another identifier of the output, such as the name of a rule in its documentation."""
    return "://" in value and value.rpartition("/")[2] in pairs


def _take_field(key: str, name: str, item: Any, depth: int, pairs: dict[str, str]) -> None:
    """Add the identifiers of one field. A name that is an identifier itself is one too."""
    is_record = not isinstance(item, _PLAIN) and isinstance(item, _RECORDS)
    if is_record and len(pairs) < MAX_IDENTIFIERS and len(name) <= MAX_VALUE and _is_id(name):
        pairs.setdefault(name, key or "key")
    _take_records(name, item, depth + 1, pairs)


def _is_id(name: str) -> bool:
    return any(sign.isdigit() for sign in name) and is_identifier(name)


def _is_value(value: str) -> bool:
    """Whether a text is an identifier by itself, and not prose, a time, an e-mail address or a number."""
    return (
        " " not in value
        and not _MOMENT.match(value)
        and "@" not in value
        and not value.isdigit()
        and is_identifier(value)
    )


@lru_cache(maxsize=1024)
def _is_key(key: str) -> bool:
    name = key.lower()
    return name in ("id", "name", "key", "code", "path", "url", "number") or name.endswith(
        ("_id", "id", "_number", "_key", "_path", "url", "uri")
    )


def _words_with_signs(text: str) -> Iterable[str]:
    """The unique words that could be paths, in order."""
    return dict.fromkeys(text.encode("ascii", "replace").translate(_PATH_OR_SPACE).decode().split())


def _of_text(text: str, kind: str) -> Iterator[tuple[str, str]]:
    words = _words_with_signs(text) if "/" in text or "." in text else ()
    for word in [word for word in words if "/" in word or "." in word]:
        if "://" in word:
            yield "url", word.rstrip(".:")
            continue
        for part in word.split(":"):
            if (match := _PATH.fullmatch(part.rstrip("."))) and match[0].strip(_NO_PATH):
                yield "path", match[0]
    if any(word in text for word in _WORDS_OF_DEFINITIONS):
        for match in _DEFINED.finditer(text):
            yield "defined", match[1]
    if "Error" in text or "Exception" in text:
        for match in _RAISED.finditer(text):
            yield "raised", match[1]
    if kind in ("text", "log", "table"):
        yield from _named(text, keys_only=False)


def _named(text: str, *, keys_only: bool) -> Iterator[tuple[str, str]]:
    """Values with a name, such as `id: 7` or `user=mia_1`."""
    named = _NAMED_ASCII if text.isascii() else _NAMED
    for match in named.finditer(text):
        if _is_key(match[1].strip("_")) or (not keys_only and len(match[2]) > 2 and _is_value(match[2])):
            yield match[1], match[2]


def by_key(pairs: Iterable[tuple[str, str]]) -> str:
    """Identifiers in one line, grouped by key."""
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return "; ".join(f"{key} {', '.join(values)}" for key, values in groups.items())
