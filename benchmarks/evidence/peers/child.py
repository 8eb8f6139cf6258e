"""Runs one framework's memory: JSON lines in, JSON lines out.

    python -m benchmarks.evidence.peers.child NAME TOKENIZER

{"do": "start", "goal": TEXT}
{"do": "take", "messages": [MESSAGE, …]}    in OpenAI's shape
{"do": "show", "variant": ROW, "budget": TOKENS}, answered by {"text": TEXT}, what would be sent
"""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from importlib import import_module

from remora.inference import EstimatedCounter, file_counter


def main(name: str, tokenizer: str) -> None:
    """Answer until the input ends. Anything else that a framework prints goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    count = lru_cache(100_000)((file_counter(tokenizer) if tokenizer else EstimatedCounter()).count)
    make = import_module(f"benchmarks.evidence.peers.{name}").MEMORIES
    memories: dict = {}
    for line in sys.stdin:
        asked = json.loads(line)
        match asked["do"]:
            case "start":
                memories = {variant: memory(asked["goal"], count) for variant, memory in make.items()}
            case "take":
                for memory in memories.values():
                    memory.take(asked["messages"])
            case "show":
                shown = memories[asked["variant"]].show(asked["budget"])
                answers.write(json.dumps({"text": "\n".join(shown)}) + "\n")
                answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:3])
