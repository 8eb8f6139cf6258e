"""Imports logs of other agents as streams."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

from remora.analysis.logs import FORMATS, NO_REPLY, Conversation, LogFile, LogProblem, read_log
from remora.app._deciding import PACKET_TOKENS
from remora.app._import_known import EarlierImports
from remora.app._import_track import ImportTrack
from remora.app._log_files import LogPath, archived, find_logs, is_archive, open_log
from remora.app._project import Project, counter_of
from remora.context.render import Style, reserved_tokens
from remora.context.text import number
from remora.errors import ConfigError, TraceError
from remora.events import ids_behind
from remora.ports import Clock, TokenCounter
from remora.trace import StreamWriter
from remora.twotrack import Identity, PromptSettings, Wiring

SEALING = 16
"""Streams that wait for the disk while the next conversations are read."""
NOTES = 50
"""Notices about single conversations that are told. Their streams have all of them."""
Progress = Callable[[str, int, int], None]
"""Called with the file that is read, the bytes done, and all bytes."""


class ZeroDurationClock:
    """Returns the time of another clock, but zero for durations: an import takes no time of the agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return 0.0


@dataclass(frozen=True)
class ImportSettings:
    """How logs are imported."""

    tokenizer: Path | None = None
    """GGUF file or `tokenizer.json` to count tokens with; without it, they are estimated."""
    budget: int | None = None
    """Tokens of the packet, without the log's system text and tools."""
    packets: bool = False
    """Whether to record evidence, and at every turn the prompt that a packet would have been. Several times slower.

    Without it, commands that need a prompt build it from the stream (`UnrecordedPrompts`).
    """
    format: str = ""
    """Which program wrote the logs; empty to find out by looking."""
    again: bool = False
    """Whether to import conversations that were imported before."""


@dataclass(frozen=True)
class Imported:
    """A conversation that is now a stream."""

    agent_id: str
    source: str
    """File name, and line or index where the file has several."""
    goal: str
    turns: int
    calls: int
    limit: int
    """Token limit of its prompts."""
    format: str = ""
    parent: str = ""
    """The stream of the agent that started this one."""
    title: str = ""


@dataclass
class Imports:
    """The result of an import."""

    streams: list[Imported] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """One sentence for each conversation that could not be read, with file and line."""
    notices: list[str] = field(default_factory=list)
    """What was left out: kinds of records that were not understood, and files of folders that are no logs."""
    earlier: list[str] = field(default_factory=list)
    """The agents of conversations that were imported before, from logs with the same bytes."""


@dataclass(frozen=True)
class _Launch:
    """Where a session was started: the stream, and the seq of the call; -1 if the log names no call."""

    agent_id: str
    seq: int = -1


class LogImport:
    """Records conversations that happened elsewhere as streams."""

    def __init__(self, project: Project, settings: ImportSettings, progress: Progress | None = None) -> None:
        self._project, self._settings = project, settings
        self._progress = progress or (lambda what, done, total: None)
        self._done = Imports()
        self._unknown: Counter[tuple[str, str]] = Counter()
        self._others: dict[Path, str] = {}
        """Files of folders that hold no conversation, with their kind."""
        self._streams: dict[str, str] = {}
        """By the id of a session that was imported, its stream."""
        self._launches: dict[str, _Launch] = {}
        """By the id of a session, where it was started."""
        self._notes: list[str] = []
        self._sealing: set[asyncio.Task[None]] = set()
        self._unanswered = 0
        """Conversations in files of folders that no assistant replied to."""
        self._grown = 0
        """Sessions that were imported before, from an earlier state of their log."""

    async def run(self, paths: Sequence[Path]) -> Imports:
        """Import every conversation as a sealed stream. One that cannot be read is reported and leaves no stream."""
        if self._settings.format and self._settings.format not in FORMATS:
            raise ConfigError(f"Format `{self._settings.format}` is not known: expected one of {', '.join(FORMATS)}")
        counter, tokens = counter_of(self._settings.tokenizer), self._tokens()
        least = reserved_tokens("account", counter.count)
        if tokens < least:
            raise ConfigError(f"A packet of {tokens} tokens is too small: expected at least {least}")
        logs, self._done.notices = find_logs(paths)
        total, before, ids = sum(log.size for log in logs), 0, self._import_ids()
        async with self._project.writer(sync="end") as writer:
            try:
                for log in logs:
                    self._progress(log.path.name, before, total)
                    await self._read(log, writer, counter, ids, tokens)
                    before += log.size
                await self._sealed(0)
            finally:
                if self._sealing:  # what is whole becomes a stream, also after Ctrl-C
                    await asyncio.wait(self._sealing)
        self._done.notices += self._notices()
        return self._done

    def _tokens(self) -> int:
        return self._settings.budget or self._project.config.runner.memory.packet_size_limit or PACKET_TOKENS

    def _import_ids(self) -> Iterator[str]:
        """New ids, greater than all recorded ones. The folder is listed only once."""
        yield (first := self._project.library.new_id(self._project.clock.now()))
        yield from ids_behind(first)

    async def _read(
        self, log: LogPath, writer: StreamWriter, counter: TokenCounter, ids: Iterator[str], tokens: int
    ) -> None:
        try:
            with open_log(log) as stream:
                sha256 = ""
                for found in self._conversations(log, stream):
                    if isinstance(found, LogProblem):
                        self._problem(log, str(found))
                        continue
                    sha256 = sha256 or _digest(stream)
                    at = found.source.removeprefix(log.path.name)
                    if not self._is_known(found, sha256, at):
                        await self._import(found, {"sha256": sha256, "at": at}, writer, counter, next(ids), tokens)
        except LogProblem as problem:
            self._problem(log, str(problem))
        except OSError as error:
            self._done.problems.append(f"{log.path}: cannot be read: {error.strerror or error}")

    def _is_known(self, found: Conversation, sha256: str, at: str) -> bool:
        """Whether the conversation was imported before. Then sub-agents that are new still find their parent."""
        if self._settings.again:
            return False
        agent_id = self._earlier.find(sha256, found.source, at)
        if agent_id:
            self._done.earlier.append(agent_id)
            self._note_session(found, agent_id, {})
        elif self._earlier.of_session(found.session):
            self._grown += 1
        return bool(agent_id)

    @cached_property
    def _earlier(self) -> EarlierImports:
        return EarlierImports(self._project.state_dir)

    def _conversations(self, log: LogPath, stream: BinaryIO) -> Iterator[Conversation | LogProblem]:
        name = log.path.name
        if not is_archive(stream):
            yield from read_log(LogFile(name, stream), self._settings.format)
            return
        for sample in archived(name, stream):
            if isinstance(sample, LogProblem):
                yield sample
            else:
                yield from read_log(sample, self._settings.format or "chat")

    def _problem(self, log: LogPath, problem: str) -> None:
        """A file in a folder that holds no conversation at all is something else, and a session that nobody answered
        has nothing to read: no mistakes."""
        if not log.named and "no conversation:" in problem:
            self._others[log.path] = log.path.suffix
        elif not log.named and problem.endswith(NO_REPLY):
            self._unanswered += 1
        else:
            self._done.problems.append(problem if log.named else f"{log.path.parent / problem}")

    async def _import(
        self,
        found: Conversation,
        file: Mapping[str, str],
        writer: StreamWriter,
        counter: TokenCounter,
        agent_id: str,
        tokens: int,
    ) -> None:
        identity, packets = Identity(agent_id, operation="import"), self._settings.packets
        style: Style = "account" if packets else "json"
        wiring = Wiring(
            identity=identity,
            goal=found.goal,
            tools=found.tools,
            system_prompt=found.system,
            prompts=PromptSettings(0, style=style, calling="native", are_sent=False),
            writer=writer,
            blobs=self._project.blobs,
            counter=counter,
            clock=ZeroDurationClock(self._project.clock),
            secrets=self._project.secrets,
            evidence=packets,
        )
        track = ImportTrack.of(wiring.with_packet_budget(tokens))
        parent = self._parent(found, file)
        try:
            await track.record(found, parent, packets=packets)
        except asyncio.CancelledError:
            await writer.discard(identity.stream_id)  # the log still has all of it
            raise
        except LogProblem as problem:
            await writer.discard(identity.stream_id)
            self._done.problems.append(f"{found.source}: changed while it was read: {problem}")
            return
        except TraceError as error:
            raise _stopped(found, error) from error
        self._sealing.add(asyncio.create_task(_seal(found, track, writer)))
        self._note(found, track, parent)
        self._earlier.add(parent, identity.agent_id)
        await self._sealed(SEALING)

    async def _sealed(self, most: int) -> None:
        """Wait until at most so many streams are being sealed. Raises what one of them raised."""
        while len(self._sealing) > most:
            done, self._sealing = await asyncio.wait(self._sealing, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task

    def _parent(self, found: Conversation, file: Mapping[str, str]) -> dict[str, Any]:
        """Where the stream comes from: the log, and the stream of the agent that started this one."""
        facts = {"source": found.source, **file, "format": found.format, "session": found.session}
        facts |= {"title": found.title, "started": found.started}
        fields: dict[str, Any] = {"relation": "import"} | {key: value for key, value in facts.items() if value}
        above = self._launches.get(found.session)
        if above is None and found.parent and found.parent.session in self._streams:
            above = _Launch(self._streams[found.parent.session])
        if above is None:
            return fields
        return (
            fields | {"relation": "child", "agent_id": above.agent_id} | ({"seq": above.seq} if above.seq >= 0 else {})
        )

    def _note_session(self, found: Conversation, agent_id: str, seqs: Mapping[str, int]) -> None:
        """Remember a session's stream, and where in it other sessions were started."""
        if found.session:
            self._streams.setdefault(found.session, agent_id)
        for session, call_id in filter(itemgetter(0), found.launches.items()):
            self._launches.setdefault(session, _Launch(agent_id, seqs.get(call_id, -1)))

    def _note(self, found: Conversation, track: ImportTrack, parent: dict[str, Any]) -> None:
        self._note_session(found, track.identity.agent_id, track.call_seqs)
        self._notes += [f"{found.source}: {sentence}" for _, sentence in found.notices]
        for kind, count in found.unknown.items():
            self._unknown[found.format, kind] += count
        self._done.streams.append(
            Imported(
                track.identity.agent_id,
                found.source,
                track.goal,
                track.packet.turn,
                found.calls,
                track.limit,
                found.format,
                parent.get("agent_id", ""),
                found.title,
            )
        )

    def _notices(self) -> list[str]:
        known, grown = len(self._done.earlier), self._grown
        notices: list[str] = []
        if known:
            notices.append(f"{number(known, 'conversation')} imported before: not imported again without `--again`")
        if grown:
            notices.append(f"{number(grown, 'session')} imported before, from a shorter log: now also as a new stream")
        for kind, count in sorted(Counter(self._others.values()).items()):
            notices.append(f"{number(count, f'{kind} file')} without a conversation")
        if self._unanswered:
            notices.append(f"{number(self._unanswered, 'conversation')} without a reply of an assistant: not imported")
        unknown = sorted(self._unknown.items())
        return (
            notices
            + self._notes[:NOTES]
            + ([f"{len(self._notes) - NOTES:,} more notices are in the streams"] if len(self._notes) > NOTES else [])
            + [f"{form}: {count} × `{kind}` not understood, left out" for (form, kind), count in unknown]
        )


async def _seal(found: Conversation, track: ImportTrack, writer: StreamWriter) -> None:
    try:
        await track.seal()
        await writer.close(track.identity.stream_id)
    except TraceError as error:
        raise _stopped(found, error) from error


def _stopped(found: Conversation, error: TraceError) -> TraceError:
    hint = "Earlier conversations are imported; the stream of this one is not sealed"
    return TraceError(f"The import stopped at {found.source}: {error.message}", hint=hint)


def _digest(stream: BinaryIO) -> str:
    """The SHA-256 of a whole file."""
    seen = hashlib.sha256()
    stream.seek(0)
    while data := stream.read(1 << 20):
        seen.update(data)
    return f"sha256:{seen.hexdigest()}"
