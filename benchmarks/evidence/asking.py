"""Answers of a model server to the prompts of the model check.

On a CPU this takes hours. So answers are written as they come, run by run with all memories of a run together: whatever
is there compares memories on the same turns, and the same command continues.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

OPENING = '<tool_call>\n{"name": "'
"""How Qwen begins a call. An answer that begins with it is a decision; left alone, the model often answers in words."""
_CLOSING = "</tool_call>"

Row = Mapping[str, Any]


class Server(Protocol):
    """A model that answers a prompt greedily."""

    async def answer(self, row: Row, most: int) -> str:
        """The text of the answer, with at most `most` tokens."""
        ...


@dataclass
class ChatServer:
    """Any OpenAI-compatible server, which decides by itself whether it calls."""

    url: str
    model: str
    key: str

    async def answer(self, row: Row, most: int) -> str:
        """The first native call as `<tool_call>`, or the text."""
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=self.url, api_key=self.key) as client:
            done = await client.chat.completions.create(
                model=self.model, messages=row["messages"], tools=row["tools"], temperature=0, max_tokens=most
            )
        message = done.choices[0].message
        for call in message.tool_calls or ():
            body = json.dumps({"name": call.function.name, "arguments": call.function.arguments})
            return f"<tool_call>{body}</tool_call>"
        return message.content or ""


@dataclass
class OpenedServer:
    """llama.cpp's server, which writes the prompt with the model's own template and continues an opened call."""

    url: str
    opening: str = OPENING

    async def answer(self, row: Row, most: int) -> str:
        """The opening, and what the model writes after it up to the end of the call."""
        from openai import AsyncOpenAI

        base = self.url.removesuffix("/").removesuffix("/v1")
        async with AsyncOpenAI(base_url=base, api_key="none", timeout=3600, max_retries=0) as client:
            asked = {"messages": row["messages"], "tools": row["tools"]}
            written: Any = await client.post("/apply-template", cast_to=object, body=asked)
            prompt = written["prompt"] + self.opening
            greedy = {"prompt": prompt, "n_predict": most, "temperature": 0, "cache_prompt": True, "stop": [_CLOSING]}
            done: Any = await client.post("/completion", cast_to=object, body=greedy)
        return self.opening + str(done["content"])


async def answers(
    rows: Iterable[Row], server: Server, out: Path, *, most: int, parallel: int
) -> AsyncIterator[dict[str, str]]:
    """Each prompt's answer that `out` does not hold yet, in the order of completion."""
    done = _answered(out)
    waiting = [row for row in rows if (row["id"], row["memory"]) not in done]
    gate = asyncio.Semaphore(parallel)

    async def answer(row: Row) -> dict[str, str]:
        async with gate:
            return {"id": row["id"], "memory": row["memory"], "text": await server.answer(row, most)}

    tasks = [asyncio.create_task(answer(row)) for row in waiting]
    try:
        for answered in asyncio.as_completed(tasks):
            yield await answered
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def in_runs(rows: Iterable[Row], memories: Sequence[str]) -> list[Row]:
    """The prompts of some memories (all without one), run by run in a shuffled order, memory by memory in each.

    A server's prompt cache then holds the beginning of the next prompt.
    """
    runs: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if not memories or row["memory"] in memories:
            runs.setdefault(row["id"].rpartition("#")[0], {}).setdefault(row["memory"], []).append(row)
    order = sorted(runs)
    random.Random(1).shuffle(order)
    return [row for run in order for memory in runs[run].values() for row in memory]


def _answered(out: Path) -> set[tuple[str, str]]:
    if not out.exists():
        return set()
    lines = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines() if line.strip())
    return {(line["id"], line["memory"]) for line in lines}
