"""Large files are read in parts that equal the whole, and hostile ones end in a sentence."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remora.analysis.logs import Conversation, LogFile, LogProblem, _document, _source, read_log
from remora.analysis.logs._source import Span
from strategies import json_values


def value_of(log: LogFile, span: Span) -> Any:
    """A value put together from its members, down to the leaves."""
    first = log.read(span.start, span.start + 1)
    if first == b"{":
        return {key: value_of(log, inner) for key, inner in log.members(span)}
    if first == b"[":
        return [value_of(log, inner) for _, inner in log.members(span)]
    return log.load(span)


@given(json_values, st.integers(1, 40), st.sampled_from([None, 1]))
@settings(max_examples=150)
def test_a_document_read_in_parts_of_any_size_equals_the_document(value: Any, chunk: int, indent: int | None) -> None:
    data = json.dumps(value, indent=indent).encode()
    log = LogFile("x.json", io.BytesIO(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_source, "CHUNK", chunk)
        assert value_of(log, Span(0, len(data))) == json.loads(data)


@given(st.binary(max_size=80), st.integers(1, 9))
def test_any_bytes_read_in_parts_give_values_or_a_problem(data: bytes, chunk: int) -> None:
    log = LogFile("x.json", io.BytesIO(b"[" + data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_source, "CHUNK", chunk)
        try:
            list(log.members(Span(0, log.size)))
        except LogProblem as problem:
            assert "not JSON" in str(problem)


def test_a_conversation_in_a_large_document_is_the_same_as_in_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": 'A"]}\\'}] * 3
    data = json.dumps({"info": {"a": [1]}, "messages": messages, "model": "m"}, indent=1).encode()

    def read() -> list[Any]:
        (found,) = read_log(LogFile("x.json", io.BytesIO(data)))
        assert isinstance(found, Conversation), found
        return [found.goal, found.model, list(found.steps())]

    small = read()
    monkeypatch.setattr(_document, "WHOLE", 10)
    assert read() == small


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[" * 100_000, "not JSON"),
        (b'{"messages": ' * 5_000, "not JSON"),
        (b'{"type": "user", "sessionId": "s", "message": ' + b"[" * 100_000 + b"\n", "not JSON"),
        (b"\x00" * 1000, "not JSON"),
        (b"\xff\xfe{\x00", "not JSON"),
        (b" \n\t ", "the file is empty"),
    ],
)
def test_a_hostile_file_ends_in_a_sentence(data: bytes, words: str) -> None:
    found = list(read_log(LogFile("x.jsonl", io.BytesIO(data))))
    assert len(found) == 1
    assert isinstance(found[0], LogProblem)
    assert words in str(found[0])


def test_a_line_over_the_limit_is_named_and_the_next_ones_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_source, "MAX_RECORD", 1000)
    chat = json.dumps([{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}])
    data = "\n".join([chat, json.dumps([{"role": "user", "content": "x" * 5000}]), chat])
    first, long, last = read_log(LogFile("x.jsonl", io.BytesIO(data.encode())))
    assert isinstance(first, Conversation)
    assert "x.jsonl:2: a line of more than" in str(long)
    assert isinstance(last, Conversation)


def test_a_session_is_read_in_memory_that_does_not_grow_with_it() -> None:
    class Endless(io.RawIOBase):
        """A session of 5,000 turns that exists only while it is read."""

        turn = json.dumps(
            {"type": "assistant", "sessionId": "s", "message": {"id": "M", "role": "assistant", "content": "x" * 4000}}
        ).encode()

        def __init__(self) -> None:
            self.line, self.lines, self.at = len(self.turn) + 1 + 8, 5_000, 0

        def seek(self, offset: int, whence: int = 0) -> int:
            self.at = self.line * self.lines if whence == 2 else offset
            return self.at

        def readline(self, size: int | None = -1) -> bytes:
            number, into = divmod(self.at, self.line)
            if number >= self.lines:
                return b""
            data = (self.turn.replace(b'"M"', b'"M%08d"' % number) + b"\n")[into:]
            self.at += len(data)
            return data

        def read(self, size: int = -1) -> bytes:
            return self.readline()[:size]

    import tracemalloc

    tracemalloc.start()
    (found,) = read_log(LogFile("s.jsonl", Endless()), "claude-code")  # type: ignore[arg-type]
    assert isinstance(found, Conversation)
    assert found.turns == 5_000
    assert sum(1 for _ in found.steps()) == 5_000
    assert tracemalloc.get_traced_memory()[1] < 4_000_000  # the session has 20 MB
    tracemalloc.stop()
