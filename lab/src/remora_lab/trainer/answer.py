"""Answers a file of prompts at once on a GPU, greedily and without a grammar.

    python -m remora_lab.trainer.answer --base MODEL.gguf --prompts texts.jsonl.gz --out answers.jsonl

A prompt is a line of JSON: `text`, whole as the model reads it, `begin`, with which the answer is made to begin, and
any other keys. Its answer has these other keys too, and in `text` the beginning and what the model wrote after it. A
file of answers is continued.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from remora_lab.trainer.engine import Decoder, Engine, Request, load_merged
from remora_lab.trainer.tensors import Gguf
from remora_lab.trainer.tokens import RowTokenizer

TOLD_EVERY = 500
"""Answers between two lines of progress."""


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """What is to be answered, from the command line."""
    parser = argparse.ArgumentParser(prog="python -m remora_lab.trainer.answer", description=__doc__)
    add = parser.add_argument
    add("--base", type=Path, required=True, help="GGUF file of the model")
    add("--adapter", type=Path, default=None)
    add("--prompts", type=Path, required=True, help="lines of JSON with `text`, plain or .gz")
    add("--out", type=Path, required=True)
    add("--stop", default="<|im_end|>", help="the token that ends an answer")
    add("--most", type=int, default=110, help="tokens of an answer")
    add("--slots", type=int, default=64, help="prompts answered at once")
    add("--length", type=int, default=12288, help="tokens of a prompt and its answer; longer ones are left out")
    add("--minutes", type=float, default=None, help="stop after so long; the same command continues")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args(words)


def answer_all(given: argparse.Namespace) -> bool:
    """Answer what is not answered yet. False if the time was over first."""
    tokenizer = RowTokenizer(Gguf(given.base))
    waiting = _waiting(given.prompts, given.out)
    device = torch.device(given.device)
    decoder = Decoder(load_merged(given.base, given.adapter, device), given.slots, given.length, device)
    engine = Engine(decoder, tokenizer.ids(given.stop)[0], _no_grammar)
    engine.start()
    asked = [(row, Request(tokenizer.ids(row["text"] + row.get("begin", "")), given.most)) for row in waiting]
    asked.sort(key=lambda each: len(each[1].prompt))
    for _, request in asked:
        engine.waiting.put(request)
    return _collect(asked, given)


def _collect(asked: list[tuple[dict[str, Any], Request]], given: argparse.Namespace) -> bool:
    """Write the answers in the order in which they were asked, until the time is over."""
    tokenizer = RowTokenizer(Gguf(given.base))
    began = time.monotonic()
    with given.out.open("a", encoding="utf-8") as out:
        for number, (row, request) in enumerate(asked, start=1):
            left = None if given.minutes is None else given.minutes * 60 - (time.monotonic() - began)
            if not request.done.wait(left if left is None else max(0.0, left)):
                return False
            if request.error:
                _say(f"{row.get('id', number)}: {request.error}")
                continue
            answered = _others(row) | {"text": row.get("begin", "") + tokenizer.text(request.answer)}
            out.write(json.dumps(answered, ensure_ascii=False) + "\n")
            if not number % TOLD_EVERY:
                _say(f"{number} of {len(asked)} answered, {time.monotonic() - began:.0f} s")
    return True


def _waiting(prompts: Path, out: Path) -> list[dict[str, Any]]:
    """The prompts that have no answer yet: those whose other keys are in no answer."""
    done = {_key(row) for row in _lines(out)} if out.exists() else set()
    return [row for row in _lines(prompts) if _key(row) not in done]


def _key(row: dict[str, Any]) -> str:
    return json.dumps(_others(row), sort_keys=True)


def _others(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("text", "begin")}


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    data = file.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    yield from (json.loads(line) for line in text.splitlines() if line.strip())


def _no_grammar(*_: Any) -> None:
    raise AssertionError("these prompts have no grammar")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a program of its own


def main(words: list[str] | None = None) -> int:
    """Answer the prompts. 0 when all are answered, 3 when the time was over."""
    return 0 if answer_all(arguments(words)) else 3


if __name__ == "__main__":
    sys.exit(main())
