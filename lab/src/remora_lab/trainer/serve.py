"""Serves a model with torch, as llama.cpp's server would: chat requests with a grammar, answered greedily.

python -m remora_lab.trainer.serve --base MODEL.gguf [--adapter FILE.gguf] --port 8101
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
import xgrammar

from remora_lab.trainer.engine import Decoder, Engine, Request, load_merged
from remora_lab.trainer.tensors import Gguf
from remora_lab.trainer.tokens import RowTokenizer, chatml

_CONTROL = 3
"""The kind of tokens that no answer may contain, in a GGUF file."""


class Model:
    """A model that answers chats."""

    def __init__(self, base: Path, adapter: Path | None, *, slots: int, length: int, device: str) -> None:
        gguf = Gguf(base)
        self.length = length
        self.name = base.stem
        self.tokenizer = RowTokenizer(gguf)
        self._end = self.tokenizer.ids("<|im_end|>")[0]
        kinds = gguf.meta["tokenizer.ggml.token_type"]
        words = [
            "" if kind == _CONTROL else word
            for word, kind in zip(gguf.meta["tokenizer.ggml.tokens"], kinds, strict=True)
        ]
        info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.BYTE_LEVEL, stop_token_ids=[self._end])
        self._compiler = xgrammar.GrammarCompiler(info)
        self._compiled = lru_cache(maxsize=512)(self._compiler.compile_grammar)
        place = torch.device(device)
        decoder = Decoder(load_merged(base, adapter, place), slots, length, place)
        self._engine = Engine(
            decoder, self._end, lambda matcher, masks, row: matcher.fill_next_token_bitmask(masks, row)
        )
        self._engine.start()

    def answer(self, asked: dict[str, Any]) -> tuple[Request, str]:
        """The finished request and its text. Raises `ValueError` for what cannot be answered."""
        grammar = asked.get("grammar") or ""
        matcher = xgrammar.GrammarMatcher(self._compiled(grammar)) if grammar else None
        prompt = self.tokenizer.ids(chatml(asked["messages"], self.tokenizer.no_system))
        most = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 512)
        request = Request(prompt, most, matcher)
        self._engine.waiting.put(request)
        request.done.wait()
        if request.error:
            raise ValueError(request.error)
        return request, self.tokenizer.text(request.answer)


class Handler(BaseHTTPRequestHandler):
    """The few paths that Remora asks."""

    model: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing: thousands of requests are asked."""

    def do_GET(self) -> None:
        """Health, models and properties."""
        settings = {"default_generation_settings": {"n_ctx": self.model.length}}
        found = {"/health": {"status": "ok"}, "/v1/models": {"data": [{"id": self.model.name}]}, "/props": settings}
        self._send(200 if self.path in found else 404, found.get(self.path, {}))

    def do_POST(self) -> None:
        """Chats and token counts."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            self._send(200, {"tokens": self.model.tokenizer.ids(asked["content"])})
            return
        began = time.monotonic()
        try:
            request, text = self.model.answer(asked)
        except (ValueError, RuntimeError) as error:
            self._send(400, {"error": {"message": str(error)}})
            return
        usage = {"prompt_tokens": len(request.prompt), "completion_tokens": len(request.answer)}
        usage |= {"total_tokens": sum(usage.values()), "seconds": round(time.monotonic() - began, 3)}
        self._stream(text, request.finish, usage)

    def _stream(self, text: str, finish: str, usage: dict[str, Any]) -> None:
        head = {"id": "0", "object": "chat.completion.chunk", "created": 0, "model": self.model.name}
        parts = [
            {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]},
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {**head, "choices": [], "usage": usage},
        ]
        body = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
        self._send(200, body, "text/event-stream")

    def _send(self, status: int, what: Any, kind: str = "application/json") -> None:
        body = (what if isinstance(what, str) else json.dumps(what)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(words: list[str] | None = None) -> int:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m remora_lab.trainer.serve", description=__doc__)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--adapter", type=Path, default=None)
    parser.add_argument("--port", type=int, default=8101)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args(words)
    Handler.model = Model(given.base, given.adapter, slots=given.slots, length=given.length, device=given.device)
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Handler)
    server.daemon_threads = True
    print(f"{given.base.name} at http://127.0.0.1:{given.port}", file=sys.stderr, flush=True)  # noqa: T201
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
