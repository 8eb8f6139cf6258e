"""Batches of rows, packed so that what several prompts begin with is read once. The same seed gives the same batches.

The turns of one episode share their system text, their tools and most of their packet. In a sequence, their tokens form
a tree: a row follows it as far as it equals an earlier row, and adds the rest as a branch. A token attends to
the tokens of its own branch, so every row gives the same logits as if it were alone.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from remora_lab.trainer.tokens import Tokens

SEQUENCE = 2048
"""Tokens of a sequence, at most, unless a single row has more."""


@dataclass
class Tree:
    """Rows in one sequence. `paths` are the places of each row's tokens."""

    rows: list[Tokens] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    paths: list[np.ndarray] = field(default_factory=list)
    _read: list[np.ndarray] = field(default_factory=list)

    def add(self, row: Tokens, most: int) -> bool:
        """Add a row unless the sequence would then have more than `most` tokens. The first row is always added."""
        tokens = np.array(row.prompt + row.answer)
        shared, path = max(((_shared(tokens, read), number) for number, read in enumerate(self._read)), default=(0, 0))
        new = np.arange(len(self.ids), len(self.ids) + len(tokens) - shared)
        if self.rows and len(self.ids) + len(new) > most:
            return False
        self.ids += tokens[shared:].tolist()
        self.paths.append(np.concatenate([self.paths[path][:shared], new]) if shared else new)
        self.rows.append(row)
        self._read.append(tokens)
        return True


@dataclass(frozen=True)
class Batch:
    """Sequences side by side, filled up at the end."""

    rows: tuple[Tokens, ...]
    ids: Tensor
    positions: Tensor
    """How many tokens each token's row has before it."""
    mask: Tensor
    """Which tokens a token attends to."""
    places: Tensor
    """Flat places whose next token is part of an answer, row by row."""
    answers: Tensor
    """Those next tokens."""


def batches(rows: Sequence[Tokens], tokens: int, seed: int | None) -> list[list[Tree]]:
    """All rows, each once, in batches of sequences of about `tokens`. Without a seed, in the order given."""
    episodes: dict[str, list[Tokens]] = {}
    for row in rows:
        episodes.setdefault(episode_of(row), []).append(row)
    order = list(episodes.values())
    if seed is None:
        return list(_groups(order, tokens))
    chance = random.Random(seed)  # noqa: S311 - an order, no secret
    chance.shuffle(order)
    made = list(_groups(order, tokens))
    chance.shuffle(made)
    return made


def _groups(episodes: Sequence[Sequence[Tokens]], tokens: int) -> Iterator[list[Tree]]:
    length = min(SEQUENCE, tokens)
    group = [Tree()]
    for row in (row for episode in episodes for row in episode):
        if group[-1].add(row, length):
            continue
        if (len(group) + 1) * length > tokens:
            yield group
            group = []
        group.append(Tree())
        group[-1].add(row, length)
    if group[-1].rows:
        yield group


def collate(trees: Sequence[Tree], device: torch.device) -> Batch:
    """The sequences as tensors on `device`."""
    length = max(len(tree.ids) for tree in trees)
    ids = torch.zeros(len(trees), length, dtype=torch.long)
    positions = torch.zeros(len(trees), length, dtype=torch.long)
    mask = torch.eye(length, dtype=torch.bool).repeat(len(trees), 1, 1)
    places: list[int] = []
    answers: list[int] = []
    for number, tree in enumerate(trees):
        ids[number, : len(tree.ids)] = torch.tensor(tree.ids)
        for row, found in zip(tree.rows, tree.paths, strict=True):
            path = torch.from_numpy(found)
            positions[number, path] = torch.arange(len(path))
            mask[number, path[:, None], path[None]] |= torch.ones(len(path), len(path), dtype=torch.bool).tril()
            first = len(row.prompt) - 1
            places += (number * length + found[first : first + len(row.answer)]).tolist()
            answers += row.answer
    rows = tuple(row for tree in trees for row in tree.rows)
    where = (each.to(device) for each in (ids, positions, mask[:, None], torch.tensor(places), torch.tensor(answers)))
    return Batch(rows, *where)


def held_out(rows: Sequence[Tokens], share: float) -> tuple[list[Tokens], list[Tokens]]:
    """Rows to learn from and rows to judge by. An episode is never in both."""
    learn: list[Tokens] = []
    judge: list[Tokens] = []
    for row in rows:
        number = int.from_bytes(hashlib.sha256(episode_of(row).encode()).digest()[:4], "big") / 2**32
        (judge if number < share else learn).append(row)
    return learn, judge


def episode_of(row: Tokens) -> str:
    """The row's episode: its id before the last `/`."""
    found = str(row.row["id"])
    return found.rpartition("/")[0] or found


def _shared(one: np.ndarray, other: np.ndarray) -> int:
    """How many tokens both begin with."""
    most = min(len(one), len(other))
    differ = one[:most] != other[:most]
    return int(differ.argmax()) if differ.any() else most
