"""The prompts of one run, each within its limit and with the receipt that the stream keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from remora.context.budget import check_limit
from remora.context.contracts import ToolSpec
from remora.context.history import HISTORY, Chat, History
from remora.context.models import DecisionPacket
from remora.context.render import RENDERERS, Calling, Rendered, Style, fixed_tokens, render, system_text
from remora.events import Event, ModelRequestEvent, NoticeEvent, canonical, digest
from remora.keeping import Keeper
from remora.ports import TokenCounter

Memory = Literal["packet", "history", "cut history"]
"""What a prompt is made of: the packet, or for comparison the whole chat, or as much of it as fits."""

CUT_EXACT, CUT_ESTIMATED = 0.8, 0.2
"""Shares of our count below which a server must have cut the prompt. An estimate may be far above the truth."""


@dataclass(frozen=True)
class Manner:
    """How prompts are made: settings that do not change during a run."""

    limit: int
    style: Style = "json"
    calling: Calling = "text"
    memory: Memory = "packet"
    keep_messages: bool = False
    """Whether the run is also kept as a chat, for debugging."""

    @property
    def renderer(self) -> str:
        """The version of what is rendered, as streams name it."""
        return RENDERERS[self.style] if self.memory == "packet" else HISTORY

    def misfits(self, model: Mapping[str, Any], operation: str) -> list[NoticeEvent]:
        """Notices where the model's adapter has learned to read other prompts than these, or on other weights."""
        adapter = model.get("adapters", {}).get(operation, model.get("adapter")) or {}
        file, learned, base = adapter.get("file"), adapter.get("renderers", ()), adapter.get("trained_on")
        notices = []
        if learned and self.renderer not in learned:
            message = f"Adapter {file} was trained for prompts of {', '.join(learned)}, not of {self.renderer}"
            notices.append(NoticeEvent(code="adapter_renderer", message=message))
        if base:
            message = f"Adapter {file} was trained on other weights ({base}): expect worse choices, or train it anew"
            notices.append(NoticeEvent(code="adapter_weights", message=message))
        return notices


class Prompting:
    """Makes prompts. Raises `BudgetError` at once if one could ever be over the limit."""

    def __init__(
        self, system_prompt: str, tools: Sequence[ToolSpec], manner: Manner, counter: TokenCounter, keeper: Keeper
    ) -> None:
        self.manner = manner
        self.counter = counter
        self._system_prompt = system_prompt
        self._tools = tools
        self._keeper = keeper
        kept = manner.memory != "packet" or manner.keep_messages
        self._history = History(manner.calling, counter) if kept else None
        self._counted = 0
        beside = tools if manner.calling == "native" else ()
        fixed = fixed_tokens(system_text(system_prompt, tools, manner.calling), counter, beside)
        check_limit(fixed, manner.limit, counter.count)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The run as a chat, where it is kept as one."""
        return self._history.messages if self._history else []

    def take(self, event: Event, raw: str) -> None:
        """The event is part of what was said. `raw` is what a tool returned, in full."""
        if self._history is not None:
            self._history.take(event, raw)

    async def make(
        self, packet: DecisionPacket, offered: Sequence[ToolSpec]
    ) -> tuple[tuple[Mapping[str, Any], ...], ModelRequestEvent]:
        """The messages of a prompt, and its receipt, of which the large parts are durable."""
        made = self._made(packet)
        self._counted = made.tokens["total"]
        receipt = ModelRequestEvent(
            packet_sha256=digest(canonical(packet)),
            prompt_sha256=digest(canonical(made.messages)),
            messages=await self._keeper.messages(made.messages),
            tokens=made.tokens,
            limit=self.manner.limit,
            left_out=made.left_out,
            offered=tuple(tool.name for tool in offered),
            counter=_named(self.counter),
            renderer=self.manner.renderer,
            turn=packet.turn,
        )
        return made.messages, receipt

    def counted_otherwise(self, usage: Mapping[str, Any]) -> NoticeEvent | None:
        """A notice where the server read clearly less of the last prompt than was sent, or more than was counted."""
        read = usage.get("prompt_tokens")
        if not isinstance(read, int) or isinstance(read, bool) or read <= 0:
            return None
        if read < self._counted * (CUT_EXACT if self.counter.exact else CUT_ESTIMATED):
            return NoticeEvent(code="prompt_cut", message=f"The server read {read} of {self._counted} prompt tokens")
        if read > self._counted:
            counts = f"The server counted {read} prompt tokens, we {self._counted}"
            return NoticeEvent(code="counted_short", message=counts)
        return None

    def _made(self, packet: DecisionPacket) -> Rendered | Chat:
        manner = self.manner
        if self._history is not None and manner.memory != "packet":
            cut = manner.memory == "cut history"
            return self._history.prompt(
                self._system_prompt, self._tools, calling=manner.calling, limit=manner.limit, cut=cut
            )
        return render(
            packet,
            system_prompt=self._system_prompt,
            tools=self._tools,
            limit=manner.limit,
            counter=self.counter,
            style=manner.style,
            calling=manner.calling,
        )


def _named(counter: TokenCounter) -> dict[str, Any]:
    told = {"name": counter.name, "exact": counter.exact}
    return told | {"digest": counter.digest} if counter.digest else told
