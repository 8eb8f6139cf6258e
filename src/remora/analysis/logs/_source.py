"""Reads large log files in bounded memory: line by line, or one member of a JSON document at a time.

Every read goes through one seekable binary stream, so a pass can start anywhere and be repeated. Nothing holds more
than one line or one member, and both have a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import orjson

MAX_RECORD = 64 * 1024 * 1024
"""Bytes of one line, or of one member of a document, that are read into memory."""
CHUNK = 1 << 20
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}:,]', re.DOTALL)
_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
"""What some programs write before UTF-8."""


NO_REPLY = "holds no message of an assistant"
"""How the problem of a conversation ends that nobody answered."""


class LogProblem(Exception):
    """What is wrong with a log, and where, in one sentence."""


class Line(NamedTuple):
    """One line of a file."""

    number: int
    offset: int
    data: bytes | None
    """None if the line is longer than `MAX_RECORD`."""


@dataclass(frozen=True)
class Span:
    """A JSON value inside a file: the bytes from `start` up to `end`."""

    start: int
    end: int


class LogFile:
    """A log file: its name and a seekable binary stream."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        self._stream = stream
        self.size = stream.seek(0, 2)

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`."""
        self._stream.seek(start)
        return self._stream.read(end - start)

    def lines(self, start: int = 0, end: int | None = None, number: int = 1) -> Iterator[Line]:
        """Every line that begins between `start` and `end` and is not blank, without a mark before the first."""
        offset = len(_BOM) if start == 0 and self.read(0, len(_BOM)) == _BOM else start
        while offset < (self.size if end is None else end):
            if self._stream.tell() != offset:  # a seek costs more than reading a short line
                self._stream.seek(offset)
            data = self._stream.readline(MAX_RECORD + 1)
            if not data:
                return
            length = len(data)
            if length > MAX_RECORD and not data.endswith(b"\n"):
                length += self._skip_line()
                yield Line(number, offset, None)
            elif data.strip(_SPACE):
                yield Line(number, offset, data)
            offset += length
            number += 1

    def _skip_line(self) -> int:
        skipped = 0
        while data := self._stream.readline(CHUNK):
            skipped += len(data)
            if data.endswith(b"\n"):
                break
        return skipped

    def load(self, span: Span) -> Any:
        """The JSON value of a span. Raises `LogProblem` if it is too large or no JSON."""
        if span.end - span.start > MAX_RECORD:
            raise LogProblem(f"a value of {span.end - span.start:,} bytes; the limit is {MAX_RECORD:,}")
        return loads(self.read(span.start, span.end))

    def root(self) -> Span:
        """The first value of the file: from its first byte that is no space to the end."""
        start = 0
        while data := self.read(start, min(start + CHUNK, self.size)):
            found = len(data) - len(data.lstrip(_SPACE + _BOM))
            if found < len(data):
                return Span(start + found, self.size)
            start += len(data)
        return Span(self.size, self.size)

    def members(self, span: Span) -> Iterator[tuple[str | int, Span]]:
        """The members of an object by key, or of a list by index, without loading them."""
        yield from _Members(self, span)


def loads(data: bytes) -> Any:
    """Parse JSON. Raises `LogProblem` if it is none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise LogProblem(f"not JSON: {error}") from None


class _Members:
    """Walks one container and notes where each member begins and ends."""

    def __init__(self, log: LogFile, span: Span) -> None:
        self._log, self._span = log, span
        self._keyed = log.read(span.start, span.start + 1) == b"{"
        self._key: str | int = "" if self._keyed else 0
        self._at = span.start
        """Where the member that is being read began."""
        self._depth = 0
        self._colon = not self._keyed

    def __iter__(self) -> Iterator[tuple[str | int, Span]]:
        for start, end, token in _tokens(self._log, self._span):
            if token in b"{[":
                self._depth += 1
                if self._depth == 1:
                    self._at = end
            elif token in b"]}":
                self._depth -= 1
                if self._depth == 0:
                    yield from self._member(start)
                    return
            elif self._depth == 1:
                yield from self._take(start, end, token)
        raise LogProblem("not JSON: the document is cut off")

    def _take(self, start: int, end: int, token: bytes) -> Iterator[tuple[str | int, Span]]:
        """A key, a colon or a comma of the container itself."""
        if token == b",":
            yield from self._member(start)
            self._at, self._colon = end, not self._keyed
            if isinstance(self._key, int):
                self._key += 1
        elif token == b":" and not self._colon:
            self._at, self._colon = end, True
        elif not self._colon:
            self._key = str(loads(self._log.read(start, end)))

    def _member(self, end: int) -> Iterator[tuple[str | int, Span]]:
        if self._keyed and not self._colon:
            return
        lead = self._log.read(self._at, min(self._at + 4096, end))
        start = self._at + len(lead) - len(lead.lstrip(_SPACE))
        if start < end:
            yield self._key, Span(start, end)


def _tokens(log: LogFile, span: Span) -> Iterator[tuple[int, int, bytes]]:
    """Brackets, colons, commas and strings, with their places. A string is given as `"` alone."""
    base, buffer, size = span.start, b"", CHUNK
    while base < span.end:
        data = log.read(base + len(buffer), min(base + len(buffer) + size, span.end))
        buffer += data
        if len(buffer) > MAX_RECORD:
            raise LogProblem(f"a text of more than {MAX_RECORD:,} bytes")
        used = 0
        for found in _TOKEN.finditer(buffer):
            token = found[0][:1]
            if token == b'"' and (len(found[0]) < 2 or not found[0].endswith(b'"') or _is_open(found[0])):
                break
            used = found.end()
            yield base + found.start(), base + used, token
        else:
            used = len(buffer)
        if not data:
            if used < len(buffer):
                raise LogProblem("not JSON: a text is cut off")
            return
        size = CHUNK if used else size * 2
        base, buffer = base + used, buffer[used:]


def _is_open(text: bytes) -> bool:
    """Whether the last quote of a text that the end of the buffer may have cut is an escaped one."""
    body = text[1:-1]
    return (len(body) - len(body.rstrip(b"\\"))) % 2 == 1
