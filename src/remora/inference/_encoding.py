"""The default weights in another encoding: the same numbers but for rounding, made once, read much faster.

The file that is fetched has four bits a number (Q4_1), an encoding for which llama.cpp has no fast code for whole
prompts. With eight (Q8_0) it has. See docs/decisions/0019.

    Q4_1: 32 numbers  scale:f16  least:f16  16 bytes, the lower halves first     number = half * scale + least
    Q8_0: 32 numbers  scale:f16  32 signed bytes                                 number = byte * scale
"""

from __future__ import annotations

import os
import struct
import tempfile
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from remora.errors import ConfigError, MissingExtra
from remora.inference._gguf import GgufLayout, GgufTensor, read_layout
from remora.inference._weights import SMOLLM2, Weights, alone, look, sha256_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SERVED = replace(
    SMOLLM2,
    file="SmolLM2-135M-Instruct.Q8_0.gguf",
    size=144_811_072,
    sha256="5ccd984c3aeeb90feecc8db85b7bd799db41abdf2345317ccbf95f2a977f5d2b",
)
"""What becomes of `SMOLLM2`: the same bytes on every machine."""
_Q4_1, _Q8_0 = 3, 8
_BLOCK = 32
_BYTES = {0: (1, 4), 1: (1, 2), _Q4_1: (_BLOCK, 20), _Q8_0: (_BLOCK, 34)}
"""Kinds of tensors: how many numbers take how many bytes."""


def encode(cache: Path, source: Path, weights: Weights = SERVED) -> Path:
    """`source`, encoded anew, in the cache; made if it is not there or damaged. Blocking. Raises `ConfigError`."""
    with alone(cache, weights):
        found = look(cache, weights)
        if found.state != "ready":
            with tempfile.TemporaryDirectory(dir=found.path.parent, prefix=".encoding-") as place:
                made = Path(place, weights.file)
                write_eight_bits(source, made)
                if (digest := sha256_of(made)) != weights.sha256:
                    raise ConfigError(
                        f"`{weights.file}`, made of `{source}`, is not what it should be: SHA-256 {digest[:12]}…, "
                        f"expected {weights.sha256[:12]}…. It was not kept",
                        hint=f"`server.gguf: {source}` serves the weights as they were fetched",
                    )
                made.replace(found.path)
        return found.path


def write_eight_bits(source: Path, target: Path) -> None:
    """The model of `source` with every Q4_1 tensor as Q8_0. All others, and what it says about itself, are copied."""
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
            file.write((_eight_bits(data) if tensor.kind == _Q4_1 else data).tobytes())
        file.flush()
        os.fsync(file.fileno())


def _eight_bits(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Blocks of Q4_1 as blocks of Q8_0."""
    import numpy as np

    blocks = data.reshape(-1, _BYTES[_Q4_1][1])
    scale, least = (blocks[:, at : at + 2].copy().view(np.float16).astype(np.float32) for at in (0, 2))
    halves = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    numbers = halves.astype(np.float32) * scale + least
    wide = (np.abs(numbers).max(axis=1, keepdims=True) / np.float32(127)).astype(np.float16)
    by = wide.astype(np.float32)
    whole = np.rint(np.divide(numbers, by, out=np.zeros_like(numbers), where=by > 0)).clip(-127, 127).astype(np.int8)
    return np.concatenate([wide.view(np.uint8), whole.view(np.uint8)], axis=1)


def _infos(layout: GgufLayout) -> bytes:
    """Where each tensor stands in the new file."""
    told, offset = b"", 0
    for tensor in layout.tensors:
        kind = _Q8_0 if tensor.kind == _Q4_1 else tensor.kind
        name = tensor.name.encode()
        told += struct.pack("<Q", len(name)) + name
        told += struct.pack(f"<I{len(tensor.sizes)}QIQ", len(tensor.sizes), *tensor.sizes, kind, offset)
        offset += -(-_size(tensor, kind) // layout.alignment) * layout.alignment
    return told


def _size(tensor: GgufTensor, kind: int) -> int:
    if kind not in _BYTES:
        raise ConfigError(f"`{tensor.name:.80}` is of the kind {kind}, which cannot be encoded anew")
    numbers, size = _BYTES[kind]
    return prod(tensor.sizes) // numbers * size
