"""Imports chat logs of other agents as streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from remora.analysis import (
    AssistantTurn,
    Chat,
    ChatProblem,
    read_chats,
)
from remora.app._deciding import PACKET_TOKENS
from remora.app._project import Project, counter_of
from remora.context.render import reserved_tokens
from remora.errors import ConfigError, TraceError
from remora.events import AgentEndEvent, ids_behind
from remora.ports import Clock, Decision, TokenCounter
from remora.trace import FileTrace, new_stream_id
from remora.twotrack import Identity, PromptSettings, Track, Wiring


class ZeroDurationClock:
    """Returns the time of another clock, but zero for durations: an import takes no time of the agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Imported:
    """A conversation that is now a stream."""

    agent_id: str
    source: str
    """File name and line, or file name and index."""
    goal: str
    turns: int
    calls: int
    limit: int
    """Token limit of its prompts."""


@dataclass
class Imports:
    """The result of an import."""

    streams: list[Imported] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """One sentence for each conversation that could not be read, with file and line."""


class ChatImport:
    """Records conversations that happened elsewhere as streams."""

    def __init__(self, project: Project) -> None:
        self._project = project

    async def run(self, files: Sequence[Path], *, tokenizer: Path | None = None, budget: int | None = None) -> Imports:
        """Import every conversation as a sealed stream. One that cannot be read is reported and leaves no stream."""
        counter = counter_of(tokenizer)
        done, ids = Imports(), self._import_ids()
        tokens = budget or self._project.config.runner.memory.packet_size_limit or PACKET_TOKENS
        least = reserved_tokens("account", counter.count)
        if tokens < least:
            raise ConfigError(f"A packet of {tokens} tokens is too small: expected at least {least}")
        async with self._project.writer() as writer:
            for chat in (chat for file in files for chat in _read_file(file)):
                if isinstance(chat, ChatProblem):
                    done.problems.append(str(chat))
                else:
                    done.streams.append(await self._import(chat, writer, counter, next(ids), tokens))
        return done

    def _import_ids(self) -> Iterator[str]:
        """New ids, greater than all recorded ones. The folder is listed only once."""
        yield (first := new_stream_id(self._project.state_dir, self._project.clock.now()))
        yield from ids_behind(first)

    async def _import(
        self, chat: Chat, writer: FileTrace, counter: TokenCounter, agent_id: str, budget: int
    ) -> Imported:
        clock = ZeroDurationClock(self._project.clock)
        identity = Identity(agent_id, operation="import")
        wiring = Wiring(
            identity=identity,
            goal=chat.goal,
            tools=chat.tools,
            system_prompt=chat.system,
            prompts=PromptSettings(0, style="account", calling="native"),
            writer=writer,
            blobs=self._project.blobs,
            counter=counter,
            clock=clock,
            secrets=self._project.secrets,
        )
        track = Track.of(wiring.with_packet_budget(budget))
        try:
            await _record(track, chat)
            await writer.close(identity.stream_id)
        except TraceError as error:
            hint = "Earlier conversations are imported; the stream of this one is not sealed"
            raise TraceError(f"The import stopped at {chat.source}: {error.message}", hint=hint) from error
        calls = sum(len(step.calls) for step in chat.steps if isinstance(step, AssistantTurn))
        return Imported(identity.agent_id, chat.source, track.goal, track.packet.turn, calls, track.limit)


def _read_file(file: Path) -> Iterator[Chat | ChatProblem]:
    try:
        data = file.read_bytes()
    except OSError as error:
        yield ChatProblem(f"{file}: cannot be read: {error.strerror or error}")
        return
    yield from read_chats(file.name, data)


async def _record(track: Track, chat: Chat) -> None:
    """Record every step of a conversation on both tracks, and seal the stream."""
    parent = {"relation": "import", "source": chat.source, "sha256": chat.sha256}
    await track.start(parent=parent, model={"name": chat.model} if chat.model else None)
    for step in chat.steps:
        if isinstance(step, AssistantTurn):
            await _record_turn(track, step, chat.model)
        else:
            await track.user(step.text)
    await track.end(AgentEndEvent(reason="imported"))


async def _record_turn(track: Track, step: AssistantTurn, model: str) -> None:
    await track.request()
    await track.response(Decision(calls=step.calls, text=step.text, model=model))
    for index, call in enumerate(step.calls):
        if index in step.results:
            await track.perform(call, _return(step.results[index]))
        else:
            await track.unanswered(call, "The log holds no result of this call")


def _return(result: Any) -> Callable[..., Any]:
    return lambda **_: result
