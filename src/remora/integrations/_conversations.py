"""The streams of conversations: every run of a framework is one stream, and the next run continues it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from remora.app import latest_stream
from remora.context.calls import BadCall, read_call, text_of, usage_of
from remora.errors import UsageError
from remora.ports import Decision
from remora.twotrack import TrackSettings, TwoTrack

SHOWN = "Each turn shows the run so far, with the least important parts left out. Go on from there."
ABANDONED = "The next run of the conversation began before this one had ended"


class Conversations:
    """Opens the stream of each run. `settings` are those of `remora.TwoTrack`, but for tools and system text."""

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


class Replaced:
    """An object with some of its attributes replaced; `call` is what calling it does."""

    def __init__(self, inner: Any, **replaced: Any) -> None:
        self._inner = inner
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


def _belongs(track: TwoTrack, name: str, after: str) -> bool:
    return track.identity.agent_id == after or bool(name and track.name == name)


def _before_last_words(messages: list[Any]) -> list[Any]:
    """The messages before the last ones of a person."""
    end = len(messages)
    while end and messages[end - 1].get("role") == "user":
        end -= 1
    return messages[:end]


def decision(text: Any, calls: Iterable[object] = (), *, model: str = "", usage: Any = None) -> Decision:
    """A reply with calls that the framework accepts or refuses itself."""
    read = [read_call(call) for call in calls]
    made = tuple(each.call if isinstance(each, BadCall) else each for each in read)
    return Decision(calls=made, text=text_of(text), model=model or "", usage=usage_of(usage))


def system_text(*parts: str | None) -> str:
    """The framework's system text, followed by how to read the account of the run."""
    return "\n\n".join(part.strip() for part in (*parts, SHOWN) if part and part.strip())


def plain(value: Any) -> Any:
    """A tool's value as JSON types, where its class can say it."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else value
