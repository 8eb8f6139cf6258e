"""Typed records under keys, in one SQLite file: the specification's *fsdantic*."""

from remora.kv._file import ABSENT, KVFile, KVRow
from remora.kv._manager import KVManager, KVTransaction, Record
from remora.kv._repository import TypedKVRepository, Versioned

__all__ = ["ABSENT", "KVFile", "KVManager", "KVRow", "KVTransaction", "Record", "TypedKVRepository", "Versioned"]
