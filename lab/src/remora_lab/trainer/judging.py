"""Judging: the loss on held-out rows, and how often the model's own answer is exactly the right one.

Greedy decoding gives exactly the right answer if and only if each token of that answer is the likeliest after the ones
before it. So one pass over the right answer tells it, and nothing has to be decoded. Without a grammar, which could
only help: a served model is held to one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from remora_lab.trainer.batches import batches, collate
from remora_lab.trainer.model import BaseModel
from remora_lab.trainer.tokens import Tokens


@torch.no_grad()
def judge(model: BaseModel, rows: Sequence[Tokens], batch_tokens: int, device: torch.device) -> dict[str, Any]:
    """Loss, right tools and exact answers, over all rows and by where they came from."""
    found: dict[str, list[tuple[float, bool, bool]]] = defaultdict(list)
    for group in batches(rows, batch_tokens, None):
        batch = collate(group, device)
        hidden = model.hidden(batch.ids, batch.positions, batch.mask)
        logits = model.logits(hidden.flatten(0, 1)[batch.places])
        losses = F.cross_entropy(logits, batch.answers, reduction="none").tolist()
        right = (logits.argmax(-1) == batch.answers).tolist()
        at = 0
        for row in batch.rows:
            here = slice(at, at := at + len(row.answer))
            one = (sum(losses[here]) / len(row.answer), all(right[here][: row.tool]), all(right[here]))
            for kind in ("all", str(row.row.get("origin", "")), f"operation:{row.row.get('operation', '')}"):
                found[kind].append(one)
    return {kind: _means(ones) for kind, ones in sorted(found.items())}


def _means(ones: Sequence[tuple[float, bool, bool]]) -> dict[str, float]:
    names = ("loss", "right_tool", "exact")
    means = {name: round(sum(one[place] for one in ones) / len(ones), 4) for place, name in enumerate(names)}
    return {"rows": len(ones), **means}
