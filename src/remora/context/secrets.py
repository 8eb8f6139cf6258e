"""Redacts registered secrets before anything is recorded or distilled, so that both tracks agree.

Finds a secret in plain text and encoded as base64, JSON or URL, because an encoded key leaks as much as a plain one.
Finds base64 at every alignment and across line breaks.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from remora.errors import ConfigError

MIN_SECRET = 8
"""Shorter values would match unrelated text."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class Redacted:
    """A redacted value, and the number of redactions."""

    value: Any
    count: int


class Secrets:
    """Values that must never be recorded, by name."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        values = values or {}
        for name, value in values.items():
            if len(value) < MIN_SECRET:
                raise ConfigError(
                    f"Secret `{name}` is shorter than {MIN_SECRET} characters and cannot be replaced safely"
                )
        # Longer values first: replacing a secret inside another would leave the rest of the outer one.
        ordered = sorted(values.items(), key=lambda item: -len(item[1]))
        self._names = [name for name, _ in ordered]
        groups = ["|".join(dict.fromkeys(_patterns(value))) for _, value in ordered]
        pattern = "|".join(f"({group})" for group in groups)
        self.longest = max(map(len, groups), default=0)
        """Upper bound for the length of any encoded secret."""
        self._text = re.compile(pattern)
        self._bytes = re.compile(pattern.encode(errors="surrogatepass"))

    def __bool__(self) -> bool:
        """Whether any secret is registered."""
        return bool(self._names)

    def redact(self, value: Any) -> Redacted:
        """Replace every secret in `value` by `[secret:NAME]`: in text, bytes and keys, at any depth."""
        return self._walk(value) if self._names else Redacted(value, 0)

    def redact_chunks(self, chunks: Iterable[bytes]) -> RedactedChunks:
        """Redact the chunks, including secrets that span two chunks."""
        return RedactedChunks(self, chunks)

    def first_in(self, data: bytes, before: int) -> tuple[int, int, bytes] | None:
        """Start, end and replacement of the first secret that starts before the byte `before`."""
        match = self._bytes.search(data) if self._names else None
        if match is None or match.start() >= before:
            return None
        return match.start(), match.end(), self._mark(match).encode()

    def clean(self, value: Value) -> Value:
        """Like `redact`, without the count."""
        cleaned: Value = self.redact(value).value
        return cleaned

    def _walk(self, value: Any) -> Redacted:
        match value:
            case str():
                return Redacted(*self._text.subn(self._mark, value))
            case bytes() | bytearray():
                return Redacted(*self._bytes.subn(lambda match: self._mark(match).encode(), value))
            case dict():
                parts = [(self._walk(key), self._walk(item)) for key, item in value.items()]
                return Redacted(
                    {key.value: item.value for key, item in parts}, sum(key.count + item.count for key, item in parts)
                )
            case list() | tuple() | set() | frozenset():
                items = [self._walk(item) for item in value]
                kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
                return Redacted(kind(item.value for item in items), sum(item.count for item in items))
            case _:
                return Redacted(value, 0)

    def _mark(self, match: re.Match[Any]) -> str:
        return f"[secret:{self._names[(match.lastindex or 1) - 1]}]"


class RedactedChunks:
    """An iterator over redacted chunks. Its memory does not grow with their number."""

    def __init__(self, secrets: Secrets, chunks: Iterable[bytes]) -> None:
        self._secrets = secrets
        self._chunks = chunks
        self.count = 0
        """Number of redactions so far."""

    def __iter__(self) -> Iterator[bytes]:
        held = b""
        for chunk in self._chunks:
            held += chunk
            # A secret that starts this close to the end may continue in the next chunk.
            ready, held = self._replace(held, max(0, len(held) - self._secrets.longest))
            yield ready
        yield self._replace(held, len(held))[0]

    def _replace(self, data: bytes, upto: int) -> tuple[bytes, bytes]:
        done = []
        while match := self._secrets.first_in(data, upto):
            start, end, mark = match
            done += [data[:start], mark]
            data, upto = data[end:], max(0, upto - end)
            self.count += 1
        return b"".join([*done, data[:upto]]), data[upto:]


def _patterns(value: str) -> Iterator[str]:
    """Regular expressions for all encodings of a secret."""
    yield re.escape(value)
    yield re.escape(json.dumps(value)[1:-1])
    yield re.escape(quote(value, safe=""))
    yield re.escape(quote_plus(value))
    raw = value.encode(errors="surrogatepass")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset, start in ((0, 0), (1, 2), (2, 3)):
            # Keep only the characters that do not depend on neighbouring bytes.
            end = (offset + len(raw)) * 8 // 6
            core = encode(b"\0" * offset + raw)[start:end].decode()
            yield "[\\r\\n]*".join(map(re.escape, core))
