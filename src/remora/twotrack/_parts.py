"""`TrackParts`: the state of one agent's tracks, and the parts that they are built from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

from remora.context.contracts import ToolLike
from remora.context.manager import ContextManager
from remora.context.models import DecisionPacket
from remora.context.recall import RECALL
from remora.context.summarizers import is_built_in
from remora.events import Event
from remora.twotrack._handover import Handover
from remora.twotrack._offload import Offloader
from remora.twotrack._prompts import PromptBuilder
from remora.twotrack._records import Records
from remora.twotrack._replies import ReplyRecorder
from remora.twotrack._tool_results import ToolResultBuilder
from remora.twotrack._wiring import Wiring


class TrackParts(Records, ABC):
    """The state of one agent's tracks."""

    @classmethod
    def of(cls, wiring: Wiring) -> Self:
        """Both tracks with the given parts, instead of files on this machine's disk."""
        track = cls.__new__(cls)
        track._wire(wiring)
        return track

    def _wire(self, wiring: Wiring) -> None:
        secrets, guard = wiring.secrets, wiring.guard
        self.identity = wiring.identity
        self.goal = secrets.clean(wiring.goal)
        self.name = secrets.clean(wiring.name)
        self.tools = wiring.specs
        self._specs_of = wiring.specs_of
        self._recalls_itself = RECALL in self.tools
        self.path = wiring.path
        """The file of the Long Track, if it is on this machine's disk."""
        self.largest_prompt = 0
        self.last_seq = -1
        self.begun = False
        """Whether the stream exists or is being created, so that it must be sealed."""
        self.awaits_reply = False
        """Whether a prompt waits for its reply."""
        self.replied = False
        """Whether the newest recorded reply is not yet seen in an observed history."""
        self._requesting = False
        self._after_cut = False
        """Whether the newest reply was cut, and a longer one may be complete."""
        self._secrets, self._writer, self._clock, self._close = secrets, wiring.writer, wiring.clock, wiring.close
        self._offloader = Offloader(wiring.blobs, secrets)
        self._system = secrets.clean(wiring.system_prompt)
        self._prompts = PromptBuilder(self._system, self.tools, wiring.prompts, wiring.counter, self._offloader)
        self._asked = self._prompts
        """The prompts of the rung that decides now."""
        self._handover: Handover | None = None
        self.observers: list[Callable[[Event], None]] = []
        """Called with every event of the stream, recorded now or before a resume."""
        for tool, summarizer in wiring.summarizers.items():
            if not is_built_in(summarizer):
                guard.check(tool, summarizer)
        initial = self.identity.fields() | {"goal": self.goal}
        self.context = ContextManager(initial, dict(wiring.summarizers), record=self._append, clock=self._clock.now)
        self.context.set_hub_client(wiring.hub)
        self._replies = ReplyRecorder(self.context, self._offloader, self._prompts, self.tools)
        self._results = ToolResultBuilder(wiring, self.tools, self.context.summarizers)

    @property
    def packet(self) -> DecisionPacket:
        """The Short Track as it is now."""
        return self.context.packet

    @property
    def limit(self) -> int:
        """The token limit of a prompt."""
        return self._prompts.settings.limit

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The run as a chat history; empty without `keep_messages`, unless prompts are built from it."""
        return self._prompts.messages

    @property
    def repeats(self) -> int:
        """How many times in a row the latest call returned the same result."""
        return self._results.repeats

    def _configure(self, tools: Sequence[ToolLike] | None, system: str | None) -> None:
        """Offer other tools, or use another system text."""
        specs = self.tools if tools is None else self._specs_of(tools)
        text = self._prompts.system_prompt if system is None else self._secrets.clean(system)
        if specs != self.tools or text != self._prompts.system_prompt:
            self._prompts.configure(text, specs)
            self._system = text
            self.tools = self._replies.tools = self._results.tools = specs
            self._recalls_itself = RECALL in specs

    def _set_goal(self, goal: str) -> None:
        """Set the goal of a stream that does not exist yet."""
        self.goal = self._results.goal = self._secrets.clean(goal)

    @abstractmethod
    async def _append(self, drafts: Sequence[Event]) -> Sequence[Event]:
        """Write the drafts to the stream and return them as recorded."""
