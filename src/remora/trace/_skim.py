"""Going over a stream as fast as it can be hashed, as long as every line is what our own writer would have written.

Nothing is decided here: at the first surprise, whatever it is, a `Skim` stops, and the reader looks at the lines from
there on with all of its checks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from remora.errors import TraceError
from remora.trace._lines import MAX_LINE, SEAL
from remora.trace._parse import TS_LENGTH, parse
from remora.trace._reader import Position

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
