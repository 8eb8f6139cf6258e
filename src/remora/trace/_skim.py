"""Going over a stream as fast as it can be hashed, as long as every line is what our own writer would have written.

Nothing is decided here: at the first surprise, whatever it is, `skim` stops, and the reader looks at the lines from
there on with all of its checks.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from remora.errors import TraceError
from remora.trace._lines import MAX_LINE, SEAL
from remora.trace._parse import TS_LENGTH, parse
from remora.trace._reader import Position

_CHUNK = 64 * 1024
_TYPE = b'","type":"'
_SEAL = _TYPE + SEAL.encode() + b'"'
_SEAL_LENGTH = len(_SEAL)


def skim(path: Path) -> Position:
    """Where to read on: each line before it is confirmed by the `prev` of the one after it, and none is the seal."""
    found = _Skim()
    try:
        with path.open("rb", buffering=0) as file:
            rest = b""
            while len(rest) <= MAX_LINE and (chunk := file.read(_CHUNK)):
                *lines, rest = (rest + chunk).split(b"\n")
                if not found.goes_on(lines):
                    break
    except OSError:
        return found.here  # the reader will meet it, too, and say it
    return found.here


class _Skim:
    def __init__(self) -> None:
        self.here = Position()
        """Before the last line that fitted: the one that no later line has confirmed."""
        self._next = Position()
        """Behind it."""

    def goes_on(self, lines: list[bytes]) -> bool:
        """Whether all of the lines, given without their newlines, fit."""
        first, offset, prev = self._next
        if not lines or (first == 0 and not _begins(lines[0])):
            return not lines
        done, before = 0, prev
        sha256, back = hashlib.sha256, f',"prev":"{prev}"}}'.encode() if prev else b',"prev":null}'
        for done, raw in enumerate(lines):
            front = b'{"v":1,"seq":%d,"ts":"' % (first + done)
            word = len(front) + TS_LENGTH
            kind = raw[word : word + _SEAL_LENGTH]
            if not (raw.startswith(front) and raw.endswith(back) and kind.startswith(_TYPE)) or kind == _SEAL:
                break
            before, prev = prev, f"sha256:{sha256(raw).hexdigest()}"
            back = f',"prev":"{prev}"}}'.encode()
        else:
            done += 1
        if done:
            ends = offset + sum(map(len, lines[:done])) + done
            self.here = Position(first + done - 1, ends - len(lines[done - 1]) - 1, before)
            self._next = Position(first + done, ends, prev)
        return done == len(lines)


def _begins(raw: bytes) -> bool:
    """Whether the first line, which says what the file is, can be read in full."""
    try:
        return parse(raw).seq == 0
    except TraceError:
        return False
