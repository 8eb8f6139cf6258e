"""Answers many prompts at once with torch: a model of a GGUF file, with an adapter merged into it or without.

For measuring whole suites on a GPU, where llama.cpp on a CPU would take days. Every answer is greedy, and held to its
grammar token by token.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from remora_lab.trainer.model import BaseModel, Block, _norm, fast_dtype, learned_shape
from remora_lab.trainer.tensors import Gguf

LIKELY = 48
"""Tokens of a step that are tried against the grammar, the likeliest first, before all others are."""
TOGETHER = 16384
"""Tokens of prompts that are read at once, padding included."""
LENGTHS = (1536, 3072, 8192)
"""Cache lengths of a step: each step takes the smallest that holds all its prompts."""


@dataclass
class Request:
    """One prompt, and its answer once `done` is set."""

    prompt: Sequence[int]
    most: int
    """Tokens that the answer may have."""
    matcher: Any = None
    """An xgrammar matcher that holds the answer to a grammar; None for free text."""
    answer: list[int] = field(default_factory=list)
    finish: str = ""
    error: str = ""
    done: threading.Event = field(default_factory=threading.Event)
    gone: bool = False
    """Whether whoever asked has left."""


def load_merged(path: Path, adapter: Path | None, device: torch.device) -> BaseModel:
    """The model in the device's fast type, with the adapter added to its weights."""
    gguf, learned = Gguf(path), Gguf(adapter) if adapter else None
    dtype = fast_dtype(device)
    if learned is None:
        return BaseModel(gguf, rank=1, alpha=1.0, dtype=dtype, blocks=0).to(device).requires_grad_(False).eval()
    rank, blocks = learned_shape(learned)
    alpha = float(learned.meta["adapter.lora.alpha"])
    model = BaseModel(gguf, rank=rank, alpha=alpha, dtype=dtype, blocks=blocks).to(device)
    model.begin_with(learned)
    for _, layer in model.adapted():
        layer.weight += (layer.b.detach() @ layer.a.detach() * layer.scale).to(dtype)
    return model.requires_grad_(False).eval()


class Cache:
    """Keys and values of every layer, one row for each prompt that is being answered."""

    def __init__(self, model: BaseModel, slots: int, length: int, device: torch.device) -> None:
        block = model.blocks[0]
        self.size = block.linear["attn_q"].weight.shape[0] // block.heads
        shape = (len(model.blocks), slots, block.heads // block.shared, length, self.size)
        self.keys = torch.zeros(shape, dtype=model.dtype, device=device)
        self.values = torch.zeros(shape, dtype=model.dtype, device=device)


class Decoder:
    """The forward passes: a prompt into a row of the cache, and one token for all rows."""

    def __init__(self, model: BaseModel, slots: int, length: int, device: torch.device) -> None:
        self.model, self.slots, self.device = model, slots, device
        self.lengths = [*(each for each in LENGTHS if each < length), length]
        self.cache = Cache(model, slots, length, device)
        self.ids = torch.zeros(slots, dtype=torch.long, device=device)
        self.places = torch.zeros(slots, dtype=torch.long, device=device)
        self.rows = torch.arange(slots, device=device)
        self.logits = torch.zeros(slots, model.head.shape[0], device=device)
        self._graphs: dict[int, Any] = {}

    def _turns(self, places: Tensor) -> tuple[Tensor, Tensor]:
        angles = places.float()[..., None] * self.model.speeds
        return angles.cos(), angles.sin()

    @torch.inference_mode()
    def read(self, slots: Sequence[int], prompts: Sequence[Sequence[int]]) -> None:
        """Put the keys and values of each prompt into its row of the cache."""
        length = _longest(prompts)
        padded = torch.tensor([[*ids, *[0] * (length - len(ids))] for ids in prompts], device=self.device)
        x = F.embedding(padded, self.model.embedding)
        turns, rows = self._turns(torch.arange(length, device=self.device)), torch.tensor(slots, device=self.device)
        for number, block in enumerate(self.model.blocks):
            q, k, v = _project(block, x, turns)
            self.cache.keys[number, rows, :, :length] = k
            self.cache.values[number, rows, :, :length] = v
            k, v = (each.repeat_interleave(block.shared, dim=1) for each in (k, v))
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = _finish(block, x, seen)

    def step(self, longest: int) -> list[list[int]]:
        """The likeliest next tokens of every row, given `ids` and `places`; `logits` has all of them."""
        length = next(each for each in self.lengths if longest <= each)
        if self.device.type == "cuda":
            self._graph(length).replay()
        else:
            self._forward(length)
        return list(self.logits.topk(LIKELY).indices.tolist())

    def _graph(self, length: int) -> Any:
        if length not in self._graphs:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):
                    self._forward(length)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._forward(length)
            self._graphs[length] = graph
        return self._graphs[length]

    @torch.inference_mode()
    def _forward(self, length: int) -> None:
        x = F.embedding(self.ids[:, None], self.model.embedding)
        turns = tuple(each[:, None, None] for each in self._turns(self.places))
        hidden = torch.arange(length, device=self.device)[None] > self.places[:, None]
        for number, block in enumerate(self.model.blocks):
            q, k, v = _project(block, x, turns)
            keys, values = self.cache.keys[number], self.cache.values[number]
            keys[self.rows, :, self.places] = k[:, :, 0]
            values[self.rows, :, self.places] = v[:, :, 0]
            x = _finish(block, x, _attend(q, keys[:, :, :length], values[:, :, :length], hidden))
        self.logits.copy_(self.model.logits(_norm(x[:, 0], self.model.norm, self.model.eps)))


def _project(block: Block, x: Tensor, turns: Any) -> tuple[Tensor, Tensor, Tensor]:
    y = _norm(x, block.attn_norm, block.eps)
    q, k, v = (block._split(_linear(block, name, y)) for name in ("attn_q", "attn_k", "attn_v"))
    return block.rotate(q, turns), block.rotate(k, turns), v


def _attend(q: Tensor, keys: Tensor, values: Tensor, hidden: Tensor) -> Tensor:
    """Attention of one token of every row over its row of the cache."""
    rows, heads, _, size = q.shape
    grouped = q.view(rows, keys.shape[1], heads // keys.shape[1], size)
    scores = (grouped @ keys.transpose(-1, -2)).float() / size**0.5
    weights = scores.masked_fill(hidden[:, None, None], -torch.inf).softmax(-1)
    return (weights.to(values.dtype) @ values).view(rows, heads, 1, size)


def _finish(block: Block, x: Tensor, seen: Tensor) -> Tensor:
    rows, _, length, _ = seen.shape
    x = x + _linear(block, "attn_output", seen.transpose(1, 2).reshape(rows, length, -1))
    y = _norm(x, block.ffn_norm, block.eps)
    return x + _linear(block, "ffn_down", F.silu(_linear(block, "ffn_gate", y)) * _linear(block, "ffn_up", y))


def _linear(block: Block, name: str, x: Tensor) -> Tensor:
    return F.linear(x, block.linear[name].weight, block.linear[name].bias)


def _longest(prompts: Iterable[Sequence[int]]) -> int:
    return max(map(len, prompts), default=0)


class Engine(threading.Thread):
    """Answers requests from a queue: new ones join while others are being answered."""

    def __init__(self, decoder: Decoder, end: int, fill: Callable[[Any, Tensor, int], None]) -> None:
        """`end` is the token that ends an answer; `fill` writes what a matcher allows as bits into a row."""
        super().__init__(daemon=True)
        self.decoder, self._end, self._fill = decoder, end, fill
        self.waiting: queue.Queue[Request] = queue.Queue()
        self._busy: dict[int, Request] = {}
        self._mask = torch.full((1, -(-decoder.logits.shape[1] // 32)), -1, dtype=torch.int32)

    def run(self) -> None:
        """Answer until the process ends."""
        while True:
            try:
                self._admit()
                self._advance()
            except Exception as error:  # noqa: BLE001 - told to everyone who waits, and the next ones are answered
                for slot in list(self._busy):
                    self._close(slot, error=f"{type(error).__name__}: {error}")

    def _admit(self) -> None:
        """Take waiting requests into free rows and read them together. Waits if there is nothing to do."""
        new: dict[int, Sequence[int]] = {}
        while (
            len(self._busy) < self.decoder.slots and (len(new) + 1) * max(map(len, new.values()), default=0) < TOGETHER
        ):
            try:
                request = self.waiting.get(block=not self._busy)
            except queue.Empty:
                break
            slot = next(each for each in range(self.decoder.slots) if each not in self._busy)
            self._busy[slot] = request
            if len(request.prompt) + request.most > self.decoder.lengths[-1]:
                self._close(slot, error=f"the prompt of {len(request.prompt)} tokens exceeds the context")
            elif len(request.prompt) > 1:
                new[slot] = request.prompt[:-1]
        if new:
            self.decoder.read(list(new), list(new.values()))

    def _advance(self) -> None:
        """One more token for every row."""
        for slot in [slot for slot, request in self._busy.items() if request.gone]:
            self._close(slot)
        if not self._busy:
            return
        ids, places = [0] * self.decoder.slots, [0] * self.decoder.slots
        for slot, request in self._busy.items():
            ids[slot] = request.answer[-1] if request.answer else request.prompt[-1]
            places[slot] = len(request.prompt) + len(request.answer) - 1
        self.decoder.ids.copy_(torch.tensor(ids))
        self.decoder.places.copy_(torch.tensor(places))
        found = self.decoder.step(max(places) + 1)
        for slot in list(self._busy):
            self._take(slot, found[slot])

    def _take(self, slot: int, likely: list[int]) -> None:
        request = self._busy[slot]
        token = likely[0]
        if request.matcher is not None:
            allowed = (each for each in likely if request.matcher.accept_token(each))
            found = next(allowed, None)
            token = self._best_allowed(slot) if found is None else found
        if token == self._end:
            self._close(slot, finish="stop")
            return
        request.answer.append(token)
        if len(request.answer) >= request.most:
            self._close(slot, finish="length")

    def _best_allowed(self, slot: int) -> int:
        """The likeliest of all tokens that the grammar allows."""
        matcher, scores = self._busy[slot].matcher, self.decoder.logits[slot].cpu()
        self._fill(matcher, self._mask, 0)
        allowed = ((self._mask[0][:, None] >> torch.arange(32, dtype=torch.int32)) & 1).bool().flatten()
        token = int(scores.masked_fill(~allowed[: len(scores)], -torch.inf).argmax())
        matcher.accept_token(token)
        return token

    def _close(self, slot: int, finish: str = "", error: str = "") -> None:
        request = self._busy.pop(slot)
        request.finish, request.error = finish, error
        request.done.set()
