"""Fast reading of streams: lines are checked by the hash chain, and only the needed ones are parsed.

`Skim` yields lines as long as each has the exact form of our own writer. At the first line that has not, it stops, and
the caller continues with `read_records`, which makes all checks and reports damage.

`pick_events` parses only events of given types, `read_changes` only events that change the Decision Packet. Most of a
stream is prompts, replies and calls, which do not.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection, Iterator
from io import FileIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from remora import events
from remora.errors import TraceDamaged, TraceError
from remora.trace.files.lines import MAX_LINE, SEAL, TS_LENGTH, parse
from remora.trace.files.reader import Position, read_events, read_records

if TYPE_CHECKING:
    from remora.events import Change, Event

_CHUNK = 32 * 1024
_TYPE = b'","type":"'
_SEAL = _TYPE + SEAL.encode() + b'"'
_SEAL_LENGTH = len(_SEAL)
_DIGEST = "sha256:"


class Skim:
    """Yields the lines of a stream in batches, without newlines.

    Each line is confirmed by the `prev` of the next one. The seal is never among them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: bytes | None = None
        """The last line that fits; not confirmed yet."""
        self.here = Position()
        """The position before that line, where to continue reading."""
        self._next = Position()
        """The position after that line."""
        self.rest: list[bytes] | None = None
        """The lines from `here` to the end of the file, with newlines, if they were already read."""

    def __iter__(self) -> Iterator[list[bytes]]:
        try:
            with FileIO(self._path) as file:
                rest = b""
                while len(rest) <= MAX_LINE and (chunk := file.read(_CHUNK)):
                    *lines, rest = (rest + chunk).split(b"\n")
                    fitting = self._fitting(lines)
                    if fitting:
                        held, self._held = self._held, lines[fitting - 1]
                        yield [*([] if held is None else [held]), *lines[: fitting - 1]]
                    if fitting < len(lines):
                        break
                else:
                    lines, fitting = [], 0
                if not file.read(1):
                    self._keep([*([] if self._held is None else [self._held]), *lines[fitting:]], rest)
        except OSError:
            return  # the reader gets the same error and reports it

    def _keep(self, lines: list[bytes], rest: bytes) -> None:
        self.rest = [line + b"\n" for line in lines] + ([rest] if rest else [])

    def _fitting(self, lines: list[bytes]) -> int:
        """How many of the lines continue the chain."""
        first, offset, named = self._next
        if not lines or (first == 0 and not _begins(lines[0])):
            return 0
        done, prev = 0, named and named.removeprefix(_DIGEST)
        before, sha256 = prev, hashlib.sha256
        back = b',"prev":null}' if prev is None else f',"prev":"sha256:{prev}"}}'.encode()
        for done, raw in enumerate(lines):
            front = b'{"v":1,"seq":%d,"ts":"' % (first + done)
            word = len(front) + TS_LENGTH
            kind = raw[word : word + _SEAL_LENGTH]
            if not (raw.startswith(front) and raw.endswith(back) and kind.startswith(_TYPE)) or kind == _SEAL:
                break
            before, prev = prev, sha256(raw).hexdigest()
            back = f',"prev":"sha256:{prev}"}}'.encode()
        else:
            done += 1
        if done:
            ends = offset + sum(map(len, lines[:done])) + done
            self.here = Position(first + done - 1, ends - len(lines[done - 1]) - 1, before and _DIGEST + before)
            self._next = Position(first + done, ends, prev and _DIGEST + prev)
        return done


def skim(path: Path) -> Position:
    """Check the stream as far as `Skim` does; return where to continue reading."""
    found = Skim(path)
    for _ in found:
        pass
    return found.here


def _begins(raw: bytes) -> bool:
    """Whether the first line, which identifies the file, is a valid record."""
    try:
        return parse(raw).seq == 0
    except TraceError:
        return False


_TYPE_ENDS = 100
"""In a line of our own writer, the type ends before this byte."""


def pick_events(path: Path, types: Collection[str]) -> Iterator[Event]:
    """Yield the events of these types, oldest first, up to the first damage. `verify` reports damage."""
    try:
        yield from read_picked(path, types, torn_ok=True)
    except TraceError:
        return


def read_picked(path: Path, types: Collection[str], *, torn_ok: bool = False, quick: bool = False) -> Iterator[Event]:
    """Yield the events of these types, oldest first. Raises `TraceDamaged` at the first damage, as `read_events`.

    Every line is checked by the hash chain, but only those of these types are parsed. With `quick`, a line of the
    writer's own form is not checked for what parsers read differently, such as a repeated key: for views only.
    """
    read = _decode_quick if quick else _decode
    wanted = re.compile(b'","type":"(?:%s)"' % b"|".join(re.escape(name.encode()) for name in types))
    skim, seq = Skim(path), 0
    for lines in skim:
        for number, line in enumerate(lines, start=seq):
            if wanted.search(line, 0, _TYPE_ENDS):
                event = read(path, number, line)
                if event.type in types:
                    yield event
        seq += len(lines)
    yield from (event for event in read_events(path, start=skim.here, torn_ok=torn_ok) if event.type in types)


def _decode(path: Path, seq: int, line: bytes) -> Event:
    try:
        return events.from_record(parse(line).fields or {})
    except TraceError as error:
        raise TraceDamaged(path, line=seq + 1, seq=seq, problem=str(error)) from error


def _decode_quick(path: Path, seq: int, line: bytes) -> Event:
    try:
        return events.decode(line)
    except TraceError as error:
        raise TraceDamaged(path, line=seq + 1, seq=seq, problem=str(error)) from error


_STARTS = b'_start"'
"""The end of `agent_start` and `turn_start`, which change the packet without a delta."""
_TYPE_AT = (50, 90)
"""The byte range that contains a line's type. Searching a range is faster than slicing."""


def read_changes(path: Path, to: int | None = None) -> Iterator[Change | Event]:
    """Yield what changes the packet, oldest first, up to turn `to`.

    Every line is checked by the hash chain. Raises `TraceDamaged` at the first damage, after all intact changes.
    Folding the result gives the same packet as folding `read_events`.
    """
    last = sys.maxsize if to is None else to
    skim, seq = Skim(path), 0
    for lines in skim:
        for number, line in enumerate(lines, start=seq):
            if b'"delta"' in line or line.find(_STARTS, *_TYPE_AT) >= 0:
                change = _read(path, number, line)
                if change.turn > last:
                    return
                yield change
        seq += len(lines)
    # The last line, and everything from the first line that `Skim` did not accept.
    rest = (_read(path, record.seq, record.raw) for record in read_records(path, start=skim.here))
    yield from takewhile(lambda change: change.turn <= last, rest)


def _read(path: Path, seq: int, line: bytes) -> Change | Event:
    try:
        return events.change_of(orjson.loads(line))
    except (orjson.JSONDecodeError, TraceError) as error:
        raise TraceDamaged(path, line=seq + 1, seq=seq, problem=str(error)) from error
