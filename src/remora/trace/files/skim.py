"""Going over a stream as fast as it can be hashed, as long as every line is what our own writer would have written.

Nothing is decided here: at the first surprise, whatever it is, a `Skim` stops, and the reader looks at the lines from
there on with all of its checks.


The few events of a stream that somebody asks for, without making typed events of all the others.

Every line is checked against the one before it, as always; only those of the wanted types are parsed.


Where a run stands, without making typed events of all that led there.

Most of a stream is prompts, answers and calls, which change nothing in the packet. Their lines are checked by the
chain, as all are, and not parsed.
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
    """The lines of a stream, without newlines: each is confirmed by the `prev` of the one after it, none is the seal.

    They come in parts, as they are read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: bytes | None = None
        """The last line that fitted: no later line has confirmed it."""
        self.here = Position()
        """Before that line: where to read on."""
        self._next = Position()
        """Behind it."""
        self.rest: list[bytes] | None = None
        """The lines from `here` to the end of the file, newlines kept, where they are few and were read already."""

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
            return  # the reader will meet it, too, and say it

    def _keep(self, lines: list[bytes], rest: bytes) -> None:
        self.rest = [line + b"\n" for line in lines] + ([rest] if rest else [])

    def _fitting(self, lines: list[bytes]) -> int:
        """How many of the lines fit behind those before them."""
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
    """Where to read on: all before it is confirmed."""
    found = Skim(path)
    for _ in found:
        pass
    return found.here


def _begins(raw: bytes) -> bool:
    """Whether the first line, which says what the file is, can be read in full."""
    try:
        return parse(raw).seq == 0
    except TraceError:
        return False


_TYPE_ENDS = 100
"""Where the type of a line in our writer's own form has ended, at the latest."""


def pick_events(path: Path, types: Collection[str]) -> Iterator[Event]:
    """The events of these types, oldest first, as far as the stream is intact; `verify` tells of the rest."""
    wanted = re.compile(b'","type":"(?:%s)"' % b"|".join(re.escape(name.encode()) for name in types))
    skim = Skim(path)
    try:
        for lines in skim:
            for line in lines:
                if wanted.search(line, 0, _TYPE_ENDS):
                    event = events.from_record(parse(line).fields or {})
                    if event.type in types:
                        yield event
        yield from (event for event in read_events(path, start=skim.here, torn_ok=True) if event.type in types)
    except TraceError:
        return


_STARTS = b'_start"'
"""The end of the names of `agent_start` and `turn_start`, which are folded without a delta."""
_TYPE_AT = (50, 90)
"""The bytes of a line among which its type stands: searching them is cheaper than cutting them out."""


def read_changes(path: Path, to: int | None = None) -> Iterator[Change | Event]:
    """What of a stream can change a packet, oldest first, until the first change of a turn after `to`.

    Every line is checked against the one before it. Raises `TraceDamaged` at the first damage, after all that is
    intact. Folding these gives the packet that folding `read_events` gives.
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
    # The last line, and all from the first one on that our own writer would not have written: with every check there
    # is, which names the damage.
    rest = (_read(path, record.seq, record.raw) for record in read_records(path, start=skim.here))
    yield from takewhile(lambda change: change.turn <= last, rest)


def _read(path: Path, seq: int, line: bytes) -> Change | Event:
    try:
        return events.change_of(orjson.loads(line))
    except (orjson.JSONDecodeError, TraceError) as error:
        raise TraceDamaged(path, line=seq + 1, seq=seq, problem=str(error)) from error
