"""The base model in torch, frozen, with an adapter on every linear layer of all or the last blocks.

Rotary positions rotate the pairs of values that the GGUF file stores them for: neighbours in a llama-type file, values
half a head apart in a qwen2 file. So the adapter's rows are already in the file's order, and nothing is permuted on the
way in or out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from remora_lab.trainer.tensors import Gguf

LINEAR = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
"""The layers of a block that are adapted, as GGUF files name them."""


class Frozen(nn.Module):
    """A linear layer that does not learn."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class Adapted(Frozen):
    """A frozen linear layer and what is learned beside it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rank: int, scale: float) -> None:
        super().__init__(weight, bias)
        out, into = weight.shape
        self.a = nn.Parameter(torch.randn(rank, into) / math.sqrt(into))
        self.b = nn.Parameter(torch.zeros(out, rank))
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        # Scaled where it is narrow, and added in the same pass: on a CPU that is a tenth of a step.
        narrow = F.linear(x, self.a.to(x.dtype)) * self.scale
        wide = super().forward(x)
        return torch.addmm(wide.flatten(0, -2), narrow.flatten(0, -2), self.b.to(x.dtype).t()).view(wide.shape)


class Block(nn.Module):
    """One layer: attention, then the feed-forward part."""

    def __init__(self, gguf: Gguf, number: int, rank: int, scale: float, dtype: torch.dtype) -> None:
        super().__init__()
        kind = gguf.meta["general.architecture"]
        self.heads = int(gguf.meta[f"{kind}.attention.head_count"])
        self.shared = self.heads // int(gguf.meta[f"{kind}.attention.head_count_kv"])
        self.eps = float(gguf.meta[f"{kind}.attention.layer_norm_rms_epsilon"])
        self.rotate = ROTATIONS[kind]
        self.linear = nn.ModuleDict(
            {name: _linear(gguf, f"blk.{number}.{name}", dtype, rank, scale) for name in LINEAR}
        )
        for name in ("attn_norm", "ffn_norm"):
            self.register_buffer(name, _load(gguf, f"blk.{number}.{name}.weight", torch.float32), persistent=False)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        x = x + self._attention(_norm(x, self.attn_norm, self.eps), turns, mask)
        y = _norm(x, self.ffn_norm, self.eps)
        return x + self.linear["ffn_down"](F.silu(self.linear["ffn_gate"](y)) * self.linear["ffn_up"](y))

    def _attention(self, x: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        rows, length, _ = x.shape
        q, k, v = (self._split(self.linear[name](x)) for name in ("attn_q", "attn_k", "attn_v"))
        k, v = (each.repeat_interleave(self.shared, dim=1) for each in (self.rotate(k, turns), v))
        seen = F.scaled_dot_product_attention(self.rotate(q, turns), k, v, attn_mask=mask, is_causal=mask is None)
        return self.linear["attn_output"](seen.transpose(1, 2).reshape(rows, length, -1))

    def _split(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        size = self.linear["attn_q"].weight.shape[0] // self.heads
        return x.view(rows, length, width // size, size).transpose(1, 2)


class BaseModel(nn.Module):
    """A llama-type or qwen2 model from a GGUF file; only its adapter learns."""

    def __init__(
        self, gguf: Gguf, *, rank: int, alpha: float, dtype: torch.dtype, seed: int = 0, blocks: int | None = None
    ) -> None:
        """`blocks` is how many of the last blocks get an adapter; without it, all do."""
        super().__init__()
        torch.manual_seed(seed)
        meta = gguf.meta
        kind = self.architecture = str(meta["general.architecture"])
        if kind not in ROTATIONS:
            raise ValueError(f"`{gguf.path}` has the architecture `{kind}`, expected {' or '.join(ROTATIONS)}")
        self.dtype, self.rank, self.alpha = dtype, rank, alpha
        count = int(meta[f"{kind}.block_count"])
        first = 0 if blocks is None else max(0, count - blocks)
        self.blocks = nn.ModuleList(
            Block(gguf, number, rank if number >= first else 0, alpha / rank, dtype) for number in range(count)
        )
        self.eps = float(meta[f"{kind}.attention.layer_norm_rms_epsilon"])
        head = "output.weight" if "output.weight" in gguf else "token_embd.weight"
        self.register_buffer("embedding", _load(gguf, "token_embd.weight", dtype), persistent=False)
        self.register_buffer("norm", _load(gguf, "output_norm.weight", torch.float32), persistent=False)
        same = head == "token_embd.weight"
        self.register_buffer("head", self.embedding if same else _load(gguf, head, dtype), persistent=False)
        whole = self.blocks[0].linear["attn_q"].weight.shape[0] // self.blocks[0].heads
        size = int(meta.get(f"{kind}.rope.dimension_count", whole))
        base = float(meta.get(f"{kind}.rope.freq_base", 10000.0))
        self.register_buffer("speeds", base ** (-torch.arange(0, size, 2).float() / size), persistent=False)

    @torch.no_grad()
    def begin_with(self, adapter: Gguf) -> None:
        """Take the numbers of an adapter. Raises `ValueError` if it does not fit this model and rank."""
        alpha = float(adapter.meta.get("adapter.lora.alpha", self.alpha))
        for stem, layer in self.adapted():
            for part, own, scale in (("lora_a", layer.a, 1.0), ("lora_b", layer.b, alpha / self.alpha)):
                found = adapter.tensor(f"{stem}.{part}") if f"{stem}.{part}" in adapter else None
                if found is None or found.shape != tuple(own.shape):
                    raise ValueError(
                        f"`{adapter.path}` cannot be gone on from: `{stem}.{part}` is "
                        f"{'missing' if found is None else found.shape}, expected {tuple(own.shape)}"
                    )
                own.copy_(torch.from_numpy(found) * scale)

    def adapted(self) -> Iterator[tuple[str, Adapted]]:
        """The layers that learn, under their names in a GGUF file."""
        for number, block in enumerate(self.blocks):
            for name in LINEAR:
                if isinstance(block.linear[name], Adapted):
                    yield f"blk.{number}.{name}.weight", block.linear[name]

    def hidden(self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """The last hidden state of every token. Without positions and a mask, each sequence is one text."""
        places = torch.arange(ids.shape[1], device=ids.device)[None] if positions is None else positions
        angles = places.float()[:, None, :, None] * self.speeds
        turns = (angles.cos(), angles.sin())
        x = F.embedding(ids, self.embedding)
        for block in self.blocks:
            x = block(x, turns, mask)
        return _norm(x, self.norm, self.eps)

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.head).float()

    def adapter(self) -> Iterator[tuple[str, np.ndarray]]:
        """The adapter's tensors under the names that llama.cpp looks for."""
        for stem, layer in self.adapted():
            yield f"{stem}.lora_a", layer.a.detach().float().cpu().numpy()
            yield f"{stem}.lora_b", layer.b.detach().float().cpu().numpy()


def learned_shape(adapter: Gguf) -> tuple[int, int]:
    """The rank of an adapter, and how many blocks it has."""
    queries = [name for name in adapter.names if name.endswith("attn_q.weight.lora_a")]
    return adapter.tensor(queries[0]).shape[0], len(queries)


def fast_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the device multiplies it faster than float32: a GPU, or a CPU with instructions for it."""
    cpu = getattr(torch.cpu, "get_capabilities", dict)()  # torch before 2.10 does not tell
    fast = device.type == "cuda" or cpu.get("avx512_bf16") or cpu.get("amx_bf16")
    return torch.bfloat16 if fast else torch.float32


def _load(gguf: Gguf, name: str, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(gguf.tensor(name)).to(dtype)


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def _linear(gguf: Gguf, name: str, dtype: torch.dtype, rank: int, scale: float) -> Frozen:
    """The layer with an adapter of this rank; frozen if that is 0."""
    bias = _load(gguf, f"{name}.bias", dtype) if f"{name}.bias" in gguf else None
    weight = _load(gguf, f"{name}.weight", dtype)
    return Adapted(weight, bias, rank, scale) if rank else Frozen(weight, bias)


def _rotate_neighbours(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = turns
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2).to(x.dtype)


def _rotate_halves(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = turns
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1).to(x.dtype)


ROTATIONS = {"llama": _rotate_neighbours, "qwen2": _rotate_halves}
"""Which pairs of a head's values are rotated together, by the architecture that the GGUF file names."""
