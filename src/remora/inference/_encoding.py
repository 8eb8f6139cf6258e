"""Re-encodes weights of a model: the same numbers except for rounding, converted once, much faster to run.

In the downloaded file each block has a scale and a minimum (Q4_1), for which llama.cpp has no fast code for prompt
processing. For symmetric blocks (Q4_0) it has. See docs/decisions/0020.

    Q4_1: 32 numbers  scale:f16  min:f16  16 bytes, low nibbles first     number = nibble * scale + min
    Q4_0: 32 numbers  scale:f16           16 bytes, low nibbles first     number = (nibble - 8) * scale
"""

from __future__ import annotations

import os
import struct
import tempfile
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from remora.errors import ConfigError, MissingExtra
from remora.gguf import GgufLayout, GgufTensor, read_layout
from remora.inference._weights import Weights, download_lock, look, sha256_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Q4_0, _Q4_1, _Q8_0 = 2, 3, 8
_BLOCK = 32
_BYTES = {0: (1, 4), 1: (1, 2), _Q4_0: (_BLOCK, 18), _Q4_1: (_BLOCK, 20), _Q8_0: (_BLOCK, 34)}
"""Tensor types: (numbers, bytes) per block."""
_STEPS = (8.0, 8.5, 7.5, 7.0)
"""Candidate divisors of a block's largest number. The first is the usual one."""


def encode(cache: Path, source: Path, weights: Weights) -> Path:
    """Re-encode `source` into the cache, unless it is there and valid. Blocking. Raises `ConfigError`."""
    with download_lock(cache, weights):
        found = look(cache, weights)
        if found.state != "ready":
            with tempfile.TemporaryDirectory(dir=found.path.parent, prefix=".encoding-") as place:
                output = Path(place, weights.file)
                write_q4_0(source, output)
                if (digest := sha256_of(output)) != (wanted := weights.sha256 or ""):
                    raise ConfigError(
                        f"`{weights.file}`, re-encoded from `{source}`, has SHA-256 {digest[:12]}…, "
                        f"expected {wanted[:12]}…. It was not kept",
                        hint=f"`server.gguf: {source}` serves the downloaded weights",
                    )
                output.replace(found.path)
        return found.path


def write_q4_0(source: Path, target: Path) -> None:
    """Write the model of `source` with every Q4_1 tensor as Q4_0. Other tensors and metadata are copied."""
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtra("numpy, which prepares the embedded model's weights,", extra="embedded") from error
    layout = read_layout(source)
    held = np.memmap(source, dtype=np.uint8, mode="r")
    with target.open("wb") as file:
        file.write(held[: layout.pairs_end].tobytes() + _infos(layout))
        for tensor in layout.tensors:
            file.write(bytes(-file.tell() % layout.alignment))
            first = layout.data_start + tensor.offset
            data = held[first : first + _size(tensor, tensor.kind)]
            file.write((_to_q4_0(data) if tensor.kind == _Q4_1 else data).tobytes())
        file.flush()
        os.fsync(file.fileno())


def _to_q4_0(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert Q4_1 blocks to Q4_0, each with the candidate scale that loses least.

    A column is a block. Only elementwise operations are used, whose results are the same on every machine.
    """
    import numpy as np

    blocks = data.reshape(-1, _BYTES[_Q4_1][1]).T
    scale, least = (blocks[at : at + 2].T.copy().view(np.float16).T.astype(np.float32) for at in (0, 2))
    numbers = np.concatenate([blocks[4:] & 15, blocks[4:] >> 4]).astype(np.float32) * scale + least
    widest = np.take_along_axis(numbers, np.abs(numbers).argmax(axis=0)[None], axis=0)
    best, kept, lost = np.zeros_like(numbers), np.zeros_like(widest, np.float16), np.full_like(widest, np.inf)
    for steps in _STEPS:
        tried = (widest / np.float32(-steps)).astype(np.float16)
        by = np.where(tried == 0, np.float16(1), tried).astype(np.float32)
        whole = np.rint(numbers / by).clip(-8, 7)
        off = sum(np.square(whole * by - numbers), np.float32(0))
        better = off < lost
        for chosen, new in ((best, whole), (kept, tried), (lost, off)):
            np.copyto(chosen, new, where=better)
    halves = (best + 8).astype(np.uint8)
    packed = halves[: _BLOCK // 2] | halves[_BLOCK // 2 :] << 4
    return np.concatenate([kept.T.copy().view(np.uint8), packed.T], axis=1)


def _infos(layout: GgufLayout) -> bytes:
    """The tensor infos of the new file."""
    infos, offset = b"", 0
    for tensor in layout.tensors:
        kind = _Q4_0 if tensor.kind == _Q4_1 else tensor.kind
        name = tensor.name.encode()
        infos += struct.pack("<Q", len(name)) + name
        infos += struct.pack(f"<I{len(tensor.sizes)}QIQ", len(tensor.sizes), *tensor.sizes, kind, offset)
        offset += -(-_size(tensor, kind) // layout.alignment) * layout.alignment
    return infos


def _size(tensor: GgufTensor, kind: int) -> int:
    if kind not in _BYTES:
        raise ConfigError(f"`{tensor.name:.80}` has type {kind}, which cannot be re-encoded")
    numbers, size = _BYTES[kind]
    return prod(tensor.sizes) // numbers * size
