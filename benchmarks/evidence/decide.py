"""Does a model decide better with it? Write a prompt for every turn and memory, and score a model's answers.

    python -m benchmarks.evidence.decide write --data FOLDER --tokenizer MODEL.gguf --out prompts.jsonl
    python -m benchmarks.evidence.decide ask prompts.jsonl --url URL --model NAME --out answers.jsonl
    python -m benchmarks.evidence.decide text prompts.jsonl --template MODEL.gguf --out texts.jsonl.gz
    python -m benchmarks.evidence.decide score prompts.jsonl answers.jsonl

A prompt is `{"id", "memory", "messages", "tools", "tokens", "grounded", "gold", …}`, and an answer is `{"id", "memory",
"text"}`. Answer greedily; anything that speaks chat with tools can do it, also a batch on a GPU. A chat template of
Hugging Face wants the `arguments` of earlier calls as objects: load them first. With llama.cpp's server, `--force`
in place of `--model` begins every answer with a call. `text` writes the prompts as such a model reads them, for
`remora_lab.trainer.answer`, which answers all of them at once on a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.evidence.answers import Answers, call_key, duels, score_answers
from benchmarks.evidence.asking import OPENING, ChatServer, OpenedServer, Server, answers, in_runs
from benchmarks.evidence.data import Suite, load, output_text
from benchmarks.evidence.messages import (
    Message,
    Shorten,
    closed,
    masked,
    message_text,
    newest,
    step_messages,
    task_only,
    whole,
)
from benchmarks.evidence.offered import by_shape, calls_by_text, derive_tools
from benchmarks.evidence.rows import Count
from benchmarks.measure import say
from remora.analysis import AssistantTurn, Chat, UserMessage, call_words, words_in
from remora.context.render import Style
from remora.inference import EstimatedCounter, file_counter
from remora.ports import Decision, TokenCounter
from remora.testing import TickingClock
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

ASK = "Your next step is one tool call. Answer with that call and nothing else."
"""Ends the system text of every prompt, so that no answer is a message to the user."""
PLAIN: dict[str, tuple[Shorten, int]] = {
    "whole history": (whole, 0),
    "newest that fit, 2,000": (newest, 2000),
    "newest that fit, 1,000": (newest, 1000),
    "masking, 1,000": (masked, 1000),
    "task only": (task_only, 1000),
}
OURS: dict[str, tuple[Style, int]] = {
    "remora chat, 1,000": ("chat", 1000),
    "remora chat, 500": ("chat", 500),
    "remora account, 1,000": ("account", 1000),
}


class Recorded:
    """A run that `TwoTrack` records step by step, as `remora trace import` does: its prompts are what it sends."""

    def __init__(self, chat: Chat, counter: TokenCounter, style: Style, budget: int) -> None:
        clock = TickingClock()
        wiring = Wiring(
            identity=Identity("01BENCHMARK"),
            goal=chat.goal,
            tools=chat.tools,
            system_prompt=chat.system,
            prompts=PromptSettings(0, style=style, calling="native"),
            writer=MemoryTrace(clock),
            blobs=MemoryBlobs(),
            counter=counter,
            clock=clock,
        )
        self._track = TwoTrack.of(wiring.with_packet_budget(budget))

    async def start(self) -> None:
        await self._track.start()

    async def take(self, step: UserMessage | AssistantTurn) -> list[Message]:
        """Record a step. Returns the prompt's messages that a turn began with, without the system message."""
        if isinstance(step, UserMessage):
            await self._track.user(step.text)
            return []
        prompt = await self._track.request()
        await self._track.response(Decision(calls=step.calls, text=step.text))
        for index, call in enumerate(step.calls):
            if index in step.results:
                await self._track.call(call, lambda *, _result=step.results[index], **_: _result)
            else:
                await self._track.unanswered(call, "The log holds no result of this call")
        return [dict(message) for message in prompt.messages[1:]]


async def prompts(suite: Suite, counter: TokenCounter) -> AsyncIterator[dict[str, Any]]:
    """A prompt for every turn with calls and every memory."""
    count = lru_cache(100_000)(counter.count)
    offered = {by_text: derive_tools(chats) for by_text, chats in by_shape(suite.chats).items()}
    for chat in suite.chats:
        async for row in _prompts_of(chat, counter, count):
            yield {"suite": suite.name, **row, "tools": offered[calls_by_text(chat)]}


async def _prompts_of(chat: Chat, counter: TokenCounter, count: Count) -> AsyncIterator[dict[str, Any]]:
    ours = {name: Recorded(chat, counter, style, budget) for name, (style, budget) in OURS.items()}
    for track in ours.values():
        await track.start()
    history: list[Message] = [{"role": "user", "content": chat.goal}]
    before, fixed, earlier, turn = words_in(chat.goal), words_in(chat.system), list[str](), 0
    for number, step in enumerate(chat.steps):
        shown = {name: await track.take(step) for name, track in ours.items()}
        if isinstance(step, AssistantTurn) and step.calls:
            turn += 1
            needed = (call_words(step.calls) & before) - fixed
            shown |= {name: closed(shorten(history, budget, count)) for name, (shorten, budget) in PLAIN.items()}
            for name, messages in shown.items():
                head = {"id": f"{chat.source}#{turn}", "memory": name}
                yield head | _row(chat.system, messages, step, needed, count) | {"earlier": list(earlier)}
            earlier += [call_key(call.tool, call.args) for call in step.calls]
        history += step_messages(step, number)
        before |= _words(step)


def _row(system: str, messages: list[Message], step: AssistantTurn, needed: set[str], count: Count) -> dict[str, Any]:
    texts = [message_text(message) for message in messages]
    missing = needed - words_in("\n".join(texts))
    return {
        "messages": [{"role": "system", "content": f"{system}\n\n{ASK}"}, *messages],
        "tokens": sum(map(count, texts)),
        "grounded": not missing if needed else None,
        "recall": 1 - len(missing) / len(needed) if needed else None,
        "gold": [{"name": call.tool, "arguments": call.args} for call in step.calls],
    }


def _words(step: UserMessage | AssistantTurn) -> set[str]:
    if isinstance(step, UserMessage):
        return words_in(step.text)
    found = call_words(step.calls, names=True)
    return found.union(*(words_in(output_text(result)) for result in step.results.values()))


async def _write(asked: argparse.Namespace) -> None:
    counter: TokenCounter = file_counter(asked.tokenizer) if asked.tokenizer else EstimatedCounter()
    written = 0
    with asked.out.open("w", encoding="utf-8") as file:
        for suite in load(asked.data):
            say(f"{suite.name}: {len(suite.chats)} runs, {suite.turns} turns")
            async for row in prompts(suite, counter):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                written += 1
    say(f"{written} prompts are in {asked.out}")


async def _ask(asked: argparse.Namespace) -> None:
    server: Server = OpenedServer(asked.url) if asked.force else ChatServer(asked.url, asked.model, asked.key)
    rows = in_runs(_lines(asked.prompts), asked.memory)
    number = 0
    with asked.out.open("a", encoding="utf-8") as file:
        async for answer in answers(rows, server, asked.out, most=asked.max_tokens, parallel=asked.parallel):
            file.write(json.dumps(answer, ensure_ascii=False) + "\n")
            file.flush()
            number += 1
            if not number % 100:
                say(f"{number} answers")
    say(f"answers are in {asked.out}")


def _text(asked: argparse.Namespace) -> None:
    from benchmarks.evidence.templates import template_of

    write = template_of(asked.template)
    with gzip.open(asked.out, "wt", encoding="utf-8") as file:
        for row in _lines(asked.prompts):
            line = {"id": row["id"], "memory": row["memory"], "text": write(row), "begin": OPENING}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    say(f"prompts as text are in {asked.out}")


def _score(asked: argparse.Namespace) -> None:
    texts = {(row["id"], row["memory"]): row["text"] for row in _lines(asked.answers)}
    scores = score_answers(_lines(asked.prompts), texts)
    if not scores:
        raise SystemExit(f"{asked.answers}: no answer belongs to a prompt of {asked.prompts}")
    results = [{"suite": suite, "memory": memory} | kept.row() for (suite, memory), kept in scores.items()]
    if asked.json:
        print(json.dumps(results, indent=1))
        return
    for suite in dict.fromkeys(suite for suite, _ in scores):
        print(table(suite, {memory: kept for (name, memory), kept in scores.items() if name == suite}))


def table(suite: str, scores: Mapping[str, Answers]) -> str:
    """The scores of one suite as Markdown. The last column compares turn by turn with the whole history."""
    base = "whole history"
    compared = duels(scores, base) if base in scores else {}
    turns = max(kept.turns for kept in scores.values())
    lines = [
        f"\n{suite}: {turns} turns\n",
        "| memory | tokens | recall / grounded | exact call | where grounded | elsewhere | right tool | valid "
        "| repeated | better / worse than whole |",
        "|---" * 10 + "|",
    ]
    for memory, kept in scores.items():
        row = kept.row()
        better, worse = compared.get(memory, (0, 0))
        cells = [f"{row['tokens']:,}", f"{row['recall']:.2f} / {_percent(row['grounded'])}"]
        cells += [
            _percent(row[name]) for name in ("exact", "exact_grounded", "exact_other", "tool", "valid", "repeated")
        ]
        lines.append(f"| {memory} | {' | '.join(cells)} | {better} / {worse} |")
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def main(argv: Sequence[str] | None = None) -> None:
    """Do what the command says."""
    asked = _arguments(argv)
    if asked.command == "score":
        _score(asked)
    elif asked.command == "text":
        _text(asked)
    else:
        asyncio.run(_write(asked) if asked.command == "write" else _ask(asked))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks.evidence.decide", description=__doc__, formatter_class=shape)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write the prompts")
    write.add_argument("--data", type=Path, required=True, help="a folder of chat logs, one folder a suite")
    write.add_argument("--tokenizer", type=Path, help="a GGUF file or a `tokenizer.json`; without it, an estimate")
    write.add_argument("--out", type=Path, required=True)
    ask = commands.add_parser("ask", help="let an OpenAI-compatible server answer them; continues a file of answers")
    ask.add_argument("prompts", type=Path)
    ask.add_argument("--url", required=True)
    how = ask.add_mutually_exclusive_group(required=True)
    how.add_argument("--model")
    how.add_argument(
        "--force", action="store_true", help="llama.cpp's server: every answer begins with Qwen's `<tool_call>`"
    )
    ask.add_argument("--memory", action="append", default=[], help="only this one; may be repeated")
    ask.add_argument("--key", default="none")
    ask.add_argument("--parallel", type=int, default=4)
    ask.add_argument("--max-tokens", type=int, default=256)
    ask.add_argument("--out", type=Path, required=True)
    text = commands.add_parser("text", help="write them as text that begins a call, by a model's own chat template")
    text.add_argument("prompts", type=Path)
    text.add_argument("--template", type=Path, required=True, help="a GGUF file")
    text.add_argument("--out", type=Path, required=True, help="a file that ends in .gz")
    score = commands.add_parser("score", help="score the answers")
    score.add_argument("prompts", type=Path)
    score.add_argument("answers", type=Path)
    score.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
