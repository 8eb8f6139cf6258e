"""Finds out which program wrote a log, by looking at its first records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import Any

from remora.analysis.logs._chat import EXPECTED, conversations
from remora.analysis.logs._claude import claude_conversations, is_claude
from remora.analysis.logs._codex import codex_conversations, is_codex, is_items
from remora.analysis.logs._conversation import Conversation, checked
from remora.analysis.logs._document import Document
from remora.analysis.logs._exchanges import exchange_conversations, is_exchange
from remora.analysis.logs._messages import MessageReader
from remora.analysis.logs._otel import holds_spans, is_otlp, otel_conversations, otlp_documents
from remora.analysis.logs._records import records
from remora.analysis.logs._source import MAX_RECORD, LogFile, LogProblem, Span, loads
from remora.analysis.logs._steps import Assembler, Step

_LINES = (".jsonl", ".ndjson")
_LOOKED_AT = 32
"""Records at the beginning of a file that are looked at."""

Found = Iterator[Conversation | LogProblem]


def read_log(log: LogFile, wanted: str = "") -> Found:
    """Every conversation of a log, in order; a problem with its place for each that cannot be read.

    `wanted` is one of `FORMATS`; without it, the log is looked at.
    """
    try:
        yield from FORMATS[wanted](log) if wanted else _look(log)(log)
    except LogProblem as problem:
        yield LogProblem(f"{log.name}: {problem}")


def _look(log: LogFile) -> Callable[[LogFile], Found]:
    root = log.root()
    if root.start == root.end:
        raise LogProblem(f"the file is empty: {EXPECTED}")
    firsts = [record for _, record in islice(records(log, Counter()), _LOOKED_AT)]
    for matches, read in _BY_RECORD:
        if any(map(matches, firsts)):
            return read
    if len(firsts) > 1 and all(map(is_exchange, firsts)):
        return exchange_conversations
    if len(firsts) > 1 and all(_is_message(record) for record in firsts):
        return _message_lines
    if _holds_spans(log, root):
        return _otlp
    return _documents


def _holds_spans(log: LogFile, root: Span) -> bool:
    try:
        return holds_spans(log, root)
    except LogProblem:
        return False


def _is_message(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("role"), str) and bool({"content", "tool_calls", "parts"} & record.keys())


def _otlp(log: LogFile) -> Found:
    yield from otel_conversations(log, otlp_documents(log))


def _message_lines(log: LogFile) -> Found:
    """One message a line: the file is one conversation."""
    try:
        yield checked(Conversation(log.name, "chat", partial(_read_lines, log)))
    except LogProblem as problem:
        yield LogProblem(f"{log.name}: {problem}")


def _read_lines(log: LogFile, unknown: Counter[str]) -> Iterator[Step]:
    steps = Assembler()
    reader = MessageReader(steps, unknown, strict=False)
    for line, record in records(log, unknown):
        reader.take(record, f"line {line.number}")
        yield from steps.ready()
    yield from steps.rest()


def _documents(log: LogFile) -> Found:
    """A document a line, or one document."""
    if not _is_lined(log):
        yield from _one(log.name, log, log.root())
        return
    for line in log.lines():
        place = f"{log.name}:{line.number}"
        if line.data is None:
            yield LogProblem(f"{place}: a line of more than {MAX_RECORD:,} bytes")
        else:
            yield from _one(place, log, Span(line.offset, line.offset + len(line.data)))


def _one(place: str, log: LogFile, span: Span) -> Found:
    try:
        yield from conversations(place, Document(log, span))
    except LogProblem as problem:
        yield LogProblem(f"{place}: {problem}")


def _is_lined(log: LogFile) -> bool:
    """Whether every line is a document. A document over several lines is one, whatever the file's name."""
    named = PurePath(log.name).suffix.lower() in _LINES
    lines = list(islice(log.lines(), 2))
    if not lines or lines[0].data is None:
        return named
    try:
        loads(lines[0].data)
    except LogProblem:
        return named and not _is_document(log)
    return named or len(lines) > 1


def _is_document(log: LogFile) -> bool:
    root = log.root()
    if root.end - root.start > MAX_RECORD:
        return True
    try:
        log.load(root)
    except LogProblem:
        return False
    return True


_BY_RECORD: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[LogFile], Found]], ...] = (
    (is_claude, claude_conversations),
    (is_codex, codex_conversations),
    (is_otlp, _otlp),
    (is_items, codex_conversations),
)
FORMATS: Mapping[str, Callable[[LogFile], Found]] = {
    "claude-code": claude_conversations,
    "codex": codex_conversations,
    "otel": _otlp,
    "chat": _documents,
    "messages": _message_lines,
    "exchanges": exchange_conversations,
}
"""Readers by name. `chat` reads every document: chat logs, trajectories, tau-bench, Inspect, ATIF."""
