"""Training rows from a suite: the oracle drives the real tools; each run gives rows on packets and on chat history."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from remora.app import Deciders, Project, deciders, weights_counter
from remora.config import Config, MemoryConfig, RunnerConfig, ServerConfig
from remora.context.contracts import ToolSpec
from remora.context.history import HISTORY, Chat, History
from remora.context.render import RENDERERS
from remora.errors import BudgetError
from remora.events import AgentStartEvent, Event, ModelRequestEvent, ToolResultEvent, readable, unpack
from remora.ports import TokenCounter, blob_limit
from remora_lab.bench.shadow import TaskOracle
from remora_lab.bench.suite import Suite
from remora_lab.bench.tasks import Task
from remora_lab.bench.trial import write_task
from remora_lab.train._episodes import Episode, variation
from remora_lab.train._rows import TrainingRow, answer_text
from remora_lab.train._trace_rows import tools_of
from remora_lab.train.synthetic import Dice

DEADLINE_S = 120.0
MAX_TURNS = 20
CUT = 1000
"""Tokens to which every other chat is cut, as the bench does."""


@dataclass(frozen=True)
class EpisodeRows:
    """The rows of one episode, as packets and as chats."""

    task: Task
    packets: list[TrainingRow]
    chats: list[TrainingRow]


async def suite_rows(
    suite: Suite,
    tasks: Sequence[Task],
    oracle: Callable[[Task], TaskOracle],
    *,
    episodes: int,
    seed: int,
    jobs: int = 1,
) -> AsyncIterator[EpisodeRows]:
    """So many episodes of each task, several at once; each as it ends."""
    gate = asyncio.Semaphore(jobs)
    async with deciders(ServerConfig(server="first-candidate")) as found:
        counter = weights_counter(ServerConfig())
        found = replace(found, counter=counter) if counter else found

        async def play(task: Task, number: int) -> EpisodeRows:
            dice = Dice(f"{seed} {task.id} {number}")
            episode = Episode(task, oracle(task), variation(dice, number), dice)
            async with gate:
                return await _run_episode(episode, suite.agents, found, f"{task.id}-{seed}-{number}")

        playing = [asyncio.create_task(play(task, number)) for number in range(episodes) for task in tasks]
        try:
            for made in asyncio.as_completed(playing):
                yield await made
        finally:
            for each in playing:
                each.cancel()
            await asyncio.gather(*playing, return_exceptions=True)


async def _run_episode(episode: Episode, agents: Path | None, found: Deciders, name: str) -> EpisodeRows:
    with tempfile.TemporaryDirectory(prefix="remora-train-") as folder:
        root = Path(folder, "project")
        write_task(episode.task, root)
        app = Project(root, Path(folder, "state"), _config(episode.how.limit, agents))
        task = episode.task
        wanted = f"{task.path}:{task.node}" if task.node else task.path
        plan = app.runs.plan([root / task.path], [task.operation], lambda node: node.node_id == wanted)
        results = [result async for result in app.runs.run(plan, overrides=episode.instead(found))]
        chats = [row async for row in _chats(app, results[0].agent_id, episode, found.counter, name)] if results else []
    return EpisodeRows(task, list(_packets(episode, name)), chats)


def _config(limit: int, agents: Path | None) -> Config:
    memory = MemoryConfig(packet_size_limit=limit)
    config = Config(runner=RunnerConfig(memory=memory, deadline_s=DEADLINE_S, max_turns=MAX_TURNS, by_rule=False))
    return config.model_copy(update={"agents_dir": agents}) if agents else config


def _packets(episode: Episode, name: str) -> Iterator[TrainingRow]:
    for turn, (prompt, right) in episode.labels.items():
        answer = answer_text(right.tool, right.args, prompt.tools)
        if answer is not None:
            renderer = RENDERERS[episode.how.style]
            yield TrainingRow(f"{name}/{turn}", "suite", episode.task.operation, renderer, prompt.messages, answer)


async def _chats(
    app: Project, agent_id: str, episode: Episode, counter: TokenCounter, name: str
) -> AsyncIterator[TrainingRow]:
    """The same turns as chat history would have shown them: all of it, or cut."""
    events = list(app.library.events(agent_id))
    start = next(event for event in events if isinstance(event, AgentStartEvent))
    tools, system = tools_of(start), str(start.definition.get("system_prompt", ""))
    history = History("text", counter)
    for event in events:
        if isinstance(event, ModelRequestEvent) and event.turn in episode.labels:
            chat = _chat(history, system, tools, cut=episode.dice.maybe(0.5))
            right = episode.labels[event.turn][1]
            answer = answer_text(right.tool, right.args, tools)
            if answer is not None:
                where = f"{name}-chat/{event.turn}"
                yield TrainingRow(where, "suite", episode.task.operation, HISTORY, chat.messages, answer)
        history.take(event, await _raw(app, event))


def _chat(history: History, system: str, tools: Sequence[ToolSpec], *, cut: bool) -> Chat:
    try:
        return history.prompt(system, tools, calling="text", limit=CUT if cut else None, cut=cut)
    except BudgetError:  # a single result was larger than that
        return history.prompt(system, tools, calling="text", limit=None, cut=False)


async def _raw(app: Project, event: Event) -> str:
    if not isinstance(event, ToolResultEvent):
        return ""
    value = event.raw
    if event.raw_ref is not None:
        data = await app.blobs.get(event.raw_ref.blob, limit=blob_limit(event.raw_ref))
        value = unpack(data, event.raw_ref.encoding)
    return readable(value)
