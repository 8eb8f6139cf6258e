"""`KVManager` and `KVTransaction`: JSON values by key, one at a time or in transactions."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from remora.errors import KVConflict, KVError
from remora.kv._file import ABSENT, KVFile, KVRow, to_bytes


class Record(NamedTuple):
    """The value of a key."""

    key: str
    value: Any
    version: int


class KVAccess(ABC):
    """What a store and a transaction have in common: reading and changing keys."""

    def __init__(self, file: KVFile) -> None:
        self._file = file

    async def get(self, key: str) -> Any:
        """The key's value; None if there is none."""
        found = await self.get_many([key])
        return found[key].value if key in found else None

    async def get_many(self, keys: Iterable[str]) -> dict[str, Record]:
        """The records of the keys that exist."""
        return {row.key: _record(row) for row in await self.rows(keys)}

    async def scan(self, prefix: str = "") -> list[Record]:
        """The records whose keys begin with `prefix`, by key."""
        return [_record(row) for row in await self.rows_from(prefix)]

    async def set(self, key: str, value: Any, *, expected: int | None = None) -> int | None:
        """Set the key's value. Raises `KVConflict` unless its version was the `expected` one."""
        return await self.put(key, encode(key, value), expected)

    @abstractmethod
    async def delete(self, key: str, *, expected: int | None = None) -> bool:
        """Delete the key; return whether it existed. Raises `KVConflict` unless it had the `expected` version."""

    @abstractmethod
    async def rows(self, keys: Iterable[str]) -> list[KVRow]:
        """The stored records of the keys that exist."""

    @abstractmethod
    async def rows_from(self, prefix: str) -> list[KVRow]:
        """The stored records whose keys begin with `prefix`, by key."""

    @abstractmethod
    async def put(self, key: str, data: bytes, expected: int | None) -> int | None:
        """Store JSON `data`. Returns its version; None within a transaction, which has it at its end."""


class KVManager(KVAccess):
    """JSON values in the file at `path`, created at the first write. With `durable` they survive a power loss."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        super().__init__(KVFile(path, durable=durable))

    def transaction(self) -> KVTransaction:
        """Begin a transaction: `async with kv.transaction() as t`. All of its changes are written, or none."""
        return KVTransaction(self._file)

    async def delete(self, key: str, *, expected: int | None = None) -> bool:
        """Delete the key; return whether it existed. Raises `KVConflict` unless it had the `expected` version."""
        changes: dict[str, bytes | None] = {key: None}
        return (await asyncio.to_thread(self._file.commit, changes, _only(key, expected))).deleted > 0

    async def check(self) -> None:
        """Raises `KVDamaged` if the file is damaged. Reads the whole file."""
        await asyncio.to_thread(self._file.check)

    async def set_aside(self) -> Path:
        """Move a damaged file aside and return its new path. The next write creates a new file.

        For data that can be rebuilt from something else. Raises `KVBusy` while another process writes.
        """
        return await asyncio.to_thread(self._file.set_aside)

    async def aclose(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._file.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def rows(self, keys: Iterable[str]) -> list[KVRow]:
        wanted = list(keys)
        return await asyncio.to_thread(self._file.read, lambda db: self._file.rows_of(db, wanted), [])

    async def rows_from(self, prefix: str) -> list[KVRow]:
        return await asyncio.to_thread(self._file.read, lambda db: self._file.rows_with_prefix(db, prefix), [])

    async def put(self, key: str, data: bytes, expected: int | None) -> int:
        return (await asyncio.to_thread(self._file.commit, {key: data}, _only(key, expected))).version


class KVTransaction(KVAccess):
    """Reads a snapshot and its own changes. Writes the changes at its end, all or none.

    Raises `KVConflict` at the end if a key that was read by name has changed since; results of a scan are not checked.
    Nothing is locked until then. An exception inside leaves the file unchanged.
    """

    def __init__(self, file: KVFile) -> None:
        super().__init__(file)
        self._db: sqlite3.Connection | None = None
        self._opened = False
        self._changes: dict[str, bytes | None] = {}
        self._expected: dict[str, int] = {}
        self.version: int | None = None
        """The version of all records that it wrote, after its end."""

    async def delete(self, key: str, *, expected: int | None = None) -> bool:
        """Delete the key at the end; return whether it existed. Raises `KVConflict` for another version."""
        there = bool(await self.rows([key]))
        self._expect(key, expected)
        self._changes[key] = None
        return there

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            await asyncio.to_thread(self._db.close)
            self._db = None
        if kind is None and self._changes:
            done = await asyncio.to_thread(self._file.commit, self._changes, self._expected)
            self.version = done.version

    async def rows(self, keys: Iterable[str]) -> list[KVRow]:
        wanted = list(keys)
        found = {row.key: row for row in await self._ask(lambda db: self._file.rows_of(db, wanted))}
        for key in wanted:
            self._expected.setdefault(key, found[key].version if key in found else ABSENT)
        return self._with_changes(found, [key for key in wanted if key in self._changes])

    async def rows_from(self, prefix: str) -> list[KVRow]:
        found = {row.key: row for row in await self._ask(lambda db: self._file.rows_with_prefix(db, prefix))}
        return self._with_changes(found, [key for key in self._changes if key.startswith(prefix)])

    def _with_changes(self, found: dict[str, KVRow], changed: Iterable[str]) -> list[KVRow]:
        for key in changed:
            data, old = self._changes[key], found.pop(key, None)
            if data is not None:
                found[key] = KVRow(key, data, old.version if old else ABSENT)
        return sorted(found.values(), key=lambda row: to_bytes(row.key))

    async def put(self, key: str, data: bytes, expected: int | None) -> None:
        self._expect(key, expected)
        self._changes[key] = data

    def _expect(self, key: str, expected: int | None) -> None:
        if expected is not None and self._expected.setdefault(key, expected) != expected:
            raise KVConflict(key, expected=expected, found=self._expected[key])

    async def _ask(self, ask: Callable[[sqlite3.Connection], list[KVRow]]) -> list[KVRow]:
        if not self._opened:
            self._db, self._opened = await asyncio.to_thread(self._file.snapshot), True
        return [] if self._db is None else await asyncio.to_thread(ask, self._db)


def encode(key: str, value: Any) -> bytes:
    """The value as JSON. Raises `KVError` for a value that JSON cannot represent exactly."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise KVError(f"`{key!r:.80}` cannot be stored: {error}: expected a JSON value") from error


def _record(row: KVRow) -> Record:
    return Record(row.key, json.loads(row.data), row.version)


def _only(key: str, expected: int | None) -> dict[str, int]:
    return {} if expected is None else {key: expected}
