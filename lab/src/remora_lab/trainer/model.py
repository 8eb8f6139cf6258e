"""The base model in torch, frozen, with an adapter on every linear layer.

Rotary embeddings rotate neighbouring values, which is the order of queries and keys in llama-type GGUF files. So the
adapter's rows are already in the file's order, and nothing is permuted on the way in or out.
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
"""The adapted layers of a block, by their GGUF names."""


class Adapted(nn.Module):
    """A frozen linear layer with a LoRA adapter."""

    def __init__(self, weight: Tensor, rank: int, scale: float) -> None:
        super().__init__()
        out, into = weight.shape
        self.register_buffer("weight", weight, persistent=False)
        self.a = nn.Parameter(torch.randn(rank, into) / math.sqrt(into))
        self.b = nn.Parameter(torch.zeros(out, rank))
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        learned = F.linear(F.linear(x, self.a.to(x.dtype)), self.b.to(x.dtype))
        return F.linear(x, self.weight) + learned * self.scale


class Block(nn.Module):
    """One layer: attention, then the feed-forward part."""

    def __init__(self, gguf: Gguf, number: int, rank: int, scale: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.heads = int(gguf.meta["llama.attention.head_count"])
        self.shared = self.heads // int(gguf.meta["llama.attention.head_count_kv"])
        self.eps = float(gguf.meta["llama.attention.layer_norm_rms_epsilon"])
        self.linear = nn.ModuleDict(
            {name: Adapted(_load(gguf, f"blk.{number}.{name}.weight", dtype), rank, scale) for name in LINEAR}
        )
        for name in ("attn_norm", "ffn_norm"):
            self.register_buffer(name, _load(gguf, f"blk.{number}.{name}.weight", torch.float32), persistent=False)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        x = x + self._attention(_norm(x, self.attn_norm, self.eps), turns)
        y = _norm(x, self.ffn_norm, self.eps)
        return x + self.linear["ffn_down"](F.silu(self.linear["ffn_gate"](y)) * self.linear["ffn_up"](y))

    def _attention(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        rows, length, _ = x.shape
        q, k, v = (self._split(self.linear[name](x)) for name in ("attn_q", "attn_k", "attn_v"))
        k, v = (each.repeat_interleave(self.shared, dim=1) for each in (_rotate(k, turns), v))
        seen = F.scaled_dot_product_attention(_rotate(q, turns), k, v, is_causal=True)
        return self.linear["attn_output"](seen.transpose(1, 2).reshape(rows, length, -1))

    def _split(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        size = self.linear["attn_q"].weight.shape[0] // self.heads
        return x.view(rows, length, width // size, size).transpose(1, 2)


class Llama(nn.Module):
    """A llama-type model from a GGUF file; only its adapter is trained."""

    def __init__(self, gguf: Gguf, *, rank: int, alpha: float, dtype: torch.dtype, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        meta = gguf.meta
        if meta["general.architecture"] != "llama":
            raise ValueError(f"`{gguf.path}` is of the architecture `{meta['general.architecture']}`, expected `llama`")
        self.dtype, self.rank, self.alpha = dtype, rank, alpha
        self.blocks = nn.ModuleList(
            Block(gguf, number, rank, alpha / rank, dtype) for number in range(int(meta["llama.block_count"]))
        )
        self.eps = float(meta["llama.attention.layer_norm_rms_epsilon"])
        head = "output.weight" if "output.weight" in gguf else "token_embd.weight"
        self.register_buffer("embedding", _load(gguf, "token_embd.weight", dtype), persistent=False)
        self.register_buffer("norm", _load(gguf, "output_norm.weight", torch.float32), persistent=False)
        same = head == "token_embd.weight"
        self.register_buffer("head", self.embedding if same else _load(gguf, head, dtype), persistent=False)
        size = int(meta["llama.rope.dimension_count"])
        base = float(meta.get("llama.rope.freq_base", 10000.0))
        self.register_buffer("speeds", base ** (-torch.arange(0, size, 2).float() / size), persistent=False)

    @torch.no_grad()
    def load_adapter(self, adapter: Gguf) -> None:
        """Load an adapter. Raises `ValueError` if it does not fit this model and rank."""
        alpha = float(adapter.meta.get("adapter.lora.alpha", self.alpha))
        for number, block in enumerate(self.blocks):
            for name in LINEAR:
                layer, stem = block.linear[name], f"blk.{number}.{name}.weight"
                for part, own, scale in (("lora_a", layer.a, 1.0), ("lora_b", layer.b, alpha / self.alpha)):
                    found = adapter.tensor(f"{stem}.{part}") if f"{stem}.{part}" in adapter else None
                    if found is None or found.shape != tuple(own.shape):
                        raise ValueError(
                            f"`{adapter.path}` does not fit: `{stem}.{part}` is "
                            f"{'missing' if found is None else found.shape}, expected {tuple(own.shape)}"
                        )
                    own.copy_(torch.from_numpy(found) * scale)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden state of every token. Padding is at the end."""
        angles = torch.arange(ids.shape[1], device=ids.device).float()[:, None] * self.speeds
        turns = (angles.cos(), angles.sin())
        x = F.embedding(ids, self.embedding)
        for block in self.blocks:
            x = block(x, turns)
        return _norm(x, self.norm, self.eps)

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.head).float()

    def adapter(self) -> Iterator[tuple[str, np.ndarray]]:
        """The adapter's tensors under llama.cpp's names."""
        for number, block in enumerate(self.blocks):
            for name in LINEAR:
                layer = block.linear[name]
                yield f"blk.{number}.{name}.weight.lora_a", layer.a.detach().float().cpu().numpy()
                yield f"blk.{number}.{name}.weight.lora_b", layer.b.detach().float().cpu().numpy()


def _load(gguf: Gguf, name: str, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(gguf.tensor(name)).to(dtype)


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def _rotate(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = turns
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2).to(x.dtype)
