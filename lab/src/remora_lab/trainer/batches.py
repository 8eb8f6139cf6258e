"""Batches of rows of similar length. The same seed gives the same batches in the same order."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from remora_lab.trainer.tokens import Tokens

_POOL = 64
"""Batches' worth of rows that are sorted by length together."""


@dataclass(frozen=True)
class Batch:
    """Rows side by side, filled up at the end."""

    rows: tuple[Tokens, ...]
    ids: Tensor
    places: Tensor
    """Flat positions whose next token is part of an answer."""
    answers: Tensor
    """Those next tokens."""


def batches(rows: Sequence[Tokens], tokens: int, seed: int | None) -> list[list[Tokens]]:
    """All rows, each once, in batches of at most `tokens`. Without a seed, shortest first."""
    order = list(rows)
    if seed is None:
        return list(_cut(sorted(order, key=len), tokens))
    chance = random.Random(seed)  # noqa: S311 - an order, no secret
    chance.shuffle(order)
    mean = max(1, sum(map(len, order)) // max(1, len(order)))
    pool = max(1, _POOL * tokens // mean)
    pools = (sorted(order[at : at + pool], key=len) for at in range(0, len(order), pool))
    made = [batch for each in pools for batch in _cut(each, tokens)]
    chance.shuffle(made)
    return made


def _cut(rows: Sequence[Tokens], tokens: int) -> Iterator[list[Tokens]]:
    batch: list[Tokens] = []
    for row in rows:
        if batch and max(len(row), len(batch[-1])) * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def collate(rows: Sequence[Tokens], device: torch.device) -> Batch:
    """The rows as tensors on `device`."""
    length = max(map(len, rows))
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    places: list[int] = []
    answers: list[int] = []
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row.prompt + row.answer)
        first = number * length + len(row.prompt) - 1
        places += range(first, first + len(row.answer))
        answers += row.answer
    return Batch(tuple(rows), ids.to(device), torch.tensor(places).to(device), torch.tensor(answers).to(device))


def held_out(rows: Sequence[Tokens], share: float) -> tuple[list[Tokens], list[Tokens]]:
    """Rows to learn from and rows to judge by. An episode (the id before its last `/`) is never in both."""
    learn: list[Tokens] = []
    judge: list[Tokens] = []
    for row in rows:
        episode = str(row.row["id"]).rpartition("/")[0] or str(row.row["id"])
        number = int.from_bytes(hashlib.sha256(episode.encode()).digest()[:4], "big") / 2**32
        (judge if number < share else learn).append(row)
    return learn, judge
