"""What the adapters share: the streams of conversations, and the replies of frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from remora import sync
from remora.app import latest_stream
from remora.context.calls import get, text_of, usage_of
from remora.context.chat import Reply, read_reply
from remora.errors import UsageError
from remora.ports import Decision
from remora.sync import LoopThread
from remora.twotrack import TrackSettings, TwoTrack

SHOWN = "Each turn shows the run so far, with the least important parts left out. Go on from there."
ABANDONED = "The next run of the conversation began before this one had ended"


class Conversations:
    """Opens the stream of each run, which continues that of the run before in the same conversation.

    `settings` are those of `remora.TwoTrack`, but for tools and system text.
    """

    def __init__(self, settings: TrackSettings) -> None:
        for taken in ("tools", "system_prompt", "calling"):
            if taken in settings:
                raise UsageError(f"`{taken}` cannot be set here: the framework provides it")
        self._settings = settings
        self._state_dir = settings.get("state_dir", ".agentfs")
        self.active: dict[str, TwoTrack] = {}
        """Runs that have not ended, by the ids of their streams."""

    async def begin(
        self, text: str = "", *, name: str = "", after: str = "", history: Iterable[Any] | None = None
    ) -> TwoTrack:
        """Open the stream of a new run, which continues stream `after`, or else the newest with this `name`.

        A person said `text`, or the last messages of `history` if it is given.
        """
        for earlier in [each for each in self.active.values() if _belongs(each, name, after)]:
            await self.end(earlier, ABANDONED)
        parent = after or (latest_stream(self._state_dir, name) if name else None)
        settings: TrackSettings = {**self._settings, "name": name or self._settings.get("name", "")}
        track = TwoTrack.continue_(parent, **settings) if parent else TwoTrack(text, **settings)
        messages = [*(history or ())]
        if parent or history is None:
            await track.open()
        if parent:
            track.skip(_before_last_words(messages))
            if text:
                await track.user(text)
        if history is not None:
            await track.observe(messages)
        self.active[track.identity.agent_id] = track
        return track

    async def get(self, stream: str) -> TwoTrack:
        """The run of this stream. If this process does not have it, a new stream continues it."""
        if (track := self.active.get(stream)) is None or track.closed:
            track = TwoTrack.continue_(stream, **self._settings)
            self.active[stream] = await track.open()
        return track

    async def end(self, track: TwoTrack, error: BaseException | str | None = None) -> None:
        """Seal the stream of a run."""
        self.active = {stream: each for stream, each in self.active.items() if each is not track}
        await track.close(error)

    async def close(self) -> None:
        """Seal the streams of runs that did not end."""
        for track in [*self.active.values()]:
            await self.end(track, "The run did not end")


class BlockTracks:
    """The tracks of one block or run of a conversation, for adapters that have one at a time."""

    def __init__(self, conversation: str, settings: TrackSettings) -> None:
        self.conversation = conversation
        self.conversations = Conversations(settings)
        self._track: TwoTrack | None = None

    @property
    def track(self) -> TwoTrack:
        """Both tracks of the current run, from its first request of the model on."""
        if self._track is None:
            raise UsageError("There is no run yet: both tracks exist from its first request of the model on")
        return self._track

    async def _begin(self, text: str = "", history: Iterable[Any] | None = None, name: str = "") -> None:
        name = name or self.conversation
        self._track = await self.conversations.begin(text, name=name, history=history)

    async def _end(self, error: BaseException | None = None) -> None:
        """Seal the stream, if there is one, also if this task is being cancelled."""
        if self._track is not None:
            await asyncio.shield(self.conversations.end(self._track, error))

    @asynccontextmanager
    async def _run(self, text: str, name: str) -> AsyncIterator[None]:
        """One run: its stream is sealed at the end, with the exception that ended it."""
        await self._begin(text, name=name)
        try:
            yield
        except BaseException as error:
            await self._end(error)
            raise
        await self._end()


class SyncBlockTracks(BlockTracks):
    """`BlockTracks` for frameworks without `async`: the tracks live on a thread of their own."""

    def __init__(self, conversation: str, settings: TrackSettings) -> None:
        super().__init__(conversation, settings)
        self._thread = LoopThread()

    @property
    def twin(self) -> sync.TwoTrack:
        """`track` without `await`."""
        return sync.TwoTrack.of(self.track, self._thread)

    def _open(self, text: str) -> None:
        self._thread.run(self._begin(text))

    def _close(self, error: BaseException | None) -> None:
        self._thread.run(self._end(error))
        self._thread.stop()


def _belongs(track: TwoTrack, name: str, after: str) -> bool:
    return track.identity.agent_id == after or bool(name and track.name == name)


def _before_last_words(messages: list[Any]) -> list[Any]:
    """The messages before the last ones of a person."""
    end = len(messages)
    while end and messages[end - 1].get("role") == "user":
        end -= 1
    return messages[:end]


def decision(reply: Reply, calls: Iterable[object] | None = None, *, model: Any = None, usage: Any = None) -> Decision:
    """A reply with calls that the framework accepts or refuses itself. `usage` may be in the reply, under any name."""
    read = read_reply(reply, (), turn=0, calls=calls)
    made = (*read.calls, *(bad.call for bad in read.bad))
    usage = usage or get(reply, "usage") or get(reply, "usage_metadata") or get(reply, "token_usage")
    model = model or read.model or get(get(reply, "response_metadata"), "model_name")
    return replace(read, calls=made, bad=(), model=text_of(model), usage=usage_of(usage))


def system_text(*parts: str | None) -> str:
    """The framework's system text, followed by how to read the account of the run."""
    return "\n\n".join(part.strip() for part in (*parts, SHOWN) if part and part.strip())
