"""Formats JSON as short readable lines: scalars first, lists of records as tables, each line under its key.

An indented line belongs to the line above it that is less indented. Values that all rows share are in the table's head:

    reservation_id: OI5L9G, cabin: business
    flights, 2, date 2024-05-25: origin, destination, flight_number, price
     MCO, BOS, HAT017, 523
     BOS, CLT, HAT277, 501
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

MAX_DEPTH = 6
MAX_ROWS = 200
WIDTH = 80
"""Scalars wrap after this many characters."""
WIDE_SCALAR = 40
"""A longer scalar is placed after the others."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:")
LONG_TEXT = 160
"""A longer text gets lines of its own."""


def record_lines(value: Any, given: Mapping[str, Any] | None = None) -> list[str]:
    """Format a JSON value as lines, without fields that repeat an argument of the call, `given`."""
    return list(_lines("", _without(value, given) if given else value, 0))


def _without(value: Any, given: Mapping[str, Any]) -> Any:
    """The value without fields that equal an argument of the same name. In a list, all records must have the field."""
    if isinstance(value, Mapping):
        kept = {name: item for name, item in value.items() if _is_nested(item) or given.get(name) != item}
        return kept or value
    rows = _rows(value) if isinstance(value, list) and value else None
    same = {name for name, item in given.items() if rows and all(row.get(name) == item for _, row in rows)}
    if not same or not rows:
        return value
    kept_rows = [{name: item for name, item in row.items() if name not in same} for _, row in rows]
    if rows[0][0] is None:
        return kept_rows
    groups: dict[Any, list[Any]] = {}
    for (number, _), row in zip(rows, kept_rows, strict=True):
        groups.setdefault(number, []).append(row)
    return list(groups.values())


def flow(value: Any, depth: int = 0) -> str:
    """A JSON value in one line."""
    if isinstance(value, str):
        return value
    if isinstance(value, _PLAIN):
        return _scalar(value)
    if isinstance(value, _RECORDS):
        if depth >= MAX_DEPTH:
            return f"{{{len(value)} fields}}"
        return ", ".join(f"{key}: {_inner(item, depth + 1)}" for key, item in value.items())
    if isinstance(value, _LISTS):
        return _flow_list(value, depth)
    return _scalar(value)


def _inner(value: Any, depth: int) -> str:
    text = flow(value, depth)
    return f"({text})" if _is_record(value) and value else text


def _flow_list(items: Sequence[Any], depth: int) -> str:
    if not items:
        return "none"
    if depth >= MAX_DEPTH:
        return f"[{len(items)} items]"
    if len(items) > 1 and all(map(_is_record, items)):
        table = _Table([(None, item) for item in items])
        if table.fits:
            return f"[{table.head()}: {'; '.join(table.rows())}]"
    if any(map(_is_nested, items)):
        return f"[{'; '.join(flow(item, depth + 1) for item in items)}]"
    return ", ".join(map(_scalar, items))


def _lines(key: str, value: Any, depth: int) -> Iterator[str]:
    label = f"{key}: " if key else ""
    if depth >= MAX_DEPTH:
        yield label + flow(value, depth)
    elif _is_record(value):
        yield from _record(key, value, depth)
    elif isinstance(value, _LISTS):
        yield from _list(key, value, depth)
    else:
        yield from _text(label, _scalar(value))


def _text(label: str, text: str) -> Iterator[str]:
    if "\n" not in text and len(text) <= LONG_TEXT:
        yield label + text
        return
    if label:
        yield label.rstrip()
    yield from (" " * bool(label) + line.rstrip() for line in text.splitlines())


def _record(key: str, record: Mapping[str, Any], depth: int) -> Iterator[str]:
    if not record:
        yield f"{key}: none" if key else "empty"
        return
    if key and (rows := _keyed_rows(record)):
        yield from _table(key, rows)
        return
    indent = " " if key else ""
    if key and not any(map(_has_lines, record.values())) and len(line := flow(record)) <= LONG_TEXT:
        yield f"{key}: {line}"
        return
    if key:
        yield f"{key}:"
    short = {name: item for name, item in record.items() if not _has_lines(item) and len(str(item)) <= LONG_TEXT}
    # Times, URLs and other long values come last, so that they can be left out separately.
    ordered = sorted(
        short.items(), key=lambda pair: len(str(pair[1])) > WIDE_SCALAR or bool(_MOMENT.match(str(pair[1])))
    )
    yield from (indent + line for line in _wrapped(f"{name}: {_scalar(item)}" for name, item in ordered))
    for name, item in record.items():
        if name not in short:
            yield from (indent + line for line in _lines(str(name), item, depth + 1))


def _list(key: str, items: Sequence[Any], depth: int) -> Iterator[str]:
    label = f"{key}: " if key else ""
    if not items:
        yield f"{label}none" if key else "empty list"
    elif not any(map(_is_nested, items)):
        yield from (f"{label if not at else ' '}{line}" for at, line in enumerate(_wrapped(map(_scalar, items))))
    elif rows := _rows(items):
        yield from _table(key, rows)
    else:
        yield f"{label}{len(items)} items"
        for number, item in enumerate(items[:MAX_ROWS], 1):
            yield from (f" {line}" for line in _lines(str(number), item, depth + 1))


def _rows(items: Sequence[Any]) -> list[tuple[Any, Mapping[str, Any]]] | None:
    """The records of a list. In a list of lists, each record has the number of its list."""
    if all(map(_is_record, items)):
        return [(None, item) for item in items]
    if all(isinstance(item, list) and item and all(map(_is_record, item)) for item in items):
        return [(number, each) for number, item in enumerate(items, 1) for each in item]
    return None


def _keyed_rows(record: Mapping[str, Any]) -> list[tuple[Any, Mapping[str, Any]]] | None:
    """The records of an object that maps keys to similar records."""
    if len(record) < 2 or not all(_is_record(item) and item for item in record.values()):
        return None
    fields = {name for item in record.values() for name in item}
    filled = sum(len(item) for item in record.values())
    return list(record.items()) if filled * 2 >= len(fields) * len(record) else None


def _table(key: str, rows: list[tuple[Any, Mapping[str, Any]]]) -> Iterator[str]:
    if len(rows) == 1 and rows[0][0] is None:
        yield from _record(key, rows[0][1], 1)
        return
    table = _Table(rows[:MAX_ROWS])
    shared = ", ".join(map(str, (len(rows), *table.shared())))
    yield f"{key} ({shared}): {', '.join(table.columns())}".lstrip()
    yield from (f" {row}" for row in table.rows())
    if len(rows) > MAX_ROWS:
        yield f" … {len(rows) - MAX_ROWS} more"


class _Table:
    """Records as rows. Fields of a nested record share a column. Values that all rows share are in the head."""

    def __init__(self, rows: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
        self._keys = [key for key, _ in rows]
        self._items = [item for _, item in rows]
        names = list(dict.fromkeys(name for item in self._items for name in item))
        self._columns = [name for name in names if not self._repeats_key(name)]
        self._shared = [name for name in self._columns if len(rows) > 1 and self._is_shared(name)]
        self._columns = [name for name in self._columns if name not in self._shared]
        self._nested = {name: fields for name in self._columns if (fields := self._fields(name))}
        self.grouped = all(isinstance(key, int) for key in self._keys)
        self.fits = len(self._columns) <= 24

    def shared(self) -> list[str]:
        """Names and values that all rows share."""
        return [f"{name} {_cell(self._items[0].get(name))}" for name in self._shared]

    def columns(self) -> list[str]:
        return [self._column(name) for name in self._columns]

    def head(self) -> str:
        return ", ".join((*self.shared(), *self.columns()))

    def rows(self) -> Iterator[str]:
        """The rows. If rows repeat across groups, yields each row once, and then the groups."""
        cells = [[self._value(name, item.get(name)) for name in self._columns] for item in self._items]
        rows = [", ".join(row) for row in cells]
        names = [row[0] if row else "" for row in cells]
        if self.grouped and len(set(rows)) < len(rows) and len(set(names)) == len(set(rows)):
            yield from dict.fromkeys(rows)
            groups: dict[Any, list[str]] = {}
            for key, name in zip(self._keys, names, strict=True):
                groups.setdefault(key, []).append(name)
            yield f"groups: {'; '.join(' + '.join(group) for group in groups.values())}"
            return
        for key, row in zip(self._keys, rows, strict=True):
            yield (f"{key}: " if key is not None else "") + row

    def _repeats_key(self, name: str) -> bool:
        return all(key is not None and item.get(name) == key for key, item in zip(self._keys, self._items, strict=True))

    def _is_shared(self, name: str) -> bool:
        first = self._items[0].get(name)
        return first is not None and all(item.get(name) == first for item in self._items)

    def _fields(self, name: str) -> list[str]:
        """The fields of a column that holds small records of the same kind."""
        found = [item.get(name) for item in self._items]
        if not all(_is_record(value) and not any(map(_is_nested, value.values())) for value in found):
            return []
        fields = list(dict.fromkeys(field for value in found for field in value or ()))
        return fields if len(fields) <= 12 else []

    def _column(self, name: str) -> str:
        fields = self._nested.get(name)
        return f"{name} ({'/'.join(fields)})" if fields else name

    def _value(self, name: str, value: Any) -> str:
        fields = self._nested.get(name)
        if fields and _is_record(value):
            return "/".join(_cell(value.get(field)) for field in fields)
        return _cell(value)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return f'"{value}"' if ", " in value else value
    text = flow(value, 2)
    return f"({text})" if _is_record(value) else text


def _wrapped(parts: Any) -> Iterator[str]:
    """Join the parts to lines of about `WIDTH` characters."""
    line: list[str] = []
    size = 0
    for part in parts:
        if line and size + len(part) > WIDTH:
            yield ", ".join(line)
            line, size = [], 0
        line.append(part)
        size += len(part) + 2
    if line:
        yield ", ".join(line)


def _is_nested(value: Any) -> bool:
    # The check of an abstract class is slow, so the common types come first.
    return not isinstance(value, _PLAIN) and isinstance(value, _NESTED)


def _has_lines(value: Any) -> bool:
    """Whether a value takes several lines."""
    return "\n" in value.strip("\n") if isinstance(value, str) else _is_nested(value)


def _is_record(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return not isinstance(value, _PLAIN) and isinstance(value, _RECORDS)


_PLAIN = (str, int, float, type(None))
_LISTS = (list, tuple)
_RECORDS = (dict, Mapping)
_NESTED = (dict, list, tuple, Mapping)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value.strip("\n") or '""'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
