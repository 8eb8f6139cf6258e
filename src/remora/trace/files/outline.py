"""`Outline`: where each turn of a stream begins, and a few numbers about it.

A stream of any length is read once, line by line; what stays in memory is about 70 bytes for each turn. New events are
added by `extend`, so a stream can be followed while another process writes it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from remora.errors import TraceDamaged, TraceError
from remora.trace.files.lines import SEAL
from remora.trace.files.reader import Position, after, read_records
from remora.trace.files.skim import Skim

MAX_TOOLS = 1000
"""Different tool names that are kept."""
FAILED, CHANGED, SPOKEN, MOVED = 1, 2, 4, 8
"""What happened in a turn: a call failed, a file changed, a person spoke, or the agent moved to another model."""

_LINE = re.compile(rb'\{"v":\d+,"seq":\d+,"ts":"([^"\\]{0,40})","type":"([^"\\]{1,80})",.*?","turn":(\d{1,15}),"data":')
"""The front of a line as our own writer writes it. No text in it can look like this: its quotes are escaped."""
_RESULT = re.compile(rb'"tool":"([^"\\]{1,80})","outcome":"([a-z]{1,20})"')
_SIZE = re.compile(rb'"raw_ref":\{"blob":"sha256:[0-9a-f]{64}","size":(\d{1,15})')
_CHECK = b'"purpose":"check"'
_FILES = b'"files":[{'
_AFTER_RAW = (b',"parsed":', b',"attachments":[', b',"files":[{"path":')
_BACK = len('},"prev":"sha256:"}') + 64


@dataclass(frozen=True)
class OutlinedTurn:
    """The numbers of one turn."""

    turn: int
    seq: int
    """Its first event."""
    offset: int
    """Where its first line begins."""
    tokens: int
    """Of its last prompt; 0 without one."""
    limit: int
    history: int
    """Bytes that a chat history would have had at its prompt: texts, calls and raw results so far."""
    flags: int
    tool: str
    """The first tool that returned something."""


class Outline:
    """The turns of the stream at `path`, as far as it is intact."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.here = Position()
        """After the last event that was read."""
        self.events = 0
        self.prompt_bytes = 0
        """Bytes of the prompts that were counted, and below their tokens: how many bytes a token has in this stream."""
        self.prompt_tokens = 0
        self.started = ""
        self._last = b""
        self._turn = -1
        self.last_offset = 0
        """Where the last line begins."""
        self.is_sealed = False
        self.damage: TraceError | None = None
        """Why the rest cannot be read."""
        self._columns: dict[str, array[int]] = {
            name: array("q") for name in ("turn", "seq", "offset", "tokens", "limit", "history", "flags", "tool")
        }
        self._tools: list[str] = [""]
        self._history = 0

    def __len__(self) -> int:
        return len(self._columns["turn"])

    def __getitem__(self, index: int) -> OutlinedTurn:
        row = {name: column[index] for name, column in self._columns.items()}
        return OutlinedTurn(**row | {"tool": self._tools[row["tool"]]})  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[OutlinedTurn]:
        return (self[index] for index in range(len(self)))

    def column(self, name: str) -> array[int]:
        """One number of every turn, in order: faster than turn by turn."""
        return self._columns[name]

    def end(self, index: int) -> int:
        """Where the turn's last line ends."""
        offsets = self._columns["offset"]
        return offsets[index + 1] if index + 1 < len(offsets) else self.here.offset

    def find(self, turn: int) -> int:
        """The index of the last turn that is not after `turn`; 0 if all are."""
        turns = self._columns["turn"]
        low, high = 0, len(turns)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if turns[middle] <= turn else (low, middle)
        return max(low - 1, 0)

    def holding(self, seq: int) -> int:
        """The index of the turn that holds the event `seq`."""
        seqs = self._columns["seq"]
        low, high = 0, len(seqs)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if seqs[middle] <= seq else (low, middle)
        return max(low - 1, 0)

    def extend(self) -> bool:
        """Read what is new. Returns whether there was anything."""
        before = self.events
        if self.is_sealed or self.damage is not None:
            return False
        try:
            if not self.events:
                self._skim()
            for record in read_records(self.path, start=self.here, torn_ok=True):
                self._take(record.raw, record.offset)
                self.here = after(record)
                self.is_sealed = record.type == SEAL
        except TraceDamaged as damage:
            self.damage = damage
        return self.events > before or self.damage is not None

    def _skim(self) -> None:
        skim, offset = Skim(self.path), 0
        for lines in skim:
            for line in lines:
                self._take(line, offset)
                offset += len(line) + 1
        self.here = skim.here

    def _take(self, line: bytes, offset: int) -> None:
        found = _LINE.match(line)
        ts, kind, turn = found.groups() if found else _parsed(line)
        place = int(turn)
        if place > self._turn:
            self._begin(place, offset)
        if kind in _READERS:
            _READERS[kind](self, line)
        self._last = ts
        if not self.events:
            self.started = ts.decode(errors="replace")
        self.last_offset = offset
        self.events += 1

    @property
    def last(self) -> str:
        """When the last event was recorded."""
        return self._last.decode(errors="replace")

    def _begin(self, turn: int, offset: int) -> None:
        """Begin another turn."""
        self._turn = turn
        row = {"turn": turn, "seq": self.events, "offset": offset, "history": self._history}
        for name, column in self._columns.items():
            column.append(row.get(name, 0))

    def _request(self, line: bytes) -> None:
        data = _data(line)
        tokens = data.get("tokens")
        total = tokens.get("total") if isinstance(tokens, dict) else None
        limit = data.get("limit")
        messages = data.get("messages") or ()
        if not self.prompt_tokens and messages:
            self._history += _text_size(messages[0])  # the system text, which a history has too
        self._columns["history"][-1] = self._history
        if isinstance(total, int) and 0 < total < 2**53:
            self._columns["tokens"][-1] = total
            self.prompt_tokens += total
            self.prompt_bytes += sum(map(_text_size, messages))
        if isinstance(limit, int) and 0 < limit < 2**53:
            self._columns["limit"][-1] = limit

    def _result(self, line: bytes) -> None:
        if _FILES in line:
            self._columns["flags"][-1] |= CHANGED
        if _CHECK in line:
            return
        size, found = _SIZE.search(line), _RESULT.search(line)
        self._history += int(size[1]) if size else _raw_length(line, found.end() if found else 0)
        if found and found[2] in (b"error", b"unknown"):
            self._columns["flags"][-1] |= FAILED
        if found and not self._columns["tool"][-1]:
            self._columns["tool"][-1] = self._tool(found[1].decode("utf-8", "replace"))

    def _tool(self, name: str) -> int:
        if name not in self._tools and len(self._tools) < MAX_TOOLS:
            self._tools.append(name)
        return self._tools.index(name) if name in self._tools else 0

    def _text(self, line: bytes) -> None:
        data = _data(line)
        self._history += sum(len(text) for word in ("goal", "text") if isinstance(text := data.get(word), str))
        if calls := data.get("calls"):
            self._history += len(orjson.dumps(calls))

    def _spoken(self, line: bytes) -> None:
        self._text(line)
        self._columns["flags"][-1] |= SPOKEN

    def _moved(self, line: bytes) -> None:
        self._columns["flags"][-1] |= MOVED

    def _error(self, line: bytes) -> None:
        self._columns["flags"][-1] |= FAILED


_READERS = {
    b"model_request": Outline._request,
    b"tool_result": Outline._result,
    b"model_response": Outline._text,
    b"user_input": Outline._spoken,
    b"agent_start": Outline._text,
    b"escalation": Outline._moved,
    b"agent_error": Outline._error,
}


def _data(line: bytes) -> dict[str, Any]:
    try:
        data = orjson.loads(line).get("data")
    except (orjson.JSONDecodeError, AttributeError):
        return {}
    return data if isinstance(data, dict) else {}


def _raw_length(line: bytes, start: int) -> int:
    """About how many bytes the raw result has that a record contains."""
    begin = max(line.find(b',"raw":', start), 0)
    ends = (place for key in _AFTER_RAW if (place := line.rfind(key, begin)) > 0)
    return max(min(ends, default=len(line) - _BACK) - begin - len(b',"raw":'), 0) if begin else 0


def _parsed(line: bytes) -> tuple[bytes, bytes, int]:
    """Time, type and turn of a line that our own writer did not write."""
    try:
        record = orjson.loads(line)
        ts, kind, turn = record.get("ts"), record.get("type"), record.get("turn", 0)
    except (orjson.JSONDecodeError, AttributeError):
        return b"", b"", 0
    right = isinstance(turn, int) and 0 <= turn < 2**53
    return str(ts).encode(errors="replace")[:40], str(kind).encode(errors="replace"), turn if right else 0


def _text_size(message: Any) -> int:
    """Bytes of a message's text; of a constant part, of the blob."""
    if not isinstance(message, dict):
        return 0
    content, reference = message.get("content"), message.get("content_ref")
    if isinstance(content, str):
        return len(content)
    size = reference.get("size") if isinstance(reference, dict) else 0
    return size if isinstance(size, int) else 0
