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
_Q4_0, _Q4_1, _Q8_0, _Q4_K, _Q6_K = 2, 3, 8, 12, 14
_BLOCKS = {_Q4_0: (32, 18), _Q4_1: (32, 20), _Q8_0: (32, 34), _Q4_K: (256, 144), _Q6_K: (256, 210)}
"""Values and bytes of a block, by kind of quantization."""


class Gguf:
    """The metadata of a GGUF file, and its tensors as float32 when asked for."""

    def __init__(self, path: Path) -> None:
        """Read the header. Raises `ConfigError` if `path` is not a GGUF file."""
        self.path = path
        self.meta = read_pairs(path, ("",))
        layout = read_layout(path)
        self._tensors = {tensor.name: tensor for tensor in layout.tensors}
        self._start = layout.data_start
        self._data = np.memmap(path, dtype=np.uint8, mode="r")

    @property
    def names(self) -> list[str]:
        """The names of its tensors."""
        return list(self._tensors)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str) -> np.ndarray:
        """The tensor as float32. Raises `ValueError` for a kind of quantization that is not known here."""
        tensor = self._tensors[name]
        shape = tensor.sizes[::-1]
        values = int(np.prod(shape))
        return _floats(self._data, self._start + tensor.offset, values, tensor.kind, name).reshape(shape)


def _floats(data: np.ndarray, at: int, values: int, kind: int, name: str) -> np.ndarray:
    if kind == _TENSOR_F32:
        return data[at : at + 4 * values].view(np.float32).copy()
    if kind == _TENSOR_F16:
        return data[at : at + 2 * values].view(np.float16).astype(np.float32)
    if kind not in _BLOCKS:
        raise ValueError(f"`{name}` has type {kind}: expected F32, F16, Q4_0, Q4_1, Q8_0, Q4_K or Q6_K")
    per_block, size = _BLOCKS[kind]
    blocks = data[at : at + values // per_block * size].reshape(-1, size)
    return {_Q4_K: _from_q4_k, _Q6_K: _from_q6_k}.get(kind, _from_small_blocks)(blocks).reshape(-1)


def _from_small_blocks(blocks: np.ndarray) -> np.ndarray:
    """Q4_0, Q4_1 and Q8_0: 32 values that share one scale. Their sizes tell them apart."""
    scale = _half(blocks[:, :2])
    if blocks.shape[1] == _BLOCKS[_Q8_0][1]:
        return blocks[:, 2:].copy().view(np.int8).astype(np.float32) * scale
    halves = blocks[:, -16:]
    nibbles = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32)
    low = -8 * scale if blocks.shape[1] == _BLOCKS[_Q4_0][1] else _half(blocks[:, 2:4])
    return nibbles * scale + low


def _from_q4_k(blocks: np.ndarray) -> np.ndarray:
    """256 values in eight groups; each group has a 6-bit scale and a 6-bit minimum, packed in 12 bytes."""
    packed = blocks[:, 4:16]
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=1).astype(np.float32)
    minima = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=1).astype(np.float32)
    quants = blocks[:, 16:].reshape(-1, 4, 32)
    groups = np.stack([quants & 15, quants >> 4], axis=2).reshape(-1, 8, 32).astype(np.float32)
    scale, minimum = _half(blocks[:, :2]) * scales, _half(blocks[:, 2:4]) * minima
    return groups * scale[:, :, None] - minimum[:, :, None]


def _from_q6_k(blocks: np.ndarray) -> np.ndarray:
    """256 values of 6 bits (four in one array, two in another), with a signed scale for every 16."""
    low = blocks[:, :128].reshape(-1, 2, 2, 32)
    low = np.concatenate([low & 15, low >> 4], axis=2)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], dtype=np.uint8).reshape(1, 1, 4, 1)
    quants = (low | (high & 3) << 4).astype(np.float32) - 32
    scales = blocks[:, 192:208].copy().view(np.int8).astype(np.float32) * _half(blocks[:, 208:])
    return quants.reshape(-1, 16, 16) * scales[:, :, None]


def _half(data: np.ndarray) -> np.ndarray:
    return data.copy().view(np.float16).astype(np.float32)


def write_adapter(path: Path, tensors: Mapping[str, np.ndarray], meta: Mapping[str, str | float | int]) -> None:
    """An adapter file, its tensors as float16. The file is whole or not there."""
    held = {name: np.ascontiguousarray(tensor, dtype=np.float16) for name, tensor in tensors.items()}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(held), len(meta))
    head += b"".join(_text(key) + _typed(value) for key, value in meta.items())
    offset = 0
    for name, tensor in held.items():
        dims = tensor.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, _TENSOR_F16, offset)
        offset += _padded(tensor.nbytes)
    part = path.with_suffix(path.suffix + ".part")
    with part.open("wb") as file:
        file.write(head.ljust(_padded(len(head)), b"\0"))
        for tensor in held.values():
            file.write(tensor.tobytes().ljust(_padded(tensor.nbytes), b"\0"))
    part.replace(path)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: str | float | int) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    kind, form = (_F32, "f") if isinstance(value, float) else (_U32, "I")
    return struct.pack(f"<I{form}", kind, value)
