"""Trains an adapter. A run is seeded, and `--resume` with the same arguments continues from the last checkpoint."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from remora.errors import RemoraError
from remora_lab.trainer.batches import Tree, batches, collate, held_out
from remora_lab.trainer.judging import judge
from remora_lab.trainer.model import BaseModel, fast_dtype
from remora_lab.trainer.tensors import Gguf, write_adapter
from remora_lab.trainer.tokens import RowTokenizer, Tokens

ADAPTER_FORMAT = 1
LR, LR_ON = 1e-3, 3e-4
"""Learning rates from nothing, and from an adapter that has learned already."""
BATCH_GPU, BATCH_CPU = 16384, 2048
"""Tokens of a step. On a CPU each takes 2.5 MB, and the few rows that it can learn from should make many steps."""
TOLD_EVERY_S, SAVED_EVERY_S = 10.0, 300.0
_OF_A_RUN = ("seed", "epochs", "lr", "rank", "alpha", "blocks", "batch_tokens", "max_tokens", "holdout", "warmup")
"""Settings that must be the same for a run to be gone on with."""


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """What is to be trained, from the command line."""
    parser = argparse.ArgumentParser(prog="python -m remora_lab.trainer", description=__doc__)
    add = parser.add_argument
    add("--base", type=Path, required=True, help="GGUF file of the model")
    add("--rows", type=Path, required=True, nargs="+", help="JSONL files of rows, plain or .gz")
    add("--valid", type=Path, nargs="*", default=[], help="rows to judge by, beside the held-out share")
    add("--out", type=Path, required=True, help="folder for adapter.gguf, metrics.json and the checkpoint")
    add("--epochs", type=int, default=2)
    add("--seed", type=int, default=1)
    add("--start", type=Path, default=None, help="an adapter to go on from, instead of from nothing")
    add("--lr", type=float, default=None, help=f"default {LR}, with --start {LR_ON}")
    add("--warmup", type=float, default=0.03, help="share of the steps")
    add("--rank", type=int, default=16)
    add("--alpha", type=float, default=32.0)
    add("--blocks", type=int, default=None, help="adapt only so many of the last blocks: a smaller file, faster steps")
    add("--batch-tokens", type=int, default=None, help=f"default {BATCH_GPU} on a GPU, {BATCH_CPU} on a CPU")
    add("--max-tokens", type=int, default=2048, help="longer rows are left out, and counted")
    add("--holdout", type=float, default=0.02, help="share of the episodes to judge by")
    add("--limit", type=int, default=None, help="take only so many rows of each file")
    add("--minutes", type=float, default=None, help="stop with a checkpoint after so long")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--threads", type=int, default=None)
    add("--resume", action="store_true", help="go on from the checkpoint in --out")
    options = parser.parse_args(words)
    options.lr = options.lr or (LR_ON if options.start else LR)
    options.batch_tokens = options.batch_tokens or (BATCH_CPU if options.device == "cpu" else BATCH_GPU)
    return options


class Training:
    """One run: rows, model and optimizer, step by step."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = torch.device(options.device)
        if options.threads:
            torch.set_num_threads(options.threads)
        gguf = Gguf(options.base)
        tokenizer = RowTokenizer(gguf)
        every, self.left_out = _read(tokenizer, options.rows, options.limit, options.max_tokens)
        self.learn, self.judge = held_out(every, options.holdout)
        if not self.learn:
            raise ValueError(f"There is no row to learn from in {', '.join(map(str, options.rows))}")
        self.judge += _read(tokenizer, options.valid, options.limit, options.max_tokens)[0]
        dtype = fast_dtype(self.device)
        model = BaseModel(
            gguf, rank=options.rank, alpha=options.alpha, dtype=dtype, seed=options.seed, blocks=options.blocks
        )
        self.model = model.to(self.device)
        if options.start:
            self.model.begin_with(Gguf(options.start))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.lr, betas=(0.9, 0.99), weight_decay=0.0)
        self.steps = sum(len(self._epoch(epoch)) for epoch in range(options.epochs))
        self.settings = self._settings()
        self.done = 0
        self.seconds = 0.0
        self.skipped = 0
        self.log: list[dict[str, float]] = []

    def run(self) -> bool:
        """Train until all steps are done (True) or the time is over (False)."""
        began, before = time.monotonic(), self.seconds
        saved = before
        for number, group in enumerate(group for epoch in range(self.options.epochs) for group in self._epoch(epoch)):
            if number < self.done:
                continue
            loss = self._step(group)
            self.done += 1
            self.seconds = before + time.monotonic() - began
            if self.seconds - (self.log[-1]["seconds"] if self.log else 0) > TOLD_EVERY_S or self.done == self.steps:
                self._tell(loss)
            if self.seconds - saved > SAVED_EVERY_S:
                self.save()
                saved = self.seconds
            if self.options.minutes and time.monotonic() - began > self.options.minutes * 60:
                break
        self.save()
        return self.done == self.steps

    def _step(self, group: list[Tree]) -> torch.Tensor:
        batch = collate(group, self.device)
        for each in self.optimizer.param_groups:
            each["lr"] = self.options.lr * self._share()
        hidden = self.model.hidden(batch.ids, batch.positions, batch.mask)
        logits = self.model.logits(hidden.flatten(0, 1)[batch.places])
        loss = F.cross_entropy(logits, batch.answers)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if bool(torch.isfinite(norm)):
            self.optimizer.step()
        else:  # one such step would make every weight NaN
            self.skipped += 1
            _say(f"step {self.done + 1} is skipped: the gradient is {float(norm)}, the loss {float(loss):.4f}")
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _share(self) -> float:
        """How much of the learning rate counts now: rising, then along a cosine to a tenth."""
        warm = max(1, int(self.steps * self.options.warmup))
        if self.done < warm:
            return (self.done + 1) / warm
        return 0.1 + 0.45 * (1 + math.cos(math.pi * (self.done - warm) / max(1, self.steps - warm)))

    def _epoch(self, epoch: int) -> list[list[Tree]]:
        return batches(self.learn, self.options.batch_tokens, self.options.seed * 1000 + epoch)

    def _tell(self, loss: torch.Tensor) -> None:
        self.log.append({"step": self.done, "loss": round(float(loss), 4), "seconds": round(self.seconds, 1)})
        left = self.seconds * (self.steps - self.done) / self.done
        _say(f"step {self.done}/{self.steps}  loss {float(loss):.4f}  {self.seconds:.0f} s, about {left:.0f} s left")

    def save(self) -> None:
        """The checkpoint is whole or the old one is still there."""
        path = self.options.out / "checkpoint.pt"
        state = {
            "settings": self.settings, "done": self.done, "seconds": self.seconds, "log": self.log,
            "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
        }  # fmt: skip
        torch.save(state, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    def load(self) -> None:
        """Go on from the checkpoint. Raises `ValueError` if it is of another run."""
        path = self.options.out / "checkpoint.pt"
        if not path.exists():
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        if state["settings"] != self.settings:
            raise ValueError(f"`{path}` is of other rows or settings: {state['settings']}")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.done, self.seconds, self.log = state["done"], state["seconds"], state["log"]

    def _settings(self) -> dict[str, Any]:
        settings = {name: getattr(self.options, name) for name in _OF_A_RUN}
        return {
            **settings,
            "steps": self.steps,
            "rows": _digest(self.options.rows),
            "base": _digest([self.options.base]),
            "start": _digest([self.options.start]) if self.options.start else "",
        }

    def export(self) -> Path:
        """The adapter as a GGUF file that says what it was trained for and on."""
        rows = [row.row for row in self.learn]
        settings = self.settings
        meta: dict[str, str | float | int] = {
            "general.architecture": self.model.architecture,
            "general.type": "adapter",
            "general.name": self.options.out.name,
            "adapter.type": "lora",
            "adapter.lora.alpha": float(self.options.alpha),
            "remora.adapter.format": ADAPTER_FORMAT,
            "remora.renderer": ",".join(sorted({str(row.get("renderer", "")) for row in rows} - {""})),
            "remora.calling": "text",
            "remora.operations": ",".join(sorted({str(row.get("operation", "")) for row in rows if _named(row)})),
            "remora.base.sha256": settings["base"],
            "remora.rows.sha256": settings["rows"],
            "remora.rows.count": len(rows),
            "remora.training": json.dumps(
                {name: settings[name] for name in (*_OF_A_RUN, "steps", "start")} | {"done": self.done}
            ),
        }
        path = self.options.out / "adapter.gguf"
        write_adapter(path, dict(self.model.adapter()), meta)
        return path

    def report(self) -> dict[str, Any]:
        """What came out of it, for `metrics.json`."""
        tokens = sum(map(len, self.learn))
        rates = judge(self.model, self.judge, self.options.batch_tokens, self.device) if self.judge else {}
        return {
            "settings": self.settings,
            "rows": {"learn": len(self.learn), "judge": len(self.judge), "left_out": self.left_out, "tokens": tokens},
            "done": self.done,
            "skipped": self.skipped,
            "seconds": round(self.seconds, 1),
            "device": torch.cuda.get_device_name() if self.device.type == "cuda" else "cpu",
            "judged": rates,
            "log": self.log,
        }


def _named(row: dict[str, Any]) -> bool:
    """Whether the row is of an agent that exists, not of one that was made up."""
    return bool(row.get("operation")) and row.get("origin") != "variety"


def _read(
    tokenizer: RowTokenizer, paths: Iterable[Path], limit: int | None, max_tokens: int
) -> tuple[list[Tokens], int]:
    rows = [
        _row(line, f"{path}:{number}")
        for path in paths
        for number, line in enumerate(_lines(path)[:limit], start=1)
        if line.strip()
    ]
    made = tokenizer.rows(rows) if rows else []
    short = [row for row in made if len(row) <= max_tokens]
    return short, len(made) - len(short)


def _row(line: bytes, where: str) -> dict[str, Any]:
    """The row of a line. Raises `ValueError` that names the line if it is none."""
    try:
        row = json.loads(line)
        fits = all({"role", "content"} <= set(message) for message in row["messages"]) and isinstance(
            row["answer"], str
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"`{where}` is no row: {type(error).__name__}: {error}") from error
    if not fits:
        raise ValueError(f"`{where}` is no row: expected messages with role and content, and an answer")
    return row


def _lines(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).splitlines()


def _digest(paths: Iterable[Path]) -> str:
    """Over the lines of rows, however they are packed; over a model's bytes as they are."""
    found = hashlib.sha256()
    for path in paths:
        data = path.read_bytes()
        found.update(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return "sha256:" + found.hexdigest()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a program of its own


def main(words: list[str] | None = None) -> int:
    """Train, judge, export. 0 when all steps are done, 3 when the time was over, 130 when stopped, 2 for bad input."""
    options = arguments(words)
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        training = Training(options)
        if options.resume:
            training.load()
    except (ValueError, RemoraError) as error:
        _say(f"error: {error}")
        return 2
    learn, judge = len(training.learn), len(training.judge)
    _say(f"{learn} rows to learn, {judge} to judge, {training.left_out} too long")
    _say(f"{training.steps} steps on {options.device}")
    try:
        whole = training.run()
    except KeyboardInterrupt:
        _say("Stopped. The last checkpoint is kept: --resume goes on from there")
        return 130
    path = training.export()
    report = training.report()
    (options.out / "metrics.json").write_text(json.dumps(report, indent=1) + "\n")
    _say(f"{path}: {path.stat().st_size / 1e6:.1f} MB; judged: {json.dumps(report['judged'].get('all', {}))}")
    return 0 if whole else 3


if __name__ == "__main__":
    sys.exit(main())
