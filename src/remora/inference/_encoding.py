"""The default weights in another encoding: the same numbers but for rounding, made once, read much faster.

In the file that is fetched each block of numbers has a scale and a least one (Q4_1), for which llama.cpp has no fast
code for whole prompts. For blocks that lie around zero (Q4_0) it has. See docs/decisions/0020.

    Q4_1: 32 numbers  scale:f16  least:f16  16 bytes, the lower halves first     number = half * scale + least
    Q4_0: 32 numbers  scale:f16             16 bytes, the lower halves first     number = (half - 8) * scale
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
from remora.gguf import GgufLayout, GgufTensor, read_layout
from remora.inference._weights import SMOLLM2, Weights, alone, look, sha256_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SERVED = replace(
    SMOLLM2,
    file="SmolLM2-135M-Instruct.Q4_0.gguf",
    size=91_726_912,
    sha256="afc1abb79675f7d9a40a8d07170e3db645fb36412609ba38c639ce8cb3348aab",
)
"""What becomes of `SMOLLM2`: the same bytes on every machine."""
_Q4_0, _Q4_1, _Q8_0 = 2, 3, 8
_BLOCK = 32
_BYTES = {0: (1, 4), 1: (1, 2), _Q4_0: (_BLOCK, 18), _Q4_1: (_BLOCK, 20), _Q8_0: (_BLOCK, 34)}
"""Kinds of tensors: how many numbers take how many bytes."""
_STEPS = (8.0, 8.5, 7.5, 7.0)
"""Into how many steps the widest number of a block may be divided. The first is the usual one."""


def encode(cache: Path, source: Path, weights: Weights = SERVED) -> Path:
    """`source`, encoded anew, in the cache; made if it is not there or damaged. Blocking. Raises `ConfigError`."""
    with alone(cache, weights):
        found = look(cache, weights)
        if found.state != "ready":
            with tempfile.TemporaryDirectory(dir=found.path.parent, prefix=".encoding-") as place:
                made = Path(place, weights.file)
                write_faster(source, made)
                if (digest := sha256_of(made)) != weights.sha256:
                    raise ConfigError(
                        f"`{weights.file}`, made of `{source}`, is not what it should be: SHA-256 {digest[:12]}…, "
                        f"expected {weights.sha256[:12]}…. It was not kept",
                        hint=f"`server.gguf: {source}` serves the weights as they were fetched",
                    )
                made.replace(found.path)
        return found.path


def write_faster(source: Path, target: Path) -> None:
    """The model of `source` with every Q4_1 tensor as Q4_0. All others, and what it says about itself, are copied."""
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
            file.write((_around_zero(data) if tensor.kind == _Q4_1 else data).tobytes())
        file.flush()
        os.fsync(file.fileno())


def _around_zero(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Blocks of Q4_1 as blocks of Q4_0, each with the scale of a few that loses least.

    A column is a block. Only operations on single numbers are used, whose results are the same on every machine.
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
    """Where each tensor stands in the new file."""
    told, offset = b"", 0
    for tensor in layout.tensors:
        kind = _Q4_0 if tensor.kind == _Q4_1 else tensor.kind
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
