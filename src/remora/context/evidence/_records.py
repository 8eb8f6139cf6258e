"""Formats JSON as short readable lines: scalars first, lists of records as tables, each line under its key.

An indented line belongs to the line above it that is less indented. Values that all rows share are in the table's head:

    reservation_id: OI5L9G, cabin: business
    flights (2, date 2024-05-25): origin, destination, flight_number, price
     MCO, BOS, HAT017, 523
     BOS, CLT, HAT277, 501

If rows are wide, their long texts and nested fields follow the table, so that they can be left out:

    issues (2, state open): number, title
     412, Crash on empty config
     419, Memory leak in worker pool
     number 412:
      url: https://example.com/issues/412
      body:
       Steps to reproduce: …
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeGuard

MAX_DEPTH = 6
INNER_DEPTH = 2
"""The depth at which a value within a line begins."""
MAX_ROWS = 200
WIDTH = 80
"""Scalars wrap after this many characters."""
WIDE_SCALAR = 40
"""A longer scalar is placed after the others."""
_TITLES = ("name", "id", "title", "key", "number")
"""Fields that name a record."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:")
LONG_TEXT = 160
"""A longer text gets lines of its own."""
WIDE_ROW = 400
"""A table with a longer row shows the wide fields of its rows after it. Longer lines would be split."""
MAX_FOUND = 40
"""Most rows beyond `MAX_ROWS` that are shown because they hold a word of the focus."""


Focus = frozenset[str]
Row = tuple[Any, Mapping[str, Any]]
"""A record, and its key or the number of its list."""


def record_lines(value: Any, given: Mapping[str, Any] | None = None, focus: Focus = frozenset()) -> list[str]:
    """Format a JSON value as lines, without fields that repeat an argument of the call, `given`.

    Of a very long table, the first rows and those with a word of `focus`.
    """
    return list(_lines("", _without(value, given) if given else value, 0, focus))


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


def _lines(key: str, value: Any, depth: int, focus: Focus) -> Iterator[str]:
    label = f"{key}: " if key else ""
    if depth >= MAX_DEPTH:
        yield label + flow(value, INNER_DEPTH)
    elif _is_record(value):
        yield from _record(key, value, depth, focus)
    elif isinstance(value, _LISTS):
        yield from _list(key, value, depth, focus)
    else:
        yield from _text(label, _scalar(value))


def _text(label: str, text: str) -> Iterator[str]:
    if "\n" not in text and len(text) <= LONG_TEXT:
        yield label + text
        return
    if label:
        yield label.rstrip()
    # Blank lines would only mark gaps between lines that are left out.
    yield from (" " * bool(label) + line.rstrip() for line in text.splitlines() if line.strip())


def _record(key: str, record: Mapping[str, Any], depth: int, focus: Focus) -> Iterator[str]:
    if not record:
        yield f"{key}: none" if key else "empty"
        return
    if key and (rows := _keyed_rows(record)):
        yield from _table(key, rows, depth, focus)
        return
    indent = " " if key else ""
    if key and not any(map(_has_lines, record.values())) and len(line := flow(record)) <= LONG_TEXT:
        yield f"{key}: {line}"
        return
    if key:
        yield f"{key}:"
    yield from (indent + line for line in _fields(record, depth, focus))


def _fields(record: Mapping[str, Any], depth: int, focus: Focus) -> Iterator[str]:
    """The fields of a record: short ones first, several in a line."""
    short = {name: item for name, item in record.items() if not _has_lines(item) and len(str(item)) <= LONG_TEXT}
    # Times, URLs and other long values come last, so that they can be left out separately.
    ordered = sorted(short.items(), key=lambda pair: _is_wide(pair[1]))
    yield from _wrapped(f"{name}: {_scalar(item)}" for name, item in ordered)
    for name, item in record.items():
        if name not in short:
            yield from _lines(str(name), item, depth + 1, focus)


def _is_wide(value: Any) -> bool:
    """Whether a scalar is a time or longer than most."""
    text = str(value)
    return len(text) > WIDE_SCALAR or bool(_MOMENT.match(text))


def _list(key: str, items: Sequence[Any], depth: int, focus: Focus) -> Iterator[str]:
    label = f"{key}: " if key else ""
    if not items:
        yield f"{label}none" if key else "empty list"
    elif not any(map(_is_nested, items)):
        yield from (f"{label if not at else ' '}{line}" for at, line in enumerate(_wrapped(map(_scalar, items))))
    elif rows := _rows(items):
        yield from _table(key, rows, depth, focus)
    else:
        yield f"{label}{len(items)} items"
        for number, item in enumerate(items[:MAX_ROWS], 1):
            yield from (f" {line}" for line in _lines(str(number), item, depth + 1, focus))


def _rows(items: Sequence[Any]) -> list[Row] | None:
    """The records of a list. In a list of lists, each record has the number of its list."""
    if all(map(_is_record, items)):
        return [(None, item) for item in items]
    if all(isinstance(item, list) and item and all(map(_is_record, item)) for item in items):
        return [(number, each) for number, item in enumerate(items, 1) for each in item]
    return None


def _keyed_rows(record: Mapping[str, Any]) -> list[Row] | None:
    """The records of an object that maps keys to similar records."""
    if len(record) < 2 or not all(_is_record(item) and item for item in record.values()):
        return None
    fields = {name for item in record.values() for name in item}
    filled = sum(len(item) for item in record.values())
    return list(record.items()) if filled * 2 >= len(fields) * len(record) else None


def _table(key: str, rows: list[Row], depth: int, focus: Focus) -> Iterator[str]:
    if len(rows) == 1 and rows[0][0] is None:
        yield from _record(key, rows[0][1], depth + 1, focus)
        return
    kept = rows if len(rows) <= MAX_ROWS else [*rows[:MAX_ROWS], *_found(rows[MAX_ROWS:], focus)]
    table = _Table(kept)
    lines = list(table.rows())
    wide = not table.grouped and (any(len(line) > WIDE_ROW for line in lines) or table.is_deep())
    if wide:
        details = table.take_details()
        lines = list(table.rows()) if table.names else []
    shared = ", ".join(map(str, (len(rows), *table.shared())))
    yield f"{key} ({shared}): {', '.join(map(table.column, table.names))}".lstrip().rstrip(" ")
    yield from (f" {row}" for row in lines if row)
    if len(rows) > len(kept):
        yield f" … {len(rows) - len(kept)} more"
    if wide:
        yield from (f" {line}" for name, item in details for line in _detail(name, item, depth, focus))


def _detail(name: str, record: Mapping[str, Any], depth: int, focus: Focus) -> Iterator[str]:
    """The wide fields of a row."""
    if record:
        yield f"{name}:"
        yield from (f" {line}" for line in _fields(record, depth + 1, focus))


def _found(rows: Sequence[Row], focus: Focus) -> list[Row]:
    """The rows with a value or a key that the focus names."""
    found = (row for row in rows if focus and not focus.isdisjoint(_values(row)))
    return list(islice(found, MAX_FOUND))


def _values(row: Row) -> Iterator[str]:
    key, record = row
    yield str(key).lower()
    yield from (str(item).lower() for item in record.values() if isinstance(item, str | int))


class _Table:
    """Records as rows. Fields of a nested record share a column. Values that all rows share are in the head."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._keys = [key for key, _ in rows]
        self._items = [item for _, item in rows]
        names = list(dict.fromkeys(name for item in self._items for name in item))
        self.names = [name for name in names if not self._repeats_key(name)]
        self._shared = [name for name in self.names if len(rows) > 1 and self._is_shared(name)]
        self.names = [name for name in self.names if name not in self._shared]
        self._nested = {name: fields for name in self.names if (fields := self._fields(name))}
        self.grouped = all(isinstance(key, int) for key in self._keys)
        self.fits = 0 < len(self.names) <= 24

    def shared(self) -> list[str]:
        """Names and values that all rows share."""
        return [f"{name} {_cell(self._items[0].get(name))}" for name in self._shared]

    def is_deep(self) -> bool:
        """Whether a row has a value of more levels than one line shows."""
        names = [name for name in (*self.names, *self._shared) if name not in self._nested]
        return any(_is_deep(item.get(name)) for name in names for item in self._items)

    def take_details(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Take the columns with long, nested or many-lined values out of the table: by row, its name and these fields.

        What all rows share of them comes first.
        """
        wide = [name for name in self.names if any(_is_tall(item.get(name)) for item in self._items)]
        common = {name: self._items[0][name] for name in self._shared if _is_tall(self._items[0].get(name))}
        self.names = [name for name in self.names if name not in wide]
        self._shared = [name for name in self._shared if name not in common]
        rows = enumerate(zip(self._keys, self._items, strict=True), 1)
        return [
            ("all", common),
            *((self._title(number, key, item), _filled(item, wide)) for number, (key, item) in rows),
        ]

    def _title(self, number: int, key: Any, item: Mapping[str, Any]) -> str:
        """The name of a row: its key, its first column, or its number with a name in it."""
        if key is not None:
            return str(key)
        if self.names and item.get(self.names[0]) is not None:
            return f"{self.names[0]} {self.value(self.names[0], item[self.names[0]])}"
        inner = (each for each in (item, *item.values()) if _is_record(each))
        names = (each[field] for each in inner for field in _TITLES if isinstance(each.get(field), str | int))
        return f"{number} {_cell(next(names, ''))}".rstrip()

    def head(self) -> str:
        return ", ".join((*self.shared(), *map(self.column, self.names)))

    def rows(self) -> Iterator[str]:
        """The rows. If rows repeat across groups, yields each row once, and then the groups."""
        cells = [[self.value(name, item.get(name)) for name in self.names] for item in self._items]
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

    def column(self, name: str) -> str:
        fields = self._nested.get(name)
        return f"{name} ({'/'.join(fields)})" if fields else name

    def value(self, name: str, value: Any) -> str:
        fields = self._nested.get(name)
        if fields and _is_record(value):
            return "/".join(_cell(value.get(field)) for field in fields)
        return _cell(value)


def _filled(item: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The fields of these names that have a value."""
    return {name: item[name] for name in names if item.get(name) is not None}


def _is_deep(value: Any, levels: int = MAX_DEPTH - INNER_DEPTH) -> bool:
    if not _is_nested(value):
        return False
    inner = value.values() if _is_record(value) else value
    return levels <= 0 or any(_is_deep(item, levels - 1) for item in inner)


def _is_tall(value: Any) -> bool:
    """Whether a value of a wide row is written below it."""
    if _is_nested(value):
        return len(flow(value)) > WIDE_SCALAR or _is_deep(value)
    return _has_lines(value) or _is_wide(value)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return f'"{value}"' if ", " in value else value
    text = flow(value, INNER_DEPTH)
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
