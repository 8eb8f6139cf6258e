"""Small tokenizers, GGUF files and servers, made here: no test needs a real model."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXT = Path(__file__).parents[2].joinpath("docs", "concepts", "packet.md").read_text(encoding="utf-8")
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def trained(size: int) -> Tokenizer:
    """A byte-level BPE as SmolLM2's is made, trained on one of our pages; 256 is one token a byte."""
    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=ALPHABET, show_progress=False)
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    return tokenizer


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(item: Any) -> bytes:
    """A metadata value with its type: text, a number, or a list of either."""
    if isinstance(item, str):
        return struct.pack("<I", 8) + string(item)
    if isinstance(item, int):
        return struct.pack("<Ii", 5, item)
    kind = 8 if item and isinstance(item[0], str) else 5
    body = b"".join(string(each) if kind == 8 else struct.pack("<i", each) for each in item)
    return struct.pack("<IIQ", 9, kind, len(item)) + body


def gguf(pairs: dict[str, Any], *, version: int = 3) -> bytes:
    """A GGUF file with nothing but metadata."""
    body = b"".join(string(key) + value(item) for key, item in pairs.items())
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs)) + body


def tokenizer_pairs(**changes: Any) -> dict[str, Any]:
    """Metadata of a small tokenizer: every byte, two merges, one control token."""
    tokens = ["<|end|>", *ALPHABET, "he", "hel"]
    pairs = {
        "general.name": "tiny",
        "general.numbers": [1, 2, 3],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": ["h e", "he l"],
        "tokenizer.ggml.token_type": [3] + [1] * (len(tokens) - 1),
    }
    return pairs | {f"tokenizer.ggml.{name}": item for name, item in changes.items()}


@contextmanager
def server(reply: bytes | None = None, *, status: int = 200, drip_s: float = 0) -> Iterator[tuple[str, list[str]]]:
    """Answers `/tokenize` with one token a character, or with `reply`, byte by byte where it is to drip."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))["content"]
            asked.append(content)
            data = orjson.dumps({"tokens": list(range(len(content)))}) if reply is None else reply
            self.send_response(status if self.path == "/tokenize" else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            try:
                for piece in [bytes([byte]) for byte in data] if drip_s else [data]:
                    time.sleep(drip_s)
                    self.wfile.write(piece)
            except OSError:
                return

        def log_message(self, *args: object) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_port}", asked
    finally:
        made.shutdown()
        made.server_close()
        thread.join()


def lora(*, rank: int = 4, width: int = 576, fill: float = 0.5) -> bytes:
    """A LoRA adapter for the first query matrix of SmolLM2, every number of it `fill`."""
    names = ("blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b")
    shapes = ((width, rank), (rank, width))
    pairs = {"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora"}
    body = b"".join(string(key) + value(item) for key, item in pairs.items())
    body += string("adapter.lora.alpha") + struct.pack("<If", 6, float(rank))
    size = width * rank * 4
    for place, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        body += string(name) + struct.pack("<IQQIQ", 2, *shape, 0, place * size)
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, len(pairs) + 1) + body
    return head + bytes(-len(head) % 32) + struct.pack("<f", fill) * (2 * width * rank)
