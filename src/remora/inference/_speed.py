"""How fast this machine reads and writes with a model, and how much memory the model takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remora.errors import ServerRefused
from remora.gguf import read_pairs
from remora.inference._embedded import EmbeddedServer

READ_TOKENS, WRITE_TOKENS = 256, 32
"""Tokens of the measured prompt and reply."""
OVERHEAD = 256 * 1024 * 1024
"""Bytes that a model takes beside its weights and its context window: an upper estimate."""
_WORDS = "def total(prices): return sum(price for price in prices if price is not None)  # all of them\n"


@dataclass(frozen=True)
class Speed:
    """One measurement."""

    reads: float
    """Prompt tokens a second."""
    writes: float
    """Reply tokens a second."""
    loads_s: float
    """Seconds until the model answers for the first time."""
    threads: int
    busy: float
    """The share of the machine that was busy when the measurement began."""

    def decision_s(self, new_tokens: int, reply_tokens: int = 40) -> float:
        """Seconds for a decision that reads so many new tokens."""
        return new_tokens / self.reads + reply_tokens / self.writes


async def measure(gguf: Path, *, window: int, threads: int, busy: float, deadline_s: float = 600.0) -> Speed:
    """Load the model and let it read and write a little. Raises `ServerUnreachable` if it does not start."""
    from remora.inference._door import http_client

    began = time.monotonic()
    async with EmbeddedServer(gguf, context=min(window, 2048), threads=threads, start_s=deadline_s) as server:
        child = await server.ready()
        loads_s = time.monotonic() - began
        async with http_client(child.url, child.key, deadline_s) as client:
            asked = {
                "prompt": _WORDS * (READ_TOKENS // 16), "n_predict": WRITE_TOKENS, "temperature": 0,
                "ignore_eos": True, "cache_prompt": False,
            }  # fmt: skip
            reply = await client.post(f"{child.url}/completion", json=asked)
    if reply.status_code != 200:
        raise ServerRefused(f"The embedded model `{gguf.name}` was not measured: HTTP {reply.status_code}")
    timings: dict[str, Any] = reply.json()["timings"]
    return Speed(
        reads=round(float(timings["prompt_per_second"]), 1),
        writes=round(float(timings["predicted_per_second"]), 1),
        loads_s=round(loads_s, 1),
        threads=threads,
        busy=round(busy, 2),
    )


def memory_needed(gguf: Path, window: int) -> int:
    """Bytes that serving the file takes: weights, the context window, and an upper estimate of the rest."""
    found = read_pairs(gguf, ("general.architecture",))
    kind = str(found.get("general.architecture", ""))
    facts = {name.removeprefix(f"{kind}."): value for name, value in read_pairs(gguf, (f"{kind}.",)).items()}
    heads, layers = _number(facts, "attention.head_count", 1), _number(facts, "block_count", 32)
    head_size = _number(facts, "attention.key_length", _number(facts, "embedding_length", 2048) // max(heads, 1))
    per_token = 2 * 2 * layers * _number(facts, "attention.head_count_kv", heads) * head_size
    return gguf.stat().st_size + per_token * window + OVERHEAD


def _number(facts: dict[str, Any], name: str, default: int) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) and value > 0 else default
