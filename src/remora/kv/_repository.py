"""`TypedKVRepository`: pydantic models by id, under keys with a common prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from remora.errors import KVError, KVRecordInvalid
from remora.kv._file import KVRow
from remora.kv._manager import KVAccess, KVManager, encode

Model = TypeVar("Model", bound=BaseModel)


class Versioned(NamedTuple, Generic[Model]):
    """A record, and the version to pass as `expected` when it is saved again."""

    value: Model
    version: int


class TypedKVRepository(Generic[Model]):
    """Models in a store, or in a transaction of it, each under `prefix` and its id.

    The model is named in brackets (`TypedKVRepository[NodeState](kv, prefix="node:")`), or passed with a call.
    """

    def __init__(self, storage: KVAccess, prefix: str = "", model: type[Model] | None = None) -> None:
        self._storage = storage
        self._prefix = prefix
        self._model = model

    async def save(self, id_: str, record: Model, *, expected: int | None = None) -> int | None:
        """Save the record; return its version (None within a transaction, which has it at its end).

        Raises `KVConflict` unless the stored version was `expected`, and `KVError` for a value that JSON cannot
        represent.
        """
        key = self._prefix + id_
        return await self._storage.put(key, encode(key, record.model_dump(mode="json")), expected)

    async def save_many(self, records: Mapping[str, Model]) -> None:
        """Save all records, or none."""
        if isinstance(self._storage, KVManager):
            async with self._storage.transaction() as transaction:
                await TypedKVRepository[Model](transaction, self._prefix).save_many(records)
        else:
            for id_, record in records.items():
                await self.save(id_, record)

    async def load(self, id_: str, model: type[Model] | None = None) -> Model | None:
        """The record, or None. Raises `KVRecordInvalid` if it does not match the model."""
        found = await self.load_versioned(id_, model)
        return None if found is None else found.value

    async def load_versioned(self, id_: str, model: type[Model] | None = None) -> Versioned[Model] | None:
        """The record with its version, or None."""
        kind = self._kind(model)
        rows = await self._storage.rows([self._prefix + id_])
        return Versioned(_load(kind, rows[0]), rows[0].version) if rows else None

    async def load_many(self, ids: Iterable[str], model: type[Model] | None = None) -> dict[str, Model]:
        """The records that exist, by id, in the order of `ids`."""
        kind, wanted = self._kind(model), list(ids)
        rows = {row.key: row for row in await self._storage.rows([self._prefix + id_ for id_ in wanted])}
        return {id_: _load(kind, rows[key]) for id_ in wanted if (key := self._prefix + id_) in rows}

    async def list_all(self, model: type[Model] | None = None) -> list[Model]:
        """All records of this prefix, by id."""
        kind = self._kind(model)
        return [_load(kind, row) for row in await self._storage.rows_from(self._prefix)]

    async def list_ids(self) -> list[str]:
        """The ids of all records of this prefix."""
        return [row.key.removeprefix(self._prefix) for row in await self._storage.rows_from(self._prefix)]

    async def delete(self, id_: str, *, expected: int | None = None) -> bool:
        """Delete the record; return whether it existed. Raises `KVConflict` as `save` does."""
        return await self._storage.delete(self._prefix + id_, expected=expected)

    def _kind(self, model: type[Model] | None) -> type[Model]:
        named: tuple[Any, ...] = get_args(getattr(self, "__orig_class__", None))
        kind = model or self._model or (named[0] if named and isinstance(named[0], type) else None)
        if kind is None:
            raise KVError(
                "Nothing says what a record is: expected `TypedKVRepository[Model](…)` or a model in the call"
            )
        return kind


def _load(kind: type[Model], row: KVRow) -> Model:
    try:
        return kind.model_validate_json(row.data)
    except ValidationError as error:
        raise KVRecordInvalid(row.key, model=kind.__name__, problems=_problems(error)) from error


def _problems(error: ValidationError) -> list[str]:
    found = error.errors(include_url=False, include_input=False)
    return [f"`{'.'.join(map(str, each['loc'])) or '$'}`: {each['msg']}" for each in found]
