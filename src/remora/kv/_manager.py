"""`KVManager` and `KVTransaction`: JSON values under keys, one by one or several at once."""

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
    """What a key holds."""

    key: str
    value: Any
    version: int


class KVAccess(ABC):
    """What a store and a transaction have in common: reading and changing what keys hold."""

    def __init__(self, file: KVFile) -> None:
        self._file = file

    async def get(self, key: str) -> Any:
        """The key's value; None where there is none."""
        found = await self.get_many([key])
        return found[key].value if key in found else None

    async def get_many(self, keys: Iterable[str]) -> dict[str, Record]:
        """What those of the keys hold that are there."""
        return {row.key: _record(row) for row in await self.rows(keys)}

    async def scan(self, prefix: str = "") -> list[Record]:
        """The records whose keys begin with `prefix`, by key."""
        return [_record(row) for row in await self.rows_from(prefix)]

    async def set(self, key: str, value: Any, *, expected: int | None = None) -> int | None:
        """The key holds `value`. Raises `KVConflict` unless its version was the `expected` one."""
        return await self.put(key, encode(key, value), expected)

    @abstractmethod
    async def delete(self, key: str, *, expected: int | None = None) -> bool:
        """The key is gone; gives whether it was there. Raises `KVConflict` unless it had the `expected` version."""

    @abstractmethod
    async def rows(self, keys: Iterable[str]) -> list[KVRow]:
        """What those of the keys hold that are there, as it lies in the file."""

    @abstractmethod
    async def rows_from(self, prefix: str) -> list[KVRow]:
        """The records whose keys begin with `prefix`, by key, as they lie in the file."""

    @abstractmethod
    async def put(self, key: str, data: bytes, expected: int | None) -> int | None:
        """The key holds the JSON `data`. Gives its version; None within a transaction, which has it once it ended."""


class KVManager(KVAccess):
    """JSON values in the file at `path`, made at the first write. With `durable` they survive a power loss."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        super().__init__(KVFile(path, durable=durable))

    def transaction(self) -> KVTransaction:
        """Changes that will be in the file together or not at all: `async with kv.transaction() as t`."""
        return KVTransaction(self._file)

    async def delete(self, key: str, *, expected: int | None = None) -> bool:
        """The key is gone; gives whether it was there. Raises `KVConflict` unless it had the `expected` version."""
        changes: dict[str, bytes | None] = {key: None}
        return (await asyncio.to_thread(self._file.commit, changes, _only(key, expected))).deleted > 0

    async def check(self) -> None:
        """Raises `KVDamaged` unless the whole file is in order. Takes as long as reading it."""
        await asyncio.to_thread(self._file.check)

    async def set_aside(self) -> Path:
        """The damaged file lies at the path that is returned; the next write begins a new one.

        For what can be made again from something else. Raises `KVBusy` while anybody else writes.
        """
        return await asyncio.to_thread(self._file.set_aside)

    async def aclose(self) -> None:
        """No file is held open."""
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
    """Reads see one moment and the transaction's own changes; these are written at its end, all or none.

    Raises `KVConflict` at the end if any key that was read by name has changed since; what a scan gave is not held
    against it. Nothing is locked until then. An exception inside leaves the file as it was.
    """

    def __init__(self, file: KVFile) -> None:
        super().__init__(file)
        self._db: sqlite3.Connection | None = None
        self._opened = False
        self._changes: dict[str, bytes | None] = {}
        self._expected: dict[str, int] = {}
        self.version: int | None = None
        """What all records that it wrote have, once it has ended."""

    async def delete(self, key: str, *, expected: int | None = None) -> bool:
        """It will be gone; gives whether it was there. Raises `KVConflict` unless it has the version `expected`."""
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
    """The value as JSON. Raises `KVError` for what JSON cannot hold exactly."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise KVError(f"`{key!r:.80}` cannot be kept: {error}: expected a JSON value") from error


def _record(row: KVRow) -> Record:
    return Record(row.key, json.loads(row.data), row.version)


def _only(key: str, expected: int | None) -> dict[str, int]:
    return {} if expected is None else {key: expected}
