"""What a GGUF file says about itself: only the metadata at its beginning is read, and no size in it is believed.

    "GGUF"  version:u32  tensors:u64  pairs:u64  then each pair: key:string  type:u32  value
    then each tensor: name:string  dimensions:u32  sizes:u64…  kind:u32  offset:u64  then, aligned, their data

A string is its length (u64) and its bytes; an array is its items' type (u32), its length (u64) and the items. All
numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from remora.errors import ConfigError

MAX_PAIRS = 65_536
MAX_HEADER = 512 * 1024 * 1024
"""Bytes of metadata that are read at most; real files have a few million."""
MAX_DIMENSIONS = 4
_ALIGNMENT = 32
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_PREFIX = "tokenizer.ggml."


@dataclass(frozen=True)
class GgufTokenizer:
    """What a GGUF file says about its tokenizer."""

    model: str
    pre: str
    tokens: list[str] = field(repr=False)
    merges: list[str] = field(repr=False)
    types: list[int] = field(repr=False)
    """By token: 3 is a control token, 4 one that a user defined; empty where the file does not say."""


@dataclass(frozen=True)
class GgufTensor:
    """A tensor's place in a file, and how its numbers are written there."""

    name: str
    sizes: tuple[int, ...]
    """The innermost dimension first."""
    kind: int
    offset: int
    """Behind the beginning of all data."""


@dataclass(frozen=True)
class GgufLayout:
    """Where things are in a GGUF file."""

    pairs_end: int
    tensors: tuple[GgufTensor, ...]
    data_start: int
    alignment: int


class _Malformed(Exception):
    """The bytes are not what the format says."""


def read_tokenizer(path: Path) -> GgufTokenizer:
    """The tokenizer in `path`. Raises `ConfigError` if the file is not GGUF, is cut short, or holds none."""
    try:
        pairs = _read(path, (_PREFIX,))
        found = {key.removeprefix(_PREFIX): value for key, value in pairs.items()}
        return GgufTokenizer(
            model=_text(found, "model"),
            pre=_text(found, "pre", default=""),
            tokens=_list(found, "tokens", str),
            merges=_list(found, "merges", str, default=[]),
            types=_list(found, "token_type", int, default=[]),
        )
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {error.strerror or error}") from error
    except _Malformed as error:
        raise ConfigError(
            f"`{path}` holds no tokenizer that can be read: {error}",
            hint="Name a GGUF file of version 2 or 3, or a `tokenizer.json`",
        ) from error


def read_pairs(path: Path, prefixes: tuple[str, ...]) -> dict[str, Any]:
    """The metadata in `path` whose keys begin so. Raises `ConfigError` if the file is not GGUF or is cut short."""
    with _told(path):
        return _read(path, prefixes)


def read_layout(path: Path) -> GgufLayout:
    """Where the metadata ends and the tensors are. Raises `ConfigError` if the file is not GGUF or is cut short."""
    with _told(path), path.open("rb") as file:
        header = _Header(file, path.stat().st_size)
        alignment = header.pairs(("general.alignment",)).get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise _Malformed(f"`general.alignment` is {alignment!r:.80}")
        end = file.tell()
        tensors = tuple(header.tensor() for _ in range(header.tensors))
        return GgufLayout(end, tensors, -(-file.tell() // alignment) * alignment, alignment)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What is wrong with the file is a `ConfigError` that names it."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {error.strerror or error}") from error
    except _Malformed as error:
        raise ConfigError(f"`{path}` is not a GGUF file that can be read: {error}") from error


def _read(path: Path, prefixes: tuple[str, ...]) -> dict[str, Any]:
    with path.open("rb") as file:
        return _Header(file, path.stat().st_size).pairs(prefixes)


class _Header:
    """Reads values one after the other, and never more than the file can hold."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = min(size, MAX_HEADER)
        self.tensors = 0

    def pairs(self, prefixes: tuple[str, ...]) -> dict[str, Any]:
        """The metadata whose keys begin so."""
        if self._take(4) != b"GGUF":
            raise _Malformed("it does not begin with `GGUF`")
        version, self.tensors, pairs = self._numbers("IQQ")
        if version not in _VERSIONS:
            raise _Malformed(f"its version is {version}, expected 2 or 3")
        if pairs > MAX_PAIRS:
            raise _Malformed(f"it claims {pairs} pairs of metadata")
        found = {}
        for _ in range(pairs):
            key, value = self._string(), self._value()
            if key.startswith(prefixes):
                found[key] = value
        return found

    def tensor(self) -> GgufTensor:
        """The next tensor; only after the metadata."""
        name, (dimensions,) = self._string(), self._numbers("I")
        if dimensions > MAX_DIMENSIONS:
            raise _Malformed(f"`{name:.80}` claims {dimensions} dimensions")
        return GgufTensor(name, self._numbers(f"{dimensions}Q"), *self._numbers("IQ"))

    def _value(self) -> Any:
        (kind,) = self._numbers("I")
        if kind == _STRING:
            return self._string()
        return self._array() if kind == _ARRAY else self._numbers(_format(kind))[0]

    def _array(self) -> list[Any]:
        kind, length = self._numbers("IQ")
        if kind == _STRING:
            self._need(8 * length)
            return [self._string() for _ in range(length)]
        one = _format(kind)
        return list(struct.unpack(f"<{length}{one}", self._take(length * struct.calcsize("<" + one))))

    def _string(self) -> str:
        (length,) = self._numbers("Q")
        return self._take(length).decode(errors="replace")

    def _numbers(self, format_: str) -> tuple[Any, ...]:
        return struct.unpack("<" + format_, self._take(struct.calcsize("<" + format_)))

    def _take(self, length: int) -> bytes:
        self._need(length)
        data = self._file.read(length)
        self._left -= length
        if len(data) != length:
            raise _Malformed("it ends in the middle of its metadata")
        return data

    def _need(self, length: int) -> None:
        if length > self._left:
            raise _Malformed(f"a value of {length} bytes is claimed where {self._left} are left")


def _format(kind: int) -> str:
    if kind not in _NUMBERS:
        raise _Malformed(f"a value is of the unknown type {kind}")
    return _NUMBERS[kind]


def _text(found: dict[str, Any], name: str, default: str | None = None) -> str:
    value = found.get(name, default)
    if not isinstance(value, str):
        raise _Malformed(f"`{_PREFIX}{name}` is missing or no text")
    return value


def _list(found: dict[str, Any], name: str, kind: type, default: list[Any] | None = None) -> list[Any]:
    value = found.get(name) or default
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise _Malformed(f"`{_PREFIX}{name}` is missing or not what it should be")
    return value
