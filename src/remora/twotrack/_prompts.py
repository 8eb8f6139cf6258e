"""Builds the prompts of one run, each within the limit, and the receipts that the stream records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from remora.context.budget import check_limit
from remora.context.contracts import ToolSpec
from remora.context.history import HISTORY, Chat, History
from remora.context.models import DecisionPacket
from remora.context.recall import RECALL
from remora.context.render import (
    RENDERERS,
    Calling,
    Rendered,
    Style,
    fixed_tokens,
    render_within,
    reserved_tokens,
    system_text,
)
from remora.errors import BudgetError
from remora.events import Event, ModelRequestEvent, NoticeEvent, canonical, digest
from remora.ports import TokenCounter
from remora.twotrack._offload import Offloader

if TYPE_CHECKING:
    from remora.twotrack._handover import Handover

Memory = Literal["packet", "history", "cut history"]
"""What a prompt is built from: the packet, or for comparison the whole chat history, or as much of it as fits."""

DOCUMENT = "document-1"
"""The renderer of a prompt that is a document instead of a packet."""
CUT_EXACT, CUT_ESTIMATED = 0.8, 0.2
"""Share of our token count below which the server must have truncated the prompt. An estimate may be far too high."""


@dataclass(frozen=True)
class PromptSettings:
    """How prompts are built. Constant during a run."""

    limit: int
    style: Style = "json"
    calling: Calling = "text"
    memory: Memory = "packet"
    keep_messages: bool = False
    """Also keep the run as a chat history, for debugging."""

    rung: str = ""
    """The rung of the ladder that these prompts are for, as receipts name it; empty without a ladder."""

    @property
    def uses_history(self) -> bool:
        return self.memory != "packet" or self.keep_messages

    @property
    def renderer(self) -> str:
        """The renderer's version, as streams name it."""
        return RENDERERS[self.style] if self.memory == "packet" else HISTORY

    def misfits(self, model: Mapping[str, Any], operation: str) -> list[NoticeEvent]:
        """Notices about an adapter that was trained for another renderer or on other weights."""
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


class PromptBuilder:
    """Builds prompts. Raises `BudgetError` at once if one could ever be over the limit."""

    def __init__(
        self,
        system_prompt: str,
        tools: Sequence[ToolSpec],
        settings: PromptSettings,
        counter: TokenCounter,
        offloader: Offloader,
    ) -> None:
        self.settings = settings
        self.counter = counter
        self._system_prompt = system_prompt
        self._tools = tools
        self._offloader = offloader
        self._history = History(settings.calling, counter) if settings.uses_history else None
        self._counted = 0
        beside = tools if settings.calling == "native" else ()
        self._system = system_text(system_prompt, tools, settings.calling)
        self._fixed = fixed_tokens(self._system, counter, beside)
        check_limit(self._fixed, settings.limit, reserved_tokens(settings.style, counter.count))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The run as a chat history; empty if none is kept."""
        return self._history.messages if self._history else []

    def add_to_history(self, event: Event, raw: str) -> None:
        """Append the event to the chat history, if one is kept. `raw` is the full result of a tool."""
        if self._history is not None:
            self._history.take(event, raw)

    async def build(
        self, packet: DecisionPacket, usable: tuple[ToolSpec, ...], handover: Handover | None = None
    ) -> tuple[tuple[Mapping[str, Any], ...], tuple[ToolSpec, ...], ModelRequestEvent]:
        """Build a prompt: its messages, the tools offered with it, and its receipt, whose large parts are in blobs.

        With `handover`, the prompt shows evidence of the Long Track in addition to the packet.
        """
        built = self._render(packet.model_copy(update={"evidence": handover.evidence}) if handover else packet)
        self._counted = built.tokens["total"]
        # `recall` is useless if nothing was left out.
        hidden = RECALL if self.settings.style == "account" and not built.left_out else None
        offered = tuple(tool for tool in usable if tool is not hidden and tool in self._tools)
        receipt = ModelRequestEvent(
            packet_sha256=digest(canonical(packet)),
            prompt_sha256=digest(canonical(built.messages)),
            messages=await self._offloader.messages(built.messages),
            tokens=built.tokens,
            limit=self.settings.limit,
            left_out=built.left_out,
            offered=tuple(tool.name for tool in offered),
            counter=_counter_record(self.counter),
            renderer=self.settings.renderer,
            rung=self.settings.rung,
            turn=packet.turn,
        )
        return built.messages, offered, receipt

    async def build_document(
        self, packet: DecisionPacket, text: str
    ) -> tuple[tuple[Mapping[str, Any], ...], ModelRequestEvent]:
        """Build a prompt whose packet is replaced by a document. Raises `BudgetError` if it is over the limit."""
        messages = ({"role": "system", "content": self._system}, {"role": "user", "content": text})
        tokens = {"system": self._fixed, "document": self.counter.count(text)}
        self._counted = tokens["total"] = sum(tokens.values())
        if self._counted > self.settings.limit:
            raise BudgetError(
                f"The document makes a prompt of {self._counted} tokens: the limit is {self.settings.limit}"
            )
        receipt = ModelRequestEvent(
            packet_sha256=digest(canonical(packet)),
            prompt_sha256=digest(canonical(messages)),
            messages=await self._offloader.messages(messages),
            tokens=tokens,
            limit=self.settings.limit,
            offered=tuple(tool.name for tool in self._tools),
            counter=_counter_record(self.counter),
            renderer=DOCUMENT,
            rung=self.settings.rung,
            turn=packet.turn,
        )
        return messages, receipt

    def usage_notice(self, usage: Mapping[str, Any]) -> NoticeEvent | None:
        """A notice if the server read clearly less of the last prompt than was sent, or more than was counted."""
        read = usage.get("prompt_tokens")
        if not isinstance(read, int) or isinstance(read, bool) or read <= 0:
            return None
        if read < self._counted * (CUT_EXACT if self.counter.exact else CUT_ESTIMATED):
            return NoticeEvent(code="prompt_cut", message=f"The server read {read} of {self._counted} prompt tokens")
        if read > self._counted:
            counts = f"The server counted {read} prompt tokens, we {self._counted}"
            return NoticeEvent(code="counted_short", message=counts)
        return None

    def _render(self, packet: DecisionPacket) -> Rendered | Chat:
        settings = self.settings
        if self._history is not None and settings.memory != "packet":
            cut = settings.memory == "cut history"
            return self._history.prompt(
                self._system_prompt, self._tools, calling=settings.calling, limit=settings.limit, cut=cut
            )
        return render_within(
            packet, self._system, self._fixed, limit=settings.limit, count=self.counter.count, style=settings.style
        )


def _counter_record(counter: TokenCounter) -> dict[str, Any]:
    record = {"name": counter.name, "exact": counter.exact}
    return record | {"digest": counter.digest} if counter.digest else record
