"""Tensors of GGUF files as float32, and adapters written as GGUF. `remora.gguf` reads the header."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from remora.gguf import read_layout, read_pairs

_U32, _F32, _STRING = 4, 6, 8
_TENSOR_F32, _TENSOR_F16 = 0, 1
_ALIGNMENT = 32
_BLOCK = 32
"""Values per block in the supported quantization types."""
_BLOCK_BYTES = {2: 18, 3: 20, 8: 34}


class Gguf:
    """The metadata of a GGUF file, and its tensors as float32 on demand."""

    def __init__(self, path: Path) -> None:
        """Read the header. Raises `ConfigError` if `path` is not a GGUF file."""
        self.path = path
        self.meta = read_pairs(path, ("",))
        layout = read_layout(path)
        self._tensors = {tensor.name: tensor for tensor in layout.tensors}
        self._start = layout.data_start
        self._data = np.memmap(path, dtype=np.uint8, mode="r")

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str) -> np.ndarray:
        """The tensor as float32. Raises `ValueError` for an unsupported quantization type."""
        tensor = self._tensors[name]
        shape = tensor.sizes[::-1]
        values = int(np.prod(shape))
        return _floats(self._data, self._start + tensor.offset, values, tensor.kind, name).reshape(shape)


def _floats(data: np.ndarray, at: int, values: int, kind: int, name: str) -> np.ndarray:
    if kind == _TENSOR_F32:
        return data[at : at + 4 * values].view(np.float32).copy()
    if kind == _TENSOR_F16:
        return data[at : at + 2 * values].view(np.float16).astype(np.float32)
    if kind not in _BLOCK_BYTES:
        raise ValueError(f"`{name}` has type {kind}: expected F32, F16, Q4_0, Q4_1 or Q8_0")
    size = _BLOCK_BYTES[kind]
    blocks = data[at : at + values // _BLOCK * size].reshape(-1, size)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == 8:
        return (blocks[:, 2:].copy().view(np.int8).astype(np.float32) * scale).reshape(-1)
    halves = blocks[:, -16:]
    nibbles = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32)
    low = -8 * scale if kind == 2 else blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    return (nibbles * scale + low).reshape(-1)


def write_adapter(path: Path, tensors: Mapping[str, np.ndarray], meta: Mapping[str, str | float | int]) -> None:
    """Write an adapter file with float16 tensors, atomically."""
    held = {name: np.ascontiguousarray(tensor, dtype=np.float16) for name, tensor in tensors.items()}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(held), len(meta))
    head += b"".join(_text(key) + _typed(value) for key, value in meta.items())
    offset = 0
    for name, tensor in held.items():
        dims = tensor.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, _TENSOR_F16, offset)
        offset += _pad(tensor.nbytes)
    part = path.with_suffix(path.suffix + ".part")
    with part.open("wb") as file:
        file.write(head.ljust(_pad(len(head)), b"\0"))
        for tensor in held.values():
            file.write(tensor.tobytes().ljust(_pad(tensor.nbytes), b"\0"))
    part.replace(path)


def _pad(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: str | float | int) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    kind, form = (_F32, "f") if isinstance(value, float) else (_U32, "I")
    return struct.pack(f"<I{form}", kind, value)
