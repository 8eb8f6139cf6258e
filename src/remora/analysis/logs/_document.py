"""A JSON document whose large lists are read one element at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from remora.analysis.logs._source import LogFile, LogProblem, Span

WHOLE = 8 * 1024 * 1024
"""Bytes of a document that is loaded at once: parsing it costs less than finding its parts."""
FIELD = 1024 * 1024
"""Bytes of a field beside the large lists that is loaded."""


class Document:
    """A JSON value, loaded or still in its file."""

    def __init__(self, log: LogFile, span: Span | None = None, value: Any = None) -> None:
        self._log, self._span, self._value = log, span, value
        if span is not None and span.end - span.start <= WHOLE:
            self._value, self._span = log.load(span), None
        self._fields: dict[str, Document] | None = None

    @property
    def is_list(self) -> bool:
        return isinstance(self._value, list) if self._span is None else self._starts(self._span, b"[")

    @property
    def is_object(self) -> bool:
        return isinstance(self._value, Mapping) if self._span is None else self._starts(self._span, b"{")

    def _starts(self, span: Span, sign: bytes) -> bool:
        return self._log.read(span.start, span.start + 1) == sign

    def beside(self, value: Any) -> Document:
        """A value of the same file that is already loaded."""
        return Document(self._log, value=value)

    def load(self) -> Any:
        """The whole value. Raises `LogProblem` if it is too large."""
        return self._value if self._span is None else self._log.load(self._span)

    def fields(self) -> Mapping[str, Document]:
        """The members of an object; empty for anything else."""
        if self._fields is None:
            self._fields = dict(self._read_fields()) if self.is_object else {}
        return self._fields

    def _read_fields(self) -> Iterator[tuple[str, Document]]:
        if self._span is None:
            yield from ((str(key), Document(self._log, value=value)) for key, value in self._value.items())
        else:
            yield from ((str(key), Document(self._log, span)) for key, span in self._log.members(self._span))

    def small(self) -> dict[str, Any]:
        """The members of an object that are not large."""
        return {key: each.load() for key, each in self.fields().items() if each.size <= FIELD}

    @property
    def size(self) -> int:
        """The bytes of a value that is still in its file; 0 once it is loaded."""
        return self._span.end - self._span.start if self._span else 0

    def elements(self) -> Iterator[Document]:
        """The elements of a list, one at a time. May be called again."""
        if self._span is None:
            yield from (Document(self._log, value=value) for value in self._value)
        else:
            yield from (Document(self._log, span) for _, span in self._log.members(self._span))

    def values(self) -> Iterator[Any]:
        """The elements of a list as values. Raises `LogProblem` at one that is too large."""
        for index, element in enumerate(self.elements()):
            try:
                yield element.load()
            except LogProblem as problem:
                raise LogProblem(f"[{index}]: {problem}") from None
