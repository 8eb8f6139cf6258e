"""Both tracks, and an emitter, on this machine's disk, for those who keep their own loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from remora.app._project import STATE_DIR, SystemClock, counter_of
from remora.context.checks import Extension
from remora.context.contracts import ToolLike
from remora.context.render import Calling
from remora.context.secrets import Secrets
from remora.context.summarizers import FALLBACK, Summarizer, get_default_summarizers
from remora.events import AgentEndEvent
from remora.ports import SummaryGuard, TokenCounter
from remora.trace import FileBlobs, FileTrace, StreamEmitter, new_stream_id
from remora.twotrack import Identity, TwoTrack


class LocalTwoTrack(TwoTrack):
    """Both tracks for a loop of your own, on this machine's disk: `remora.TwoTrack`.

    `tools` are functions with `@remora.tool`, `ToolSpec`s, or dicts in OpenAI's shape. With `calling="native"` they are
    sent beside the messages, by `prompt.openai_tools()`; with `"text"` the prompt lists them and asks for a call as
    JSON.

    `counter` counts the tokens of every prompt: `remora.inference` has `GgufCounter` and `JsonCounter` for a
    tokenizer's file and `ServerCounter` for a server; without one they are estimated.
    """

    def __init__(
        self,
        goal: str,
        *,
        tools: Sequence[ToolLike] = (),
        budget: int = 1000,
        system_prompt: str = "",
        operation: str = "",
        node_id: str = "",
        state_dir: Path | str = STATE_DIR,
        summarizers: dict[str, Summarizer] | None = None,
        secrets: Mapping[str, str] | None = None,
        calling: Calling = "native",
        guard: SummaryGuard | None = None,
        counter: TokenCounter | None = None,
        extensions: Mapping[str, Extension] | None = None,
    ) -> None:
        from remora.sandbox import SummaryChild

        clock, folder = SystemClock(), Path(state_dir)
        identity = Identity(new_stream_id(folder, clock.now()), operation=operation, node_id=node_id)
        self.path = folder / f"{identity.stream_id}.jsonl"
        """Where the Long Track lies."""
        self._child = SummaryChild()
        super().__init__(
            identity,
            goal=goal,
            tools=tools,
            system_prompt=system_prompt,
            limit=budget,
            writer=FileTrace(folder, clock=clock),
            blobs=FileBlobs(folder),
            counter=counter or counter_of(None),
            extensions=extensions,
            clock=clock,
            summarizers=summarizers if summarizers is not None else get_default_summarizers(),
            secrets=Secrets(secrets),
            calling=calling,
            guard=guard or self._child,
            fallback=FALLBACK,
        )

    async def end(self, event: AgentEndEvent) -> str:
        """Seal the stream and give its head. No child process is left."""
        try:
            return await super().end(event)
        finally:
            await self._child.close()


class JsonlEventEmitter(StreamEmitter):
    """Emits events into a stream of this machine's disk: `remora.events.JsonlEventEmitter`."""

    def __init__(self, state_dir: Path | str = STATE_DIR, agent_id: str | None = None) -> None:
        clock = SystemClock()
        super().__init__(state_dir, agent_id or new_stream_id(Path(state_dir), clock.now()), clock=clock)
